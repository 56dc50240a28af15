// Reading cgroup.conf.
#include "conf/cgroup_conf.h"

#include <fmt/format.h>

#include <array>

#include "conf/keys.h"
#include "conf/slurm_lines.h"
#include "conf/values.h"
#include "text/words.h"

namespace berth::conf {
namespace {

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
  if (text::equal_ignoring_case(pair.key, "CgroupPlugin")) {
    if (const auto plugin = one_of(pair, kPlugins, complaints)) out.plugin = plugin->value;
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
  return out;
}

}  // namespace berth::conf
