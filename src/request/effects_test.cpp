// Every option that berth does nothing with, or not all: what comes of it.
#include "request/effects.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "request/parse_testing.h"
#include "request/table.h"

namespace berth::request {
namespace {

/// "ok", "told: …", or the refusal.
std::string effect(const std::string& line, const Surroundings& around = {}) {
  const Result<Parsed> parsed = testing::parse_line(line, around);
  if (!parsed) return testing::outcome(line, around);
  std::string out;
  for (const Message& message : parsed->warnings) out += message.text + '\n';
  if (!out.empty()) out.pop_back();
  return out.empty() ? "ok" : out;
}

struct EffectCase {
  const char* line;
  const char* comes;
};

constexpr EffectCase kEffectCases[] = {
    {"srun --gpus=1 --gpu-freq=high true", "1: srun: error: --gpu-freq is not supported by berth"},
    {"srun --gpu-freq=fast true", "255: srun: error: Invalid --gpu-freq argument: fast"},
    {"srun --mem-bind=local true", "ok"},
    {"srun --mem-bind=quiet,none true", "ok"},
    {"srun --mem-bind=verbose true", "ok"},
    {"srun --mem-bind=local,sort true",
     "1: srun: error: --mem-bind=local,sort is not supported by berth"},
    {"srun --mem-bind=map_mem:0,1 true",
     "1: srun: error: --mem-bind=map_mem:0,1 is not supported by berth"},
    {"sbatch --mem-bind=rank --wrap x",
     "1: sbatch: error: --mem-bind=rank is not supported by berth"},
    {"srun --cpu-freq=high true",
     "berth: --cpu-freq=high has no effect: berth leaves the frequency of CPUs to the system"},
    {"sbatch --delay-boot=10 --wrap x", "ok"},
    {"srun --bcast-exclude=/lib true", "ok"},
    {"srun --bcast --bcast-exclude=/lib true", "ok"},
    {"srun --send-libs true", "ok"},
    {"srun --bcast --send-libs=no true", "ok"},
    {"srun --bcast --send-libs true", "1: srun: error: --send-libs is not supported by berth"},
    {"srun --compress true", "ok"},
    {"srun --bcast --compress=none true", "ok"},
    {"srun --bcast --compress=lz4 true",
     "berth: --compress=lz4 has no effect: pieces are sent as they are"},
    {"srun --slurmd-debug=debug true",
     "berth: --slurmd-debug=debug has no effect: a step is told errors of its node, not more and "
     "not less"},
    {"sbatch --wait-all-nodes=1 --wrap x", "ok"},
    {"sbatch --profile=task --wrap x", "ok"},
    {"sbatch --acctg-freq=task=5 --wrap x",
     "berth: --acctg-freq=task=5 has no effect: GPUs are looked at once a second, all else when "
     "somebody asks (sstat) and when a task ends"},
    {"sbatch --mem-update=50@10 --wrap x",
     "1: sbatch: error: --mem-update is not supported by berth"},
    {"sbatch -S2 --wrap x",
     "berth: --core-spec=2 has no effect: jobs cannot change how many cores are left to the system "
     "(as in Slurm without AllowSpecResourcesUsage)"},
    {"srun --thread-spec=2 true",
     "berth: --thread-spec=2 has no effect: jobs cannot change how many threads are left to the "
     "system (as in Slurm without AllowSpecResourcesUsage)"},
};

TEST(Effects, OfEachOption) {
  for (const EffectCase& one : kEffectCases) EXPECT_EQ(effect(one.line), one.comes) << one.line;
}

TEST(Effects, WhatIsIgnoredIsNotShownLater) {
  const auto parsed = testing::parse_line("sbatch -S2 --cpu-freq=high --wrap x");
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(parsed->components.front().given.has(Opt::core_spec));
  EXPECT_TRUE(parsed->components.front().given.has(Opt::cpu_freq));
}

TEST(Effects, AStepIsNotToldWhatItsJobWas) {
  Surroundings around;
  around.environment = {{"SLURM_CPU_FREQ_REQ", "high"}};
  EXPECT_NE(effect("srun true", around), "ok");
  around.environment["SLURM_JOB_ID"] = "7";
  around.inside_job = true;
  EXPECT_EQ(effect("srun true", around), "ok");
  EXPECT_NE(effect("srun --cpu-freq=low true", around), "ok");
}

/// What nobody reads is not "recorded" for anybody, and the page says what comes of it.
TEST(Effects, ThePageTellsOfEach) {
  for (const Opt opt :
       {Opt::gpu_freq, Opt::mem_bind, Opt::cpu_freq, Opt::delay_boot, Opt::bcast_exclude,
        Opt::send_libs, Opt::compress, Opt::slurmd_debug, Opt::wait_all_nodes, Opt::profile,
        Opt::acctg_freq, Opt::mem_update, Opt::core_spec, Opt::thread_spec}) {
    EXPECT_NE(row_of(opt).status, Status::recorded) << dashed(opt);
    const bool tested = std::ranges::any_of(kEffectCases, [&](const EffectCase& one) {
      return std::string(one.line).find(dashed(opt)) != std::string::npos ||
             (opt == Opt::core_spec && std::string(one.line).find(" -S2") != std::string::npos);
    });
    EXPECT_TRUE(tested) << dashed(opt);
  }
}

}  // namespace
}  // namespace berth::request
