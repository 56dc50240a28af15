// Multifactor priority: the arithmetic as a table, and the order of the queue as time passes.
#include "job/priority.h"

#include "job/state_test_fixture.h"

namespace berth::job {
namespace {

using testing::Controller;
using testing::kAlice;
using testing::kBob;
using testing::kRoot;

struct Row {
  const char* what;
  void (*set)(PriorityPolicy&);
  const char* line;
  Time waited;
  std::uint32_t priority;
};

// The cluster of the recordings: 8 nodes, 160 CPUs; partition debug has all, ml four of 16 CPUs
// with 4 GPUs each. Partition factors: debug 1, ml 4.
const Row kRows[] = {
    {"no weights", [](PriorityPolicy&) {}, "", 86400, 1},
    {"nice cannot go below one", [](PriorityPolicy&) {}, "--nice=50", 0, 1},
    {"nice below zero", [](PriorityPolicy&) {}, "--nice=-50", 0, 50},
    {"half of the greatest age", [](PriorityPolicy& p) { p.weight_age = 1000; }, "", 302400, 500},
    {"older than that", [](PriorityPolicy& p) { p.weight_age = 1000; }, "", 9999999, 1000},
    {"age and nice", [](PriorityPolicy& p) { p.weight_age = 1000; }, "--nice=100", 302400, 400},
    {"two of eight nodes, 16 of 160 CPUs", [](PriorityPolicy& p) { p.weight_size = 10000; },
     "-N2 -n16", 0, 1750},
    {"small ones first",
     [](PriorityPolicy& p) {
       p.weight_size = 10000;
       p.favor_small = true;
     },
     "-N2 -n16", 0, 8250},
    {"size over time",
     [](PriorityPolicy& p) {
       p.weight_size = 10000;
       p.size_over_time = true;
     },
     "-N2 -n16 -t 10", 0, 100},
    {"a quarter of the best partition", [](PriorityPolicy& p) { p.weight_partition = 1000; }, "", 0,
     250},
    {"the best partition", [](PriorityPolicy& p) { p.weight_partition = 1000; }, "-p ml", 0, 1000},
    {"the better of two", [](PriorityPolicy& p) { p.weight_partition = 1000; }, "-p debug,ml", 0,
     1000},
    {"partitions as they are",
     [](PriorityPolicy& p) {
       p.weight_partition = 1000;
       p.raw_partition = true;
     },
     "-p ml", 0, 4000},
    {"GPUs of the partition", [](PriorityPolicy& p) { p.weight_tres = {{"gres/gpu", 1000}}; },
     "-p ml --gpus=4", 0, 250},
    {"GPUs and CPUs", [](PriorityPolicy& p) { p.weight_tres = {{"cpu", 640}, {"gres/gpu", 1000}}; },
     "-p ml -n8 --gpus=4", 0, 330},
    {"GPUs counted",
     [](PriorityPolicy& p) {
       p.weight_tres = {{"gres/gpu", 10}};
       p.raw_tres = true;
     },
     "-p ml --gpus=4", 0, 40},
    {"what needs accounting counts nothing",
     [](PriorityPolicy& p) { p.weight_assoc = p.weight_fair_share = p.weight_qos = 1e6; }, "", 0,
     1},
    {"as much as there is", [](PriorityPolicy& p) { p.weight_age = p.weight_partition = 4e9; },
     "-p ml", 9999999, UINT32_MAX},
};

Policy policy_with(void (*set)(PriorityPolicy&)) {
  Policy policy;
  policy.partitions["debug"].priority_job_factor = 1;
  policy.partitions["ml"].priority_job_factor = 4;
  set(policy.priority);
  return policy;
}

TEST(Priority, IsTheWeightedSum) {
  for (const Row& row : kRows) {
    Controller c(policy_with(row.set));
    const JobId id = c.submit(row.line, "sbatch", kRoot);
    c.now += row.waited;
    if (row.waited > 0) c.state.tick(c.now);
    EXPECT_EQ(c.at(id).priority, row.priority) << row.what;
    EXPECT_EQ(c.state.key_of(id)->priority, row.priority) << row.what;
  }
}

Policy with_age(double weight) {
  Policy policy;
  policy.priority.weight_age = weight;
  policy.priority.max_age = 1000;
  policy.priority.calc_period = 100;
  return policy;
}

TEST(Priority, IsWorkedOutAgainEveryPeriodAndNotBefore) {
  Controller c(with_age(1000));
  EXPECT_FALSE(c.state.next_deadline());
  const JobId id = c.submit("-n1");
  ASSERT_EQ(c.state.next_deadline(), c.now + 100);
  c.now += 99;
  c.state.tick(c.now);
  EXPECT_EQ(c.at(id).priority, 1u);
  c.now += 1;
  c.state.take_wake();
  c.state.take_changed();
  c.state.take_dirty();
  c.state.tick(c.now);
  EXPECT_EQ(c.at(id).priority, 100u);
  EXPECT_EQ(c.state.next_deadline(), c.now + 100);
  EXPECT_TRUE(c.state.take_wake().everything);
  // A long queue is neither stored nor shown anew job by job.
  EXPECT_TRUE(c.state.take_dirty().empty());
  EXPECT_TRUE(c.state.take_changed().empty());
  EXPECT_EQ(c.state.priority_round(), 1u);
}

std::vector<JobId> order(const Controller& c) {
  std::vector<JobId> out;
  for (const QueueKey& key : c.state.queue()) out.push_back(key.id);
  return out;
}

TEST(Priority, AgeOvertakesWhatWasAhead) {
  Policy policy = with_age(1000);
  policy.priority.weight_partition = 300;
  policy.partitions["ml"].priority_job_factor = 2;
  policy.partitions["debug"].priority_job_factor = 1;  // 150
  Controller c(policy);
  const JobId old = c.submit("-n1");
  c.now += 100;
  c.state.tick(c.now);  // 150 + 100
  c.now += 90;
  const JobId better = c.submit("-n1 -p ml");  // 300
  EXPECT_EQ(order(c), (std::vector{better, old}));
  c.now += 10;
  c.state.tick(c.now);
  EXPECT_EQ(c.at(old).priority, 350u);
  EXPECT_EQ(c.at(better).priority, 310u);
  EXPECT_EQ(order(c), (std::vector{old, better}));
}

TEST(Priority, AgeStandsStillWhileHeldOrDependent) {
  Controller c(with_age(1000));
  const JobId first = c.submit("-n1");
  const JobId waits = c.submit("-n1 --dependency=afterok:" + std::to_string(first));
  const JobId later = c.submit("-n1 --begin=now+200");
  c.now += 100;
  ASSERT_TRUE(c.state.hold(first, kAlice, false, c.now));
  c.now += 500;
  c.state.tick(c.now);
  ASSERT_TRUE(c.state.release(first, kAlice, c.now));
  EXPECT_EQ(c.at(first).priority, 100u);
  EXPECT_EQ(c.at(waits).priority, 1u);
  EXPECT_EQ(c.at(later).priority, 1u);  // eligible since this tick
  c.now += 100;
  c.state.tick(c.now);
  EXPECT_EQ(c.at(first).priority, 200u);
  EXPECT_EQ(c.at(waits).priority, 1u);
  EXPECT_EQ(c.at(later).priority, 100u);
}

TEST(Priority, AgeMayCountFromTheSubmission) {
  Policy policy = with_age(1000);
  policy.priority.accrue_always = true;
  Controller c(policy);
  const JobId id = c.submit("-n1 -H");
  c.now += 300;
  ASSERT_TRUE(c.state.release(id, kAlice, c.now));
  EXPECT_EQ(c.at(id).priority, 300u);
}

TEST(Priority, OnlyUp) {
  for (const bool only_up : {true, false}) {
    Policy policy;
    policy.priority.weight_partition = 1000;
    policy.priority.only_up = only_up;
    Controller c(policy);
    const JobId id = c.submit("-n1");
    EXPECT_EQ(c.at(id).priority, 1000u);
    policy.priority.weight_partition = 10;
    c.state.reconfigure(place::corpus::make(), policy, c.now);
    EXPECT_EQ(c.at(id).priority, only_up ? 1000u : 10u);
    JobChange change;
    change.nice = 100;  // whoever asks for less gets less
    ASSERT_TRUE(c.state.change(id, change, kAlice, c.now));
    EXPECT_EQ(c.at(id).priority, only_up ? 900u : 1u);
  }
}

TEST(Priority, SetByHandItStays) {
  Controller c(with_age(1000));
  const JobId id = c.submit("-n1");
  const JobId other = c.submit("-n1");
  JobChange change;
  change.priority = 77;
  ASSERT_TRUE(c.state.change(id, change, kRoot, c.now));
  c.now += 100;
  c.state.tick(c.now);
  EXPECT_EQ(c.at(id).priority, 77u);
  EXPECT_EQ(c.at(other).priority, 100u);
  EXPECT_EQ(order(c), (std::vector{other, id}));
}

TEST(Priority, AgeOutlivesARestart) {
  Controller c(with_age(1000));
  const JobId id = c.submit("-n1");
  const JobId held = c.submit("-n1");
  c.now += 150;
  ASSERT_TRUE(c.state.hold(held, kAlice, false, c.now));
  Stored stored;
  stored.jobs = c.state.take_dirty().jobs;
  stored.next_job_id = 10;
  State again(place::corpus::make(), with_age(1000));
  c.now += 50;
  again.load(stored, [&](std::uint64_t blob) { return c.blobs[blob]; }, c.now);
  EXPECT_EQ(again.find(id)->priority, 200u);
  ASSERT_TRUE(again.release(held, kAlice, c.now));
  EXPECT_EQ(again.find(held)->priority, 150u);
}

TEST(Priority, BasicIsFirstComeFirstServed) {
  Policy policy = with_age(1000);
  policy.priority.multifactor = false;
  Controller c(policy);
  const JobId a = c.submit("-n1");
  const JobId b = c.submit("-n1");
  const JobId last = c.submit("-n1 --nice=1000");
  EXPECT_EQ(c.at(a).priority, 4294901760u);
  EXPECT_EQ(c.at(b).priority, 4294901759u);
  EXPECT_EQ(order(c), (std::vector{a, b, last}));
  EXPECT_FALSE(c.state.next_deadline());
  // Who waits keeps the place it has when slurm.conf changes.
  c.state.reconfigure(place::corpus::make(), with_age(1000), c.now);
  EXPECT_EQ(c.at(a).priority, 1u);
  c.state.reconfigure(place::corpus::make(), policy, c.now);
  const JobId after = c.submit("-n1");
  EXPECT_EQ(order(c), (std::vector{a, b, after, last}));
}

Policy may_top(double age) {
  Policy policy = with_age(age);
  policy.user_top = true;
  return policy;
}

TEST(Top, TakesThePlaceOfTheFirstOfItsOwner) {
  Policy policy = may_top(1000);
  Controller c(policy);
  std::vector<JobId> mine;
  std::vector<JobId> others;
  for (int i = 0; i < 3; ++i) {
    mine.push_back(c.submit("-n1"));
    others.push_back(c.submit("-n1", "sbatch", kBob));
    c.now += 100;
    c.state.tick(c.now);
  }
  ASSERT_TRUE(c.state.top(mine[2], kAlice, c.now));
  EXPECT_EQ(c.at(mine[2]).priority, 300u);
  EXPECT_EQ(order(c), (std::vector{others[0], mine[2], mine[0], others[1], mine[1], others[2]}));
  c.now += 100;  // and so it stays
  c.state.tick(c.now);
  EXPECT_EQ(order(c), (std::vector{others[0], mine[2], mine[0], others[1], mine[1], others[2]}));
}

TEST(Top, WorksWhereNothingHasAWeight) {
  Controller c(may_top(0));
  const JobId a = c.submit("-n1");
  const JobId b = c.submit("-n1");
  const JobId elsewhere = c.submit("-n1 -p ml");
  ASSERT_TRUE(c.state.top(b, kAlice, c.now));
  EXPECT_EQ(order(c), (std::vector{b, a, elsewhere}));
  ASSERT_TRUE(c.state.top(a, kAlice, c.now));
  EXPECT_EQ(order(c), (std::vector{a, b, elsewhere}));
}

TEST(Top, EqualOnesKeepTheirOrderBehindIt) {
  Policy policy = may_top(0);
  policy.priority.weight_partition = 100;
  Controller c(policy);
  std::vector<JobId> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(c.submit("-n1"));
  ASSERT_TRUE(c.state.top(jobs[1], kAlice, c.now));
  EXPECT_EQ(order(c), (std::vector{jobs[1], jobs[0], jobs[2], jobs[3]}));
  ASSERT_TRUE(c.state.top(jobs[3], kAlice, c.now));
  EXPECT_EQ(order(c), (std::vector{jobs[3], jobs[1], jobs[0], jobs[2]}));
  EXPECT_EQ(c.at(jobs[3]).priority, 100u);  // nobody else was passed by
}

TEST(Top, IsForAdministratorsUnlessAllowed) {
  Controller c(with_age(0));
  const JobId a = c.submit("-n1");
  const JobId b = c.submit("-n1");
  EXPECT_FALSE(c.state.top(b, kAlice, c.now));
  EXPECT_TRUE(c.state.top(b, kRoot, c.now));
  EXPECT_EQ(order(c), (std::vector{b, a}));
  ASSERT_TRUE(c.state.hold(a, kAlice, false, c.now));
  EXPECT_FALSE(c.state.top(a, kRoot, c.now));
}

}  // namespace
}  // namespace berth::job
