#include "conf/preempt_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "conf/slurm_conf.h"
#include "conf/values.h"
#include "text/duration.h"
#include "text/words.h"

namespace berth::conf {
namespace {

constexpr auto kPreemptTypes =
    std::to_array<std::string_view>({"preempt/none", "preempt/partition_prio", "preempt/qos"});
constexpr auto kModes = std::to_array<std::string_view>(
    {"OFF", "CANCEL", "REQUEUE", "SUSPEND", "GANG", "PRIORITY", "WITHIN"});

struct Parameter {
  std::string_view name;
  bool number = false;
};
constexpr auto kPreemptParameters = std::to_array<Parameter>({
    {"min_exempt_priority", true},
    {"reclaim_licenses"},
    {"reorder_count", true},
    {"send_user_signal"},
    {"strict_order"},
    {"suspend_grace_time", true},
    {"youngest_first"},
});

bool is_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

void parameters(const Pair& pair, PreemptKeys& keys, Complaints& complaints) {
  keys.parameters.clear();
  keys.parameters_as_written = pair.value == "(null)" ? std::string() : pair.value;
  for (const std::string& word : word_list(pair).value) {
    if (word == "(null)") continue;
    const std::size_t equals = word.find('=');
    const std::string name = text::to_lower(word.substr(0, equals));
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    const auto row = std::ranges::find(kPreemptParameters, name, &Parameter::name);
    if (row == kPreemptParameters.end()) {
      complaints.warn(pair.at, fmt::format("PreemptParameters={} is not known and makes no "
                                           "difference",
                                           shown(word)));
      continue;
    }
    if (row->number != is_number(value) || (!row->number && !value.empty())) {
      const std::string allowed = fmt::format("{}{}", row->name, row->number ? "=number" : "");
      complaints.error(pair.at,
                       fmt::format("PreemptParameters={}: allowed is {}", shown(word), allowed));
      continue;
    }
    keys.parameters[name] = value;
  }
}

void exempt_time(const Pair& pair, PreemptKeys& keys, Complaints& complaints) {
  keys.exempt_seconds.reset();
  if (pair.value == "-1" || text::equal_ignoring_case(pair.value, "NONE")) return;
  const auto value = text::parse_seconds(pair.value);
  if (value && *value <= INT32_MAX) {
    keys.exempt_seconds = static_cast<std::uint32_t>(*value);
    return;
  }
  complaints.error(
      pair.at, fmt::format("{}={}: allowed are minutes, h:m:s, d-h:m:s, and -1 for none", pair.key,
                           shown(pair.value)));
}

}  // namespace

std::optional<PreemptModeWords> preempt_mode(const Pair& pair, Complaints& complaints) {
  const auto words = some_of(pair, kModes, complaints);
  if (!words) return std::nullopt;
  PreemptModeWords out;
  for (const std::string& word : words->value) {
    if (word == "GANG") {
      out.gang = true;
    } else if (word == "PRIORITY") {
      out.priority = true;
    } else if (word == "WITHIN") {
      out.within = true;
    } else if (out.mode != "OFF" && out.mode != word) {
      complaints.error(pair.at, fmt::format("PreemptMode={}: {} and {} exclude each other",
                                            shown(pair.value), out.mode, word));
      return std::nullopt;
    } else {
      out.mode = word;
    }
  }
  return out;
}

bool apply_preempt_pair(const Pair& pair, PreemptKeys& keys, Complaints& complaints) {
  if (is(pair, "PreemptType")) {
    Pair full = pair;
    if (full.value == "(null)") full.value = "preempt/none";
    if (auto type = one_of(full, kPreemptTypes, complaints)) keys.type = std::move(type->value);
  } else if (is(pair, "PreemptMode")) {
    keys.mode_at = pair.at;
    if (const auto mode = preempt_mode(pair, complaints)) {
      keys.mode = *mode;
      keys.mode_as_written = pair.value;
    }
  } else if (is(pair, "PreemptExemptTime")) {
    exempt_time(pair, keys, complaints);
  } else if (is(pair, "PreemptParameters")) {
    parameters(pair, keys, complaints);
  } else {
    return false;
  }
  return true;
}

void check_preempt(const PreemptKeys& keys, Complaints& complaints) {
  const PreemptModeWords& mode = keys.mode;
  if (mode.mode == "SUSPEND" && !mode.gang) {
    complaints.error(keys.mode_at, "PreemptMode=SUSPEND needs GANG: PreemptMode=SUSPEND,GANG");
  }
  if (mode.gang && mode.mode != "SUSPEND") {
    complaints.warn(
        keys.mode_at,
        "PreemptMode=GANG: jobs do not take turns on the same CPUs (no time slices); it "
        "only lets partitions have PreemptMode=SUSPEND");
  }
  if (mode.within && keys.type != "preempt/qos") {
    complaints.warn(keys.mode_at, "PreemptMode=WITHIN makes no difference without preempt/qos");
  }
  if (mode.mode != "OFF" && keys.type == "preempt/none") {
    complaints.warn(keys.mode_at, fmt::format("PreemptMode={} makes no difference without "
                                              "PreemptType=preempt/partition_prio",
                                              keys.mode_as_written));
  }
}

void check_preempt_of_partition(const PreemptKeys& keys, const std::string& partition,
                                const PartitionRules& rules, Complaints& complaints) {
  if (!rules.preempt_mode) return;
  const Pair pair{"PreemptMode", rules.preempt_mode->value, rules.preempt_mode->at};
  Complaints said_before;
  const auto mode = preempt_mode(pair, said_before);
  if (!mode || mode->mode != "SUSPEND" || keys.mode.gang) return;
  complaints.error(pair.at, fmt::format("PartitionName={} PreemptMode=SUSPEND needs GANG in the "
                                        "cluster's PreemptMode",
                                        partition));
}

}  // namespace berth::conf
