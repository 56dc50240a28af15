// A rank on its node, by the variables of each launcher and where several have left theirs.
#include "place/rank_variables.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace berth::place {
namespace {

using request::Environment;

const Environment kOpenMpi = {{"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
const Environment kMpich = {{"MPI_LOCALRANKID", "2"}, {"MPI_LOCALNRANKS", "4"}};
const Environment kMvapich = {{"MV2_COMM_WORLD_LOCAL_RANK", "3"},
                              {"MV2_COMM_WORLD_LOCAL_SIZE", "4"}};
const Environment kPals = {{"PMI_LOCAL_RANK", "0"}, {"PMI_LOCAL_SIZE", "3"}};
const Environment kTorchrun = {
    {"TORCHELASTIC_RUN_ID", "none"}, {"LOCAL_RANK", "5"}, {"LOCAL_WORLD_SIZE", "8"}};
/// A task of srun; --launcher=none leaves out the first two.
const Environment kSrun = {{"LOCAL_RANK", "1"},
                           {"LOCAL_WORLD_SIZE", "2"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_GTIDS", "4,5"},
                           {"SLURM_STEP_ID", "0"}};
const Environment kBareSrun = {
    {"SLURM_LOCALID", "1"}, {"SLURM_GTIDS", "4,5"}, {"SLURM_STEP_ID", "0"}};
const Environment kScript = {{"SLURM_LOCALID", "0"}, {"SLURM_GTIDS", "0"}, {"SLURM_STEP_ID", "-5"}};

Environment with(Environment first, const Environment& more) {
  for (const auto& [name, value] : more) first[name] = value;
  return first;
}

std::string shown_rank(const Environment& environment, bool daemon = false) {
  const auto rank = local_rank_of(environment, daemon);
  return rank ? fmt::format("{} of {}", rank->rank, rank->ranks) : "unknown";
}

TEST(RankVariables, OfEachLauncher) {
  struct Row {
    const char* who;
    Environment environment;
    const char* rank;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"Open MPI", kOpenMpi, "1 of 4"},
           {"MPICH and Intel", kMpich, "2 of 4"},
           {"MVAPICH2", kMvapich, "3 of 4"},
           {"PALS", kPals, "0 of 3"},
           {"torchrun", kTorchrun, "5 of 8"},
           {"srun", kSrun, "1 of 2"},
           {"srun --launcher=none", kBareSrun, "1 of 2"},
           {"torchrun under mpirun", with(kTorchrun, kOpenMpi), "5 of 8"},
           {"torchrun under srun", with(kSrun, kTorchrun), "5 of 8"},
           {"mpirun in a task of srun", with(kSrun, kOpenMpi), "1 of 4"},
           {"MPICH in a task of srun", with(kSrun, kMpich), "2 of 4"},
           {"mpirun in a script", with(kScript, kOpenMpi), "1 of 4"},
           {"nobody", {}, "unknown"},
           {"a batch script", kScript, "unknown"},
           {"half of a pair", {{"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}, "unknown"},
           {"no number", with(kBareSrun, {{"LOCAL_RANK", "x"}, {"LOCAL_WORLD_SIZE", "2"}}),
            "1 of 2"},
           {"none on the node", {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "0"}}, "unknown"},
       }) {
    EXPECT_EQ(shown_rank(row.environment), row.rank) << row.who;
  }
}

TEST(RankVariables, OfAnUnknownLauncherAreNotThoseOfItsDaemon) {
  EXPECT_EQ(shown_rank(kBareSrun, true), "unknown");
  EXPECT_EQ(shown_rank(with(kBareSrun, kMpich), true), "2 of 4");
}

TEST(RankVariables, CpusOfARank) {
  EXPECT_EQ(cpus_of_rank({{"SLURM_CPUS_PER_TASK", "4"}}), 4U);
  EXPECT_EQ(cpus_of_rank({}), 1U);
  EXPECT_EQ(cpus_of_rank({{"SLURM_CPUS_PER_TASK", "many"}}), 1U);
}

}  // namespace
}  // namespace berth::place
