// What scontrol_resize.h promises.
#include "command/scontrol_resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "text/cpumask.h"
#include "text/words.h"

namespace berth::command::scontrol {
namespace {

/// "4(x2),2".
std::string repeated(const std::vector<std::uint64_t>& counts) {
  std::string out;
  for (std::size_t i = 0; i < counts.size();) {
    std::size_t same = i;
    while (same < counts.size() && counts[same] == counts[i]) ++same;
    out += fmt::format("{}{}", out.empty() ? "" : ",", counts[i]);
    if (same - i > 1) out += fmt::format("(x{})", same - i);
    i = same;
  }
  return out;
}

}  // namespace

bool changes_size(const wire::Change& change) {
  constexpr std::array<std::string_view, 4> kKeys = {"numnodes", "reqnodes", "nodelist",
                                                     "reqnodelist"};
  return change.what() == "job" && change.action() == "update" &&
         std::ranges::any_of(change.keys(), [&](const wire::Variable& key) {
           const std::string name = text::to_lower(key.name());
           return std::ranges::find(kKeys, name) != kKeys.end();
         });
}

ResizeScripts resize_scripts(const wire::JobInfo& job) {
  std::vector<std::uint64_t> cpus;
  for (const wire::NodeDetail& node : job.detail()) {
    const auto ids = text::parse_id_set(node.cpu_ids());
    cpus.push_back(ids ? ids->count() : 0);
  }
  const std::string nodes = std::to_string(job.node_count());
  const std::array<std::pair<std::string_view, std::string>, 5> variables = {{
      {"SLURM_NODELIST", job.nodes()},
      {"SLURM_JOB_NODELIST", job.nodes()},
      {"SLURM_NNODES", nodes},
      {"SLURM_JOB_NUM_NODES", nodes},
      {"SLURM_JOB_CPUS_PER_NODE", repeated(cpus)},
  }};
  ResizeScripts out;
  for (const auto& [name, value] : variables) {
    out.sh += fmt::format("export {}=\"{}\"\n", name, value);
    out.csh += fmt::format("setenv {} \"{}\"\n", name, value);
  }
  // Counts of tasks were those of the larger job.
  for (const std::string_view name : {"SLURM_NPROCS", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE"}) {
    out.sh += fmt::format("unset {}\n", name);
    out.csh += fmt::format("unsetenv {}\n", name);
  }
  return out;
}

}  // namespace berth::command::scontrol
