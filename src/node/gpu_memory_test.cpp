// Jobs that share a GPU: who has more of its memory than it was given.
#include "node/gpu_memory.h"

#include <gtest/gtest.h>

namespace berth::node {
namespace {

const NodeJob kOne{"n1", 7, 1};
const NodeJob kTwo{"n1", 8, 1};
const NodeStep kOneBatch{"n1", {7, 1, 100}};
const NodeStep kOneStep{"n1", {7, 1, 0}};
const NodeStep kTwoStep{"n1", {8, 1, 0}};

wire::GresShare part(const std::string& name, std::uint64_t units, std::uint64_t whole) {
  wire::GresShare out;
  out.set_name(name);
  out.add_units(0);
  out.add_units(units);
  out.add_whole(whole);
  out.add_whole(whole);
  return out;
}

Jobs::Holder holder(const NodeJob& at, const wire::GresShare& gres) {
  wire::NodeShare share;
  *share.add_gres() = gres;
  return {at, gpus_in(share), gpu_parts_in(share), "ann"};
}

/// Two GPUs of 80,000 MiB; jobs count them in another order than the library.
class Memory : public ::testing::Test {
 protected:
  std::optional<NodeStep> owner(std::uint32_t pid) {
    ++asked_;
    const auto at = owners_.find(pid);
    return at == owners_.end() ? std::nullopt : std::optional(at->second);
  }
  const GpuMemoryUse& look(const std::vector<survey::Process>& processes,
                           const std::vector<Jobs::Holder>& holders) {
    GpuRound round;
    round.processes = processes;
    memory_.round(round, holders);
    return memory_.uses().at({holders.front().at, 1});
  }

  std::map<std::uint32_t, NodeStep> owners_ = {
      {11, kOneBatch}, {12, kOneStep}, {13, kOneStep}, {21, kTwoStep}};
  int asked_ = 0;
  GpuMemory memory_{{{1U, {}, "h100", 80000}, {0U, {}, "h100", 80000}},
                    [this](std::uint32_t pid) { return owner(pid); }};
};

TEST_F(Memory, OfAJobAreTheProcessesOfItsSteps) {
  const std::vector<Jobs::Holder> jobs = {holder(kOne, part("gpumem", 10240, 80000)),
                                          holder(kTwo, part("gpumem", 20480, 80000))};
  const GpuMemoryUse& use = look({{0, 11, 1000, {}},
                                  {0, 12, 3000, {}},
                                  {0, 13, 4000, {}},
                                  {1, 12, 50000, {}},  // another GPU
                                  {0, 99, 50000, {}},  // nobody's
                                  {0, 13, {}, {}},     // the driver does not know
                                  {0, 21, 20000, {}}},
                                 jobs);
  EXPECT_EQ(use.used_mb, 8000U);
  EXPECT_EQ(use.given_mb, 10240U);
  EXPECT_TRUE(use.asked_for);
  EXPECT_FALSE(use.over());
  EXPECT_EQ(use.step, kOneStep);
  EXPECT_EQ(use.pid, 13U);
  EXPECT_EQ(memory_.uses().at({kTwo, 1}).used_mb, 20000U);
}

TEST_F(Memory, LooksInARowAreCounted) {
  const std::vector<Jobs::Holder> jobs = {holder(kOne, part("gpumem", 10240, 80000))};
  EXPECT_EQ(look({{0, 12, 10240, {}}}, jobs).looks_over, 0) << "as much as was given";
  EXPECT_EQ(look({{0, 12, 10241, {}}}, jobs).looks_over, 1);
  EXPECT_EQ(look({{0, 12, 10241, {}}}, jobs).looks_over, 2);
  EXPECT_EQ(look({{0, 12, 9000, {}}}, jobs).looks_over, 0);
  EXPECT_EQ(look({{0, 12, 10241, {}}}, jobs).looks_over, 1);
}

TEST_F(Memory, ShardsStandForTheirPartOfTheMemory) {
  const GpuMemoryUse& use = look({{0, 12, 30000, {}}}, {holder(kOne, part("shard", 3, 8))});
  EXPECT_EQ(use.given_mb, 30000U);
  EXPECT_FALSE(use.asked_for);
  EXPECT_FALSE(use.over());
}

TEST_F(Memory, ShardsOfAGpuThatDoesNotTellItsMemoryBoundNothing) {
  GpuMemory memory({{1U, {}, "h100", 0}, {0U, {}, "h100", 0}},
                   [this](std::uint32_t pid) { return owner(pid); });
  const std::vector<Jobs::Holder> jobs = {holder(kOne, part("shard", 3, 8)),
                                          holder(kTwo, part("shard", 3, 8))};
  GpuRound round;
  round.processes = {{0, 12, 30000, {}}};
  for (int i = 0; i < 3; ++i) memory.round(round, jobs);
  const GpuMemoryUse& use = memory.uses().at({kOne, 1});
  EXPECT_EQ(use.used_mb, 30000U) << "it is measured";
  EXPECT_FALSE(use.over());
  EXPECT_TRUE(memory.untold({kOne, 1}, jobs).empty());
}

TEST_F(Memory, EachGreedyStepIsEndedOnce) {
  const GpuMemory::Key key{kOne, 1};
  const std::vector<Jobs::Holder> jobs = {holder(kOne, part("gpumem", 10240, 80000))};
  const std::vector<survey::Process> both = {{0, 11, 11000, {}}, {0, 12, 20000, {}}};
  look(both, jobs);
  EXPECT_EQ(memory_.take_greedy(key), std::nullopt) << "one look may be wrong";
  look(both, jobs);
  EXPECT_EQ(memory_.take_greedy(key), kOneStep);
  EXPECT_EQ(memory_.take_greedy(key), std::nullopt);
  look(both, jobs);
  EXPECT_EQ(memory_.take_greedy(key), std::nullopt) << "it takes a moment to end";
  look({{0, 11, 11000, {}}}, jobs);
  EXPECT_EQ(memory_.take_greedy(key), kOneBatch) << "what is left is too much as well";
  look({{0, 11, 11000, {}}}, jobs);
  EXPECT_EQ(memory_.take_greedy(key), std::nullopt);
}

TEST_F(Memory, WhatAnEndingStepHasIsNotHeldAgainstTheOthers) {
  const GpuMemory::Key key{kOne, 1};
  const std::vector<Jobs::Holder> jobs = {holder(kOne, part("gpumem", 10240, 80000))};
  const std::vector<survey::Process> both = {{0, 11, 9000, {}}, {0, 12, 20000, {}}};
  for (int i = 0; i < 2; ++i) look(both, jobs);
  EXPECT_EQ(memory_.take_greedy(key), kOneStep);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(look({{0, 11, 9000, {}}, {0, 12, 8000, {}}}, jobs).over());
    EXPECT_EQ(memory_.take_greedy(key), std::nullopt) << i;
  }
}

TEST_F(Memory, WhoComesLaterIsToldToo) {
  const GpuMemory::Key key{kOne, 1};
  std::vector<Jobs::Holder> jobs = {holder(kOne, part("gpumem", 10240, 80000))};
  const std::vector<survey::Process> processes = {{0, 12, 20000, {}}};
  look(processes, jobs);
  EXPECT_TRUE(memory_.untold(key, jobs).empty());
  look(processes, jobs);
  EXPECT_EQ(memory_.untold(key, jobs), std::vector{kOne});
  memory_.told(key, kOne);
  EXPECT_TRUE(memory_.untold(key, jobs).empty());
  jobs.push_back(holder(kTwo, part("gpumem", 1024, 80000)));
  look(processes, jobs);
  EXPECT_EQ(memory_.untold(key, jobs), std::vector{kTwo});
  look(processes, jobs);
  EXPECT_EQ(memory_.untold(key, jobs), std::vector{kTwo}) << "nothing of it has run yet";
  memory_.told(key, kTwo);
  EXPECT_TRUE(memory_.untold(key, jobs).empty());
}

TEST_F(Memory, OfShardsNobodyHearsWhoIsAlone) {
  const GpuMemory::Key key{kOne, 1};
  std::vector<Jobs::Holder> jobs = {holder(kOne, part("shard", 1, 8))};
  const std::vector<survey::Process> processes = {{0, 12, 20000, {}}};
  for (int i = 0; i < 3; ++i) look(processes, jobs);
  EXPECT_TRUE(memory_.untold(key, jobs).empty());
  EXPECT_EQ(memory_.take_greedy(key), std::nullopt);
  jobs.push_back(holder(kTwo, part("shard", 1, 8)));
  look(processes, jobs);
  EXPECT_EQ(memory_.untold(key, jobs), (std::vector{kOne, kTwo}));
}

TEST_F(Memory, WhoHasAGpuAloneIsNotLookedAt) {
  GpuRound round;
  round.processes = {{0, 12, 70000, {}}};
  memory_.round(round, {holder(kOne, part("gpu", 1, 1)), holder(kTwo, part("mps", 50, 100))});
  EXPECT_TRUE(memory_.uses().empty());
  EXPECT_EQ(asked_, 0);
}

TEST_F(Memory, WhatNodesAreNotToldBoundsNothing) {
  wire::GresShare old = part("shard", 3, 8);
  old.clear_whole();
  GpuRound round;
  round.processes = {{0, 12, 70000, {}}};
  memory_.round(round, {holder(kOne, old)});
  EXPECT_TRUE(memory_.uses().empty());
}

}  // namespace
}  // namespace berth::node
