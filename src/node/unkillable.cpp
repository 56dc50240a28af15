// What unkillable.h promises.
#include "node/unkillable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "node/scripts.h"
#include "node/steps.h"
#include "step/container.h"

namespace berth::node {
namespace {

constexpr std::size_t kMostNamed = 8;

}  // namespace

std::string described(const std::vector<pid_t>& pids) {
  std::string text;
  for (std::size_t i = 0; i < std::min(pids.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : "; ") + step::describe_process(pids[i]);
  }
  if (pids.size() > kMostNamed) text += fmt::format("; and {} more", pids.size() - kMostNamed);
  return text;
}

void run_unkillable_program(Surroundings& here, const Unkillable& left) {
  const std::string& program = here.config.unkillable_program();
  if (program.empty()) return;
  ScriptRun run;
  run.programs = {program};
  run.environment = script_environment({}, left.node, "unkillable_step", here.config.conf_path());
  for (const char* name : {"SLURM_JOB_ID", "SLURM_JOBID"}) {
    run.environment.push_back(fmt::format("{}={}", name, left.job));
  }
  for (const char* name : {"SLURM_STEP_ID", "SLURM_STEPID"}) {
    run.environment.push_back(fmt::format("{}={}", name, left.step));
  }
  run.environment.push_back(fmt::format("BERTH_UNKILLABLE_PIDS={}", fmt::join(left.pids, " ")));
  run.limit = std::chrono::seconds(std::max(1U, here.config.unkillable_seconds()));
  run_scripts(here.loop, here.children, std::move(run), [&here](const std::string& trouble) {
    if (!trouble.empty()) here.log.error("UnkillableStepProgram: {}", trouble);
  });
}

}  // namespace berth::node
