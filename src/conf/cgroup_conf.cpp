// Reading cgroup.conf.
#include "conf/cgroup_conf.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "conf/keys.h"
#include "conf/slurm_lines.h"
#include "conf/values.h"
#include "text/words.h"

namespace berth::conf {
namespace {

/// A share in percent, decimals allowed.
std::optional<double> percent(const Pair& pair, double most, Complaints& complaints) {
  double value = -1;
  const char* end = pair.value.data() + pair.value.size();
  const auto [at, wrong] = std::from_chars(pair.value.data(), end, value, std::chars_format::fixed);
  if (wrong == std::errc() && at == end && value >= 0 && value <= most) return value;
  complaints.error(pair.at, fmt::format("{}={}: allowed is a percentage from 0 to {}", pair.key,
                                        shown(pair.value), most));
  return std::nullopt;
}

/// One directory below the mount point, as systemd names slices.
std::optional<std::string> slice_name(const Pair& pair, Complaints& complaints) {
  const std::string& name = pair.value;
  const bool plain = name.ends_with(".slice") && name.size() <= 128 && name.front() != '.' &&
                     name.find('/') == std::string::npos;
  if (plain) return name;
  complaints.error(
      pair.at, fmt::format("{}={}: allowed is the name of a slice, such as system.slice", pair.key,
                           shown(name)));
  return std::nullopt;
}

void apply(const Pair& pair, CgroupConf& out, Complaints& complaints) {
  constexpr std::array<std::string_view, 4> kPlugins = {"autodetect", "cgroup/v1", "cgroup/v2",
                                                        "disabled"};
  struct Row {
    std::string_view key;
    bool CgroupConf::* field;
  };
  static constexpr std::array<Row, 4> kRows = {{
      {"ConstrainCores", &CgroupConf::constrain_cores},
      {"ConstrainDevices", &CgroupConf::constrain_devices},
      {"ConstrainRAMSpace", &CgroupConf::constrain_ram},
      {"ConstrainSwapSpace", &CgroupConf::constrain_swap},
  }};
  for (const Row& row : kRows) {
    if (!text::equal_ignoring_case(pair.key, row.key)) continue;
    if (const auto value = boolean(pair, complaints)) out.*row.field = value->value;
    return;
  }
  struct Share {
    std::string_view key;
    double CgroupConf::* field;
    double most;
  };
  static constexpr std::array<Share, 4> kShares = {{
      {"AllowedRAMSpace", &CgroupConf::allowed_ram_percent, 100000},
      {"AllowedSwapSpace", &CgroupConf::allowed_swap_percent, 100000},
      {"MaxRAMPercent", &CgroupConf::max_ram_percent, 100},
      {"MaxSwapPercent", &CgroupConf::max_swap_percent, 100},
  }};
  for (const Share& share : kShares) {
    if (!is(pair, share.key)) continue;
    if (const auto value = percent(pair, share.most, complaints)) out.*share.field = *value;
    return;
  }
  if (is(pair, "CgroupPlugin")) {
    if (const auto plugin = one_of(pair, kPlugins, complaints)) out.plugin = plugin->value;
  } else if (is(pair, "MinRAMSpace")) {
    if (const auto value = megabytes(pair, complaints)) out.min_ram_mb = value->value;
  } else if (is(pair, "CgroupSlice")) {
    if (const auto slice = slice_name(pair, complaints)) out.slice = *slice;
  }
}

/// CgroupPlugin=disabled and a limit that needs cgroups: one of the two is a mistake.
void refuse_contradiction(const CgroupConf& conf, const std::map<std::string, Location>& seen,
                          Complaints& complaints) {
  if (conf.plugin != "disabled" || !conf.constrains()) return;
  for (const auto& [field, key] : {std::pair{&CgroupConf::constrain_cores, "ConstrainCores"},
                                   std::pair{&CgroupConf::constrain_devices, "ConstrainDevices"},
                                   std::pair{&CgroupConf::constrain_ram, "ConstrainRAMSpace"},
                                   std::pair{&CgroupConf::constrain_swap, "ConstrainSwapSpace"}}) {
    if (!(conf.*field)) continue;
    const auto at = seen.find(text::to_lower(key));
    if (at == seen.end()) continue;
    complaints.error(
        at->second,
        fmt::format("{}=yes needs cgroups, and CgroupPlugin=disabled forbids them", key));
  }
}

}  // namespace

std::optional<CgroupConf> read_cgroup_conf(const FileSource& source, std::string_view cluster_name,
                                           Complaints& complaints, std::string_view name) {
  CgroupConf out;
  std::map<std::string, Location> seen;
  const bool found = read_lines(source, name, cluster_name, complaints, [&](const Line& line) {
    for (const Pair& pair : line.pairs) {
      if (used_key(cgroup_keys(), pair, "cgroup.conf", complaints) == nullptr) continue;
      const auto [at, fresh] = seen.emplace(text::to_lower(pair.key), pair.at);
      if (!fresh) {
        complaints.warn(pair.at, fmt::format("{} was given before, in {}; this one counts",
                                             pair.key, shown(at->second)));
        at->second = pair.at;
      }
      apply(pair, out, complaints);
    }
  });
  if (!found) return std::nullopt;
  refuse_contradiction(out, seen, complaints);
  return out;
}

}  // namespace berth::conf
