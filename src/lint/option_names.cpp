// Reads on where getopt stops: after an unknown option, and after a word that is no option.
#include "lint/option_names.h"

#include <algorithm>

#include "request/getopt.h"
#include "request/table.h"
#include "text/words.h"

namespace berth::lint {
namespace {

void keep(const request::Scanned& scanned, RawOptions& result) {
  for (const request::Occurrence& each : scanned.options) {
    result.options.push_back({each.opt, each.text});
  }
}

}  // namespace

RawOptions read_options(std::span<const std::string> words, request::Command command) {
  RawOptions result;
  std::size_t from = 0;
  while (from < words.size()) {
    std::size_t failed_at = from;
    const auto scanned = request::scan_words(command, words, from, &failed_at);
    if (!scanned) {
      // What stood before the failing word was read well.
      failed_at = std::max(failed_at, from);
      if (const auto before = request::scan_words(command, words.first(failed_at), from)) {
        keep(*before, result);
      }
      const std::string_view why = scanned.error().what();
      const bool unknown = why.starts_with("unrecognized") || why.starts_with("invalid option");
      if (unknown && failed_at < words.size()) result.unknown.push_back(words[failed_at]);
      from = failed_at + 1;
      continue;
    }
    keep(*scanned, result);
    if (scanned->rest >= words.size()) break;
    if (!result.first_plain) result.first_plain = scanned->rest;
    from = scanned->rest + 1;
  }
  return result;
}

std::string_view long_name(request::Opt opt) {
  return request::row_of(opt).name;
}

std::string nearest_name(std::string_view name) {
  return text::nearest(name, request::long_names(request::Command::sbatch));
}

}  // namespace berth::lint
