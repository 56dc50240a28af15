// #PBS and #BSUB lines: the few that have a plain counterpart, and a warning for the others. The
// list is in docs/options.md.
#include <algorithm>

#include <fmt/format.h>

#include "request/directives.h"
#include "request/table.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::request {
namespace {

class Translation {
 public:
  Translation(std::string_view magic, std::vector<Message>& warnings)
      : magic_(magic), warnings_(&warnings) {}

  void line(int number, std::string_view rest) {
    number_ = number;
    const std::string_view trimmed = text::trim(rest);
    if (trimmed.size() < 2 || trimmed[0] != '-') return unknown(trimmed);
    const char letter = trimmed[1];
    const std::string_view value = text::trim(trimmed.substr(2));
    if (value.empty()) return unknown(trimmed);
    const bool done = magic_ == "#PBS" ? pbs(letter, value) : bsub(letter, value);
    if (!done) unknown(trimmed);
  }

  std::vector<DirectiveOption> take() { return std::move(out_); }

 private:
  bool pbs(char letter, std::string_view value) {
    switch (letter) {
      case 'N':
        return put(Opt::job_name, value);
      case 'A':
        return put(Opt::account, value);
      case 'q':
        return put(Opt::partition, value);
      case 'o':
        return put(Opt::output, value);
      case 'e':
        return put(Opt::error, value);
      case 't':
      case 'J':
        return put(Opt::array, value);
      case 'l':
        return resources(value);
      default:
        return false;
    }
  }

  bool bsub(char letter, std::string_view value) {
    switch (letter) {
      case 'J':
        return value.find('[') == std::string_view::npos && put(Opt::job_name, value);
      case 'P':
        return put(Opt::account, value);
      case 'q':
        return put(Opt::partition, value);
      case 'o':
        return put(Opt::output, value);
      case 'e':
        return put(Opt::error, value);
      case 'n':
        return text::parse_number(value, 1u << 30) && put(Opt::ntasks, value);
      case 'W':
        return wall_time(value);
      default:
        return false;
    }
  }

  /// "-W hours:minutes" or minutes: Slurm would read the first as minutes:seconds.
  bool wall_time(std::string_view value) {
    return put(Opt::time, value.find(':') == std::string_view::npos ? std::string(value)
                                                                    : fmt::format("{}:00", value));
  }

  /// "-l nodes=2:ppn=4,walltime=1:00:00": all of it, or nothing and a warning.
  bool resources(std::string_view value) {
    const std::size_t before = out_.size();
    for (const std::string_view item : text::split(value, ',')) {
      if (!resource(text::trim(item))) {
        out_.resize(before);
        return false;
      }
    }
    return true;
  }

  bool resource(std::string_view item) {
    if (item.starts_with("walltime=")) return put(Opt::time, item.substr(9));
    if (item.starts_with("mem=")) return put(Opt::mem, item.substr(4));
    if (!item.starts_with("nodes=")) return false;
    const std::vector<std::string_view> parts = text::split(item.substr(6), ':');
    if (!text::parse_number(parts[0], 1u << 30)) return false;
    if (parts.size() > 2 || (parts.size() == 2 && !parts[1].starts_with("ppn="))) return false;
    put(Opt::nodes, parts[0]);
    return parts.size() < 2 || put(Opt::ntasks_per_node, parts[1].substr(4));
  }

  bool put(Opt opt, std::string_view value) {
    out_.push_back({Occurrence{opt, std::string(value), 0}, number_});
    return true;
  }

  void unknown(std::string_view what) {
    if (warnings_->size() >= kMaxWarnings) return;
    warnings_->push_back(
        {Severity::warning, fmt::format("line {}: \"{} {}\" has no counterpart and is left alone; "
                                        "write an #SBATCH line for it",
                                        number_, magic_, what)});
  }

  std::string_view magic_;
  std::vector<Message>* warnings_;
  std::vector<DirectiveOption> out_;
  int number_ = 0;
};

}  // namespace

std::vector<DirectiveOption> translate_foreign(std::string_view script,
                                               std::vector<Message>& warnings) {
  std::optional<Translation> translation;
  std::string_view dialect;
  int number = 0;
  while (!script.empty()) {
    ++number;
    const std::size_t end = std::min(script.find('\n'), script.size());
    const std::string_view line = script.substr(0, end);
    script.remove_prefix(std::min(end + 1, script.size()));
    const std::string_view trimmed = text::trim(line);
    if (!trimmed.empty() && trimmed[0] != '#') break;
    const std::string_view magic = line.starts_with("#PBS ")    ? "#PBS"
                                   : line.starts_with("#BSUB ") ? "#BSUB"
                                                                : "";
    if (magic.empty()) continue;
    if (dialect.empty()) {
      dialect = magic;
      translation.emplace(magic, warnings);
    }
    if (magic == dialect) translation->line(number, line.substr(magic.size()));
  }
  return translation ? translation->take() : std::vector<DirectiveOption>{};
}

}  // namespace berth::request
