#include "simulate/setup.h"

#include <fmt/format.h>

#include <limits>

#include "settings/settings.h"
#include "simulate/fields.h"
#include "site/site.h"
#include "text/words.h"

namespace berth::simulate {
namespace {

/// The configuration with some keys said otherwise.
class Overlay : public conf::FileSource {
 public:
  Overlay(const conf::FileSource& below, const std::vector<Override>& overrides)
      : below_(below), overrides_(overrides) {}
  Result<std::optional<std::string>> read(std::string_view name) const override {
    auto text = below_.read(name);
    if (!text || !*text || name != "slurm.conf") return text;
    return overridden(**text, overrides_);
  }

 private:
  const conf::FileSource& below_;
  const std::vector<Override>& overrides_;
};

bool names_a_line(std::string_view key) {
  return text::equal_ignoring_case(key, "PartitionName") ||
         text::equal_ignoring_case(key, "NodeName");
}

std::string_view first_word(std::string_view text) {
  text = text::trim(text);
  return text.substr(0, text.find_first_of(" \t"));
}

bool replaced_by(std::string_view line, const Override& by) {
  const auto equals = line.find('=');
  if (equals == std::string_view::npos) return false;
  if (!text::equal_ignoring_case(text::trim(line.substr(0, equals)), by.key)) return false;
  return !names_a_line(by.key) || first_word(line.substr(equals + 1)) == first_word(by.value);
}

}  // namespace

Result<Override> read_override(std::string_view text) {
  const auto equals = text.find('=');
  const std::string_view key = text::trim(text.substr(0, equals));
  if (equals == std::string_view::npos || key.empty() ||
      text.find_first_of("\n\r") != std::string_view::npos) {
    return fail(Code::bad_value, fmt::format("\"{}\" is not KEY=VALUE", text),
                "for example --set SchedulerParameters=bf_window=2880");
  }
  return Override{std::string(key), std::string(text::trim(text.substr(equals + 1)))};
}

std::string overridden(std::string_view text, const std::vector<Override>& overrides) {
  std::string out;
  Lines lines(text);
  std::string_view line;
  bool continued = false;  // the line before ended with "\"
  bool dropping = false;
  while (lines.next(line)) {
    if (!continued) {
      dropping = false;
      for (const Override& by : overrides) dropping = dropping || replaced_by(line, by);
    }
    continued = line.ends_with('\\');
    if (!dropping) {
      out += line;
    }
    out += '\n';  // lines keep their numbers
  }
  for (const Override& by : overrides) out += fmt::format("{}={}\n", by.key, by.value);
  return out;
}

Result<Setup> read_setup(const conf::FileSource& source, const std::vector<Override>& overrides,
                         std::string label) {
  const Overlay overlay(source, overrides);
  auto config = conf::read_config(overlay);
  if (!config) return pass(std::move(config.error()));
  auto site = site::from_config(*config);
  if (!site) return pass(std::move(site.error()));
  Setup setup;
  setup.label = std::move(label);
  setup.notes = config->warnings;
  setup.notes.insert(setup.notes.end(), site->warnings.begin(), site->warnings.end());
  setup.cluster = std::move(site->cluster);
  setup.policy = settings::policy_of(*config, "slurm.conf", true, {});
  setup.policy.power.enabled = false;  // nodes are always up: nobody would switch them
  setup.policy.min_job_age = 1;
  setup.policy.max_job_count = std::numeric_limits<std::uint32_t>::max();
  setup.schedule = settings::schedule_of(config->slurm.daemon);
  return setup;
}

}  // namespace berth::simulate
