#include "controller/advice.h"

#include <fmt/format.h>

#include "cluster/usage.h"
#include "explain/explain.h"
#include "request/parse.h"
#include "text/words.h"

namespace berth::controller {
namespace {

/// FNV-1a over all parts, each closed by its length so that parts cannot run into each other.
class Hash {
 public:
  void add(std::string_view part) {
    for (const char c : part) step(static_cast<unsigned char>(c));
    for (std::size_t n = part.size(), i = 0; i < 8; ++i, n >>= 8) step(n & 0xff);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void step(std::uint64_t byte) { value_ = (value_ ^ byte) * 0x100000001b3U; }
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

std::uint64_t key_of(const wire::Asked& asked) {
  Hash hash;
  hash.add(asked.command());
  for (const std::string& word : asked.words()) hash.add(word);
  hash.add(asked.script());
  return hash.value();
}

std::vector<std::string> make_lines(const cluster::Cluster& cluster, const wire::Asked& asked) {
  const cluster::Usage usage(cluster);
  explain::Input input;
  input.command = request::Command::sbatch;
  input.words.assign(asked.words().begin(), asked.words().end());
  input.script = asked.script();
  input.name = "the script";
  input.cluster = &cluster;
  input.usage = &usage;
  input.with_environments = false;
  input.around.stored = true;
  input.around.is_root = true;  // what only root may do is refused by the submission itself
  for (const auto& variable : asked.environment()) {
    input.around.environment[variable.name()] = variable.value();
  }
  for (const auto& file : asked.files()) input.around.files[file.name()] = file.content();
  std::vector<std::string> lines;
  for (const lint::Finding& finding : explain::explain(input).findings) {
    if (finding.level == lint::Level::note) continue;
    const std::string where = finding.line > 0 ? fmt::format(" (line {})", finding.line) : "";
    lines.push_back(fmt::format("berth: {} {}: {}{}", lint::level_name(finding.level), finding.code,
                                finding.text, where));
    for (const std::string_view line : text::split(finding.hint, '\n')) {
      if (!line.empty()) lines.push_back(fmt::format("berth:   {}", line));
    }
  }
  return lines;
}

}  // namespace

std::optional<std::vector<std::string>> Advice::known(const wire::Asked& asked) {
  // Interactive commands show their own troubles; only a script runs unseen.
  if (asked.command() != "sbatch") return std::vector<std::string>();
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(key_of(asked));
  if (found == kept_.end()) return std::nullopt;
  order_.splice(order_.begin(), order_, found->second.used);
  return found->second.lines;
}

std::vector<std::string> Advice::lines(const cluster::Cluster& cluster, const wire::Asked& asked) {
  if (auto lines = known(asked)) return std::move(*lines);
  const std::uint64_t key = key_of(asked);
  std::vector<std::string> lines = make_lines(cluster, asked);
  const std::lock_guard lock(mutex_);
  if (kept_.contains(key)) return lines;
  if (kept_.size() >= kMost) {
    kept_.erase(order_.back());
    order_.pop_back();
  }
  order_.push_front(key);
  kept_[key] = {lines, order_.begin()};
  return lines;
}

void Advice::forget() {
  const std::lock_guard lock(mutex_);
  kept_.clear();
  order_.clear();
}

}  // namespace berth::controller
