// What bind_words.h promises.
#include "place/bind_words.h"

#include <fmt/format.h>

#include "text/number.h"

namespace berth::place {
namespace {

constexpr std::string_view kGpusPerRank = "--gpus-per-rank";
constexpr std::uint64_t kMostGpusPerRank = 1024;

/// The number of --gpus-per-rank at words[at], attached or in the next word; moves `at` to the last
/// word it took.
Result<std::uint32_t> read_gpus_per_rank(std::span<const std::string> words, std::size_t& at) {
  std::string_view value = std::string_view(words[at]).substr(kGpusPerRank.size());
  if (value.starts_with('=')) {
    value.remove_prefix(1);
  } else if (++at < words.size()) {
    value = words[at];
  } else {
    return fail(Code::option_syntax, fmt::format("{} needs a number", kGpusPerRank));
  }
  const auto number = text::parse_number(value, kMostGpusPerRank);
  if (!number) {
    return fail(Code::bad_value,
                fmt::format("{} needs a number up to {}", kGpusPerRank, kMostGpusPerRank));
  }
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

Result<BindWords> read_bind_words(std::span<const std::string> words) {
  BindWords out;
  std::size_t i = 0;
  for (; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (!word.starts_with('-')) break;
    if (word == "-h" || word == "--help") {
      out.help = true;
    } else if (word == "-v" || word == "--verbose") {
      out.verbose = true;
    } else if (word.substr(0, word.find('=')) == kGpusPerRank) {
      const auto number = read_gpus_per_rank(words, i);
      if (!number) return pass(number.error());
      out.gpus_per_rank = *number;
    } else {
      return fail(Code::option_syntax, fmt::format("unknown option {}", word),
                  "a program whose name begins with - comes after --");
    }
  }
  out.argv.assign(words.begin() + static_cast<std::ptrdiff_t>(std::min(i, words.size())),
                  words.end());
  if (out.argv.empty() && !out.help) return fail(Code::option_syntax, "no program is given");
  return out;
}

}  // namespace berth::place
