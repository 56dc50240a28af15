// What nodes tell of a job's GPUs is added up, stored with the job, and begins anew with each run.
#include <gtest/gtest.h>

#include "job/record.h"
#include "job/state_test_fixture.h"

namespace berth::job::testing {
namespace {

wire::JobGpus told(const Job& job, std::uint32_t rounds, std::uint32_t busy, std::uint64_t memory) {
  wire::JobGpus out;
  out.set_node(job.nodes.front());
  out.set_job_id(job.id);
  out.set_attempt(job.attempt);
  wire::GpuUse& use = *out.add_gpus();
  use.set_index(1);
  use.set_rounds(rounds);
  use.set_busy_sum(std::uint64_t{rounds} * busy);
  use.set_busy_most(busy);
  use.set_busy_now(busy);
  use.set_memory_now_mb(memory);
  use.set_memory_most_mb(memory);
  use.set_energy_mj(rounds);
  return out;
}

TEST(GpuUse, IsAddedUp) {
  Controller c;
  const JobId id = c.started("-N1 -n1");
  EXPECT_TRUE(c.state.job_gpus(told(c.at(id), 10, 90, 5000), c.now));
  EXPECT_TRUE(c.state.job_gpus(told(c.at(id), 5, 30, 100), c.now));
  const std::vector<wire::GpuUse>& all = c.at(id).gpu_uses->all;
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].rounds(), 15U);
  EXPECT_EQ(all[0].busy_sum(), 1050U);
  EXPECT_EQ(all[0].busy_most(), 90U);
  EXPECT_EQ(all[0].busy_now(), 30U);
  EXPECT_EQ(all[0].memory_most_mb(), 5000U);
  EXPECT_EQ(all[0].memory_now_mb(), 100U);
  EXPECT_EQ(all[0].energy_mj(), 15U);
  EXPECT_EQ(all[0].node(), c.at(id).nodes.front());
  const Job again = from_record(c.state.cluster(), to_record(c.state.cluster(), c.at(id)));
  ASSERT_TRUE(again.gpu_uses);
  EXPECT_EQ(again.gpu_uses->all[0].busy_sum(), 1050U);
}

TEST(GpuUse, EachGpuOnceAndNoMoreThanANodeCanHave) {
  Controller c;
  const JobId id = c.started("-N1 -n1");
  wire::JobGpus many = told(c.at(id), 1, 1, 1);
  many.clear_gpus();
  for (const std::uint32_t index : {7U, 3U, 7U, 1023U, 1024U, 65535U, UINT32_MAX}) {
    wire::GpuUse& use = *many.add_gpus();
    use.set_index(index);
    use.set_rounds(1);
  }
  EXPECT_TRUE(c.state.job_gpus(many, c.now));
  const auto kept = [](const Job& job) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> out;
    for (const wire::GpuUse& use : job.gpu_uses->all) out.emplace_back(use.index(), use.rounds());
    return out;
  };
  using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  EXPECT_EQ(kept(c.at(id)), (Pairs{{7, 2}, {3, 1}, {1023, 1}}));
  // What was read from the store is found as well.
  Job again = from_record(c.state.cluster(), to_record(c.state.cluster(), c.at(id)));
  const std::string node = c.at(id).nodes.front();
  again.gpu_uses->of(node, 3)->set_rounds(9);
  again.gpu_uses->of(node, 4)->set_rounds(5);
  again.gpu_uses->of("another", 3)->set_rounds(6);
  EXPECT_EQ(kept(again), (Pairs{{7, 2}, {3, 9}, {1023, 1}, {4, 5}, {3, 6}}));
}

TEST(GpuUse, OfAnotherRunOrAJobThatIsOverIsNotTaken) {
  Controller c;
  const JobId id = c.started("-N1 -n1");
  wire::JobGpus stale = told(c.at(id), 1, 1, 1);
  stale.set_attempt(stale.attempt() + 1);
  EXPECT_FALSE(c.state.job_gpus(stale, c.now));
  const wire::JobGpus late = told(c.at(id), 1, 1, 1);
  c.runs_to_the_end(id);
  EXPECT_FALSE(c.state.job_gpus(late, c.now));
  stale.set_job_id(999);
  EXPECT_FALSE(c.state.job_gpus(stale, c.now));
  EXPECT_FALSE(c.at(id).gpu_uses);
}

}  // namespace
}  // namespace berth::job::testing
