#include "conf/priority_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "conf/values.h"
#include "text/duration.h"
#include "text/words.h"

namespace berth::conf {
namespace {

constexpr std::uint32_t kLargestWeight = UINT32_MAX - 2;

constexpr auto kPriorityTypes =
    std::to_array<std::string_view>({"priority/basic", "priority/multifactor"});

struct Flag {
  std::string_view name;
  std::string_view why_not;  // "" = heeded
};
constexpr std::string_view kUsage = "usage of accounts is not counted";
constexpr auto kFlags = std::to_array<Flag>({
    {"ACCRUE_ALWAYS", ""},
    {"CALCULATE_RUNNING", "a job that runs keeps the priority it was started with"},
    {"DEPTH_OBLIVIOUS", kUsage},
    {"FAIR_TREE", kUsage},
    {"NO_FAIR_TREE", kUsage},
    {"INCR_ONLY", ""},
    {"MAX_TRES", kUsage},
    {"MAX_TRES_GRES", kUsage},
    {"NO_NORMAL_ALL", ""},
    {"NO_NORMAL_ASSOC", "there are no associations"},
    {"NO_NORMAL_PART", ""},
    {"NO_NORMAL_QOS", "there are no QOS"},
    {"NO_NORMAL_TRES", ""},
    {"SMALL_RELATIVE_TO_TIME", ""},
});

struct Weight {
  std::string_view key;
  std::uint32_t PriorityKeys::* field;
};
constexpr auto kWeights = std::to_array<Weight>({
    {"PriorityWeightAge", &PriorityKeys::weight_age},
    {"PriorityWeightAssoc", &PriorityKeys::weight_assoc},
    {"PriorityWeightFairshare", &PriorityKeys::weight_fair_share},
    {"PriorityWeightJobSize", &PriorityKeys::weight_job_size},
    {"PriorityWeightPartition", &PriorityKeys::weight_partition},
    {"PriorityWeightQOS", &PriorityKeys::weight_qos},
});

void flags(const Pair& pair, PriorityKeys& keys, Complaints& complaints) {
  std::array<std::string_view, kFlags.size()> names;
  std::ranges::transform(kFlags, names.begin(), &Flag::name);
  const auto given = some_of(pair, names, complaints);
  if (!given) return;
  keys.flags = given->value;
  for (const std::string& name : keys.flags) {
    const auto row = std::ranges::find(kFlags, name, &Flag::name);
    if (row->why_not.empty()) continue;
    complaints.warn(pair.at,
                    fmt::format("PriorityFlags={} makes no difference: {}", name, row->why_not));
  }
}

void seconds(const Pair& pair, std::uint32_t least, std::uint32_t& field, Complaints& complaints) {
  const auto value = text::parse_seconds(pair.value);
  if (value && *value >= least && *value <= INT32_MAX) {
    field = static_cast<std::uint32_t>(*value);
    return;
  }
  complaints.error(pair.at, fmt::format("{}={}: allowed are minutes, h:m:s and d-h:m:s", pair.key,
                                        shown(pair.value)));
}

/// "CPU=1000,Mem=2000,GRES/gpu=3000".
void tres_weights(const Pair& pair, PriorityKeys& keys, Complaints& complaints) {
  keys.weight_tres.clear();
  for (const std::string& word : word_list(pair).value) {
    if (word == "(null)") continue;
    const std::size_t equals = word.rfind('=');
    // Names of resources are as the cluster has them: "GRES/gpu:A100" is "gres/gpu:A100".
    const std::string given = word.substr(0, equals);
    const std::size_t slash = given.find('/');
    const std::string name = text::to_lower(given.substr(0, slash)) +
                             (slash == std::string::npos ? std::string() : given.substr(slash));
    const bool known = name == "cpu" || name == "mem" || name == "node" || name == "billing" ||
                       name.starts_with("gres/") || name.starts_with("license/");
    double value = 0;
    bool good = known && equals != std::string::npos;
    if (good) {
      const char* end = word.data() + word.size();
      const auto [stopped, error] = std::from_chars(word.data() + equals + 1, end, value);
      good = error == std::errc() && stopped == end && std::isfinite(value) && value >= 0;
    }
    if (!good) {
      complaints.error(pair.at,
                       fmt::format("{}={}: allowed are cpu, mem, node, billing, gres/NAME and "
                                   "license/NAME with a weight, like CPU=1000,GRES/gpu=3000",
                                   pair.key, shown(word)));
      return;
    }
    keys.weight_tres.emplace_back(name, value);
  }
}

}  // namespace

bool apply_priority_pair(const Pair& pair, PriorityKeys& keys, Complaints& complaints) {
  for (const Weight& weight : kWeights) {
    if (!is(pair, weight.key)) continue;
    if (const auto value = number(pair, 0, kLargestWeight, complaints)) {
      keys.*weight.field = value->value;
    }
    return true;
  }
  if (is(pair, "PriorityType")) {
    if (const auto value = one_of(pair, kPriorityTypes, complaints)) keys.type = value->value;
  } else if (is(pair, "PriorityWeightTRES")) {
    tres_weights(pair, keys, complaints);
  } else if (is(pair, "PriorityMaxAge")) {
    seconds(pair, 1, keys.max_age_seconds, complaints);
  } else if (is(pair, "PriorityCalcPeriod")) {
    seconds(pair, 1, keys.calc_period_seconds, complaints);
  } else if (is(pair, "PriorityFavorSmall")) {
    if (const auto value = boolean(pair, complaints)) keys.favor_small = value->value;
  } else if (is(pair, "PriorityFlags")) {
    flags(pair, keys, complaints);
  } else {
    return false;
  }
  return true;
}

}  // namespace berth::conf
