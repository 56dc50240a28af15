#include "schedule/preempt.h"

#include <gtest/gtest.h>

#include <csignal>

#include "job/state_test_fixture.h"
#include "schedule/schedule.h"
#include "schedule/why.h"

namespace berth::schedule {
namespace {

using job::JobId;
using job::PreemptMode;
using job::testing::Controller;
using job::testing::kBob;
using job::testing::kStart;

/// Tiers: low 1, mid 5, high 10; on all nodes of the recordings.
cluster::Cluster three_tiers() {
  cluster::Cluster c = place::corpus::make();
  for (const char* name : {"low", "mid", "high"}) place::corpus::add_partition(c, name, {});
  return c;
}

job::Policy policy_of(PreemptMode mode) {
  job::Policy policy;
  policy.preempt.by_tier = true;
  policy.preempt.mode = mode;
  policy.partitions["mid"].priority_tier = 5;
  policy.partitions["high"].priority_tier = 10;
  return policy;
}

struct World : Controller {
  explicit World(PreemptMode mode = PreemptMode::cancel) : World(policy_of(mode)) {}
  explicit World(const job::Policy& policy) : Controller(policy, three_tiers()) {}

  JobId runs(const std::string& line) {
    const JobId id = submit(line);
    look();
    EXPECT_EQ(at(id).base, job::Base::running) << line << ": " << shown(id);
    begun(id);
    return id;
  }
  Figures look() {
    Figures all;
    constexpr int kMost = 1000;
    for (int i = 0; i < kMost; ++i) {
      const Figures some = scheduler.run(state, now);
      all.started += some.started;
      all.preempted += some.preempted;
      if (!some.unfinished) break;
    }
    return all;
  }
  std::string fact(JobId id) {
    std::string out;
    for (const std::string& one : scheduler.why(state, at(id), now).facts) out += one + "; ";
    return out;
  }

  Scheduler scheduler;
};

TEST(Preempt, AHigherTierTakesTheFewestItNeeds) {
  World w;
  const JobId two = w.runs("-p low -w gpu1 --gpus=2 -n1 --mem=1G");
  const JobId one = w.runs("-p low -w gpu1 --gpus=1 -n1 --mem=1G");
  const JobId other = w.runs("-p low -w gpu1 --gpus=1 -n1 --mem=1G");
  const JobId urgent = w.submit("-p high -w gpu1 --gpus=2 -n1 --mem=1G");
  EXPECT_EQ(w.look().preempted, 1U);
  EXPECT_EQ(w.shown(two), "PREEMPTED+COMPLETING None") << "one that has two, not two that have one";
  EXPECT_EQ(w.shown(one), "RUNNING None");
  EXPECT_EQ(w.shown(other), "RUNNING None");
  EXPECT_EQ(w.shown(urgent), "PENDING Resources");
  EXPECT_NE(w.fact(urgent).find("job 1 gives way to it"), std::string::npos) << w.fact(urgent);
  // Nothing more goes, however often it is looked at, and nobody else gets the place.
  const JobId small = w.submit("-p low -w gpu1 --gpus=1 -n1 --mem=1G");
  w.now += 5;
  w.state.look_again(w.now);
  w.state.tick(w.now);
  EXPECT_EQ(w.look().preempted, 0U);
  w.gone(two);
  w.look();
  EXPECT_EQ(w.shown(urgent), "RUNNING+CONFIGURING None");
  EXPECT_EQ(w.at(small).base, job::Base::pending);
  EXPECT_EQ(w.shown(two), "PREEMPTED None");
  EXPECT_EQ(w.state.preemptions(), 1U);
}

TEST(Preempt, NobodyGoesWithoutNeedOrInVain) {
  World w;
  const JobId low = w.runs("-p low -w gpu1 --gpus=2 -n1 --mem=1G");
  w.runs("-p high -w gpu1 --gpus=2 -n1 --mem=1G");
  // Four would need those of the same tier as well.
  const JobId four = w.submit("-p high -w gpu1 --gpus=4 -n1 --mem=1G");
  EXPECT_EQ(w.look().preempted, 0U);
  EXPECT_EQ(w.shown(low), "RUNNING None");
  EXPECT_NE(w.fact(four).find("job 2 does not give way: PriorityTier is not lower"),
            std::string::npos)
      << w.fact(four);
  EXPECT_NE(w.fact(four).find("job 1 would give way"), std::string::npos) << w.fact(four);
  // What ends already makes room enough.
  World v;
  const JobId ends = v.runs("-p low -w gpu1 --gpus=2 -n1 --mem=1G");
  const JobId stays = v.runs("-p low -w gpu1 --gpus=2 -n1 --mem=1G");
  v.script_ends(ends);
  const JobId urgent = v.submit("-p high -w gpu1 --gpus=2 -n1 --mem=1G");
  EXPECT_EQ(v.look().preempted, 0U);
  EXPECT_EQ(v.shown(stays), "RUNNING None");
  v.gone(ends);
  v.look();
  EXPECT_EQ(v.at(urgent).base, job::Base::running);
}

TEST(Preempt, TheLowestTierGoesFirst) {
  struct Row {
    bool youngest_first;
    JobId goes;
  };
  for (const Row row : {Row{false, 2}, Row{true, 3}}) {
    job::Policy policy = policy_of(PreemptMode::cancel);
    policy.preempt.youngest_first = row.youngest_first;
    World w(policy);
    w.runs("-p mid -w gpu1 --gpus=1 -n1 --mem=1G");
    w.runs("-p low -w gpu1 --gpus=1 -n1 --mem=1G");
    w.now += 10;
    w.runs("-p low -w gpu1 --gpus=1 -n2 --mem=1G");  // larger, and younger
    w.runs("-p mid -w gpu1 --gpus=1 -n1 --mem=1G");
    w.submit("-p high -w gpu1 --gpus=1 -n1 --mem=1G");
    EXPECT_EQ(w.look().preempted, 1U);
    EXPECT_EQ(w.at(row.goes).base, job::Base::preempted) << row.youngest_first;
  }
}

TEST(Preempt, SomeAreSpared) {
  struct Row {
    const char* what;
    void (*change)(job::Policy&);
    const char* said;
  };
  const Row rows[] = {
      {"partition off", [](job::Policy& p) { p.partitions["low"].preempt_mode = PreemptMode::off; },
       "PreemptMode=OFF"},
      {"cluster off", [](job::Policy& p) { p.preempt.mode = PreemptMode::off; }, "PreemptMode=OFF"},
      {"too young", [](job::Policy& p) { p.preempt.exempt = 300; },
       "PreemptExemptTime, over in 00:05:00"},
      {"not of lower priority", [](job::Policy& p) { p.preempt.lower_priority_only = true; },
       "PreemptMode=PRIORITY"},
      {"important", [](job::Policy& p) { p.preempt.min_exempt_priority = 1; },
       "min_exempt_priority"},
      {"no preemption", [](job::Policy& p) { p.preempt.by_tier = false; }, ""},
  };
  for (const Row& row : rows) {
    job::Policy policy = policy_of(PreemptMode::cancel);
    row.change(policy);
    World w(policy);
    const JobId low = w.runs("-p low -w gpu1 --exclusive");
    const JobId urgent = w.submit("-p high -w gpu1 --gpus=1 -n1 --mem=1G");
    EXPECT_EQ(w.look().preempted, 0U) << row.what;
    EXPECT_EQ(w.shown(low), "RUNNING None") << row.what;
    EXPECT_NE(w.fact(urgent).find(row.said), std::string::npos) << row.what << w.fact(urgent);
  }
}

TEST(Preempt, WhoIsTooYoungGoesWhenItsTimeHasCome) {
  job::Policy policy = policy_of(PreemptMode::cancel);
  policy.preempt.exempt = 300;
  World w(policy);
  const JobId low = w.runs("-p low -w gpu1 --exclusive");
  w.submit("-p high -w gpu1 --exclusive");
  w.look();
  ASSERT_EQ(w.state.next_deadline(), kStart + 300);
  w.now = kStart + 300;
  w.state.tick(w.now);
  EXPECT_EQ(w.look().preempted, 1U);
  EXPECT_EQ(w.shown(low), "PREEMPTED+COMPLETING None");
}

TEST(Preempt, RequeuedOnesComeBackLater) {
  World w(PreemptMode::requeue);
  const JobId again = w.runs("-p low -w gpu1 --exclusive");
  const JobId never = w.runs("-p low -w gpu2 --exclusive --no-requeue");
  w.submit("-p high -w gpu[1-2] -N2 --exclusive");
  EXPECT_EQ(w.look().preempted, 2U);
  EXPECT_EQ(w.shown(never), "PREEMPTED+COMPLETING None");
  w.gone(again);
  w.gone(never);
  EXPECT_EQ(w.shown(again), "PENDING BeginTime");
  EXPECT_EQ(w.at(again).restarts, 1U);
  EXPECT_NE(w.fact(again).find("it gave way to job 3"), std::string::npos) << w.fact(again);
  w.look();
  EXPECT_EQ(w.at(3).base, job::Base::running);
  w.begun(3);
  w.runs_to_the_end(3);
  w.now += 200;
  w.state.tick(w.now);
  w.look();
  EXPECT_EQ(w.at(again).base, job::Base::running);
  EXPECT_FALSE(w.at(again).preempted);
}

TEST(Preempt, GraceIsTimeToEnd) {
  job::Policy policy = policy_of(PreemptMode::requeue);
  policy.partitions["low"].grace = 60;
  World w(policy);
  const JobId low = w.runs("-p low -w gpu1 --exclusive -t 100");
  w.state.take_effects();
  const JobId urgent = w.submit("-p high -w gpu1 --exclusive -t 10");
  EXPECT_EQ(w.look().preempted, 1U);
  EXPECT_EQ(w.shown(low), "RUNNING None");
  EXPECT_EQ(w.at(low).limit_at(), kStart + 60);
  EXPECT_EQ(w.at(urgent).planned_start, kStart + 60);
  std::vector<int> signals;
  for (const auto& one : w.effects<job::SignalNodes>()) signals.push_back(one.message.signal());
  EXPECT_EQ(signals, (std::vector<int>{SIGCONT, SIGTERM}));
  // Nobody gets between, and nobody else has to go.
  const JobId between = w.submit("-p low -w gpu1 --exclusive -t 1");
  w.now += 30;
  w.state.look_again(w.now);
  w.state.tick(w.now);
  EXPECT_EQ(w.look().preempted, 0U);
  EXPECT_EQ(w.at(between).base, job::Base::pending);
  w.now = kStart + 60;
  w.state.tick(w.now);
  const auto ends = w.effects<job::EndJob>();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].cause, "PREEMPTION");
  EXPECT_EQ(w.shown(low), "PENDING+COMPLETING+REQUEUED BeginTime");
  w.gone(low);
  w.look();
  EXPECT_EQ(w.at(urgent).base, job::Base::running);
}

TEST(Preempt, WhatIsKnownSurvivesARestart) {
  job::Policy policy = policy_of(PreemptMode::cancel);
  policy.partitions["low"].grace = 60;
  World w(policy);
  const JobId low = w.runs("-p low -w gpu1 --exclusive -t 100");
  const JobId urgent = w.submit("-p high -w gpu1 --exclusive -t 10");
  w.look();
  job::Stored stored;
  const job::Dirty dirty = w.state.take_dirty();
  stored.jobs = dirty.jobs;
  stored.next_job_id = 10;
  World again(policy);
  again.now = kStart + 20;
  again.state.load(
      stored, [&](std::uint64_t blob) { return std::optional(w.blobs.at(blob)); }, again.now);
  EXPECT_EQ(again.look().preempted, 0U);
  ASSERT_NE(again.state.giving_way_to(urgent), nullptr);
  EXPECT_EQ(again.at(urgent).planned_start, kStart + 60);
  again.now = kStart + 60;
  again.state.tick(again.now);
  EXPECT_EQ(again.shown(low), "PREEMPTED+COMPLETING None");
}

TEST(Preempt, SuspendedOnesLendTheirCoresAndNothingElse) {
  World w(PreemptMode::suspend);
  const JobId low = w.runs("-p low -w cpu1 -n32 --mem=1G");
  const JobId gpu = w.runs("-p low -w gpu1 --gpus=4 -n1 --mem=1G");
  const JobId urgent = w.submit("-p high -w cpu1 -n16 --mem=1G");
  const JobId wants_gpu = w.submit("-p high -w gpu1 --gpus=1 -n1 --mem=1G");
  EXPECT_EQ(w.look().preempted, 1U);
  EXPECT_EQ(w.shown(low), "SUSPENDED None");
  EXPECT_EQ(w.shown(urgent), "RUNNING+CONFIGURING None") << "there is nothing to wait for";
  EXPECT_EQ(w.shown(gpu), "RUNNING None");
  EXPECT_EQ(w.at(wants_gpu).base, job::Base::pending);
  // The other half of its cores is not for those of its own tier.
  const JobId same = w.submit("-p low -w cpu1 -n1 --mem=1G");
  w.look();
  EXPECT_EQ(w.at(same).base, job::Base::pending);
  w.begun(urgent);
  w.runs_to_the_end(urgent);
  w.now += 10;
  w.look();
  EXPECT_EQ(w.shown(low), "RUNNING None");
  EXPECT_EQ(w.at(low).seconds_suspended, 10);
  w.runs_to_the_end(low);
  w.look();
  EXPECT_EQ(w.at(same).base, job::Base::running);
}

TEST(Preempt, AnExclusiveUserTakesNothingFromOthers) {
  World w;
  const JobId mine = w.runs("-p low -w gpu1 --gpus=4 -n1 --mem=1G -t 100");
  const JobId other =
      w.submit("-p high -w gpu1 --exclusive=user --gpus=1 -n1 --mem=1G -t 10", "sbatch", kBob);
  EXPECT_EQ(w.look().preempted, 0U);
  EXPECT_NE(w.fact(other).find("nothing is taken from other users"), std::string::npos)
      << w.fact(other);
  w.submit("-p high -w gpu1 --exclusive=user --gpus=1 -n1 --mem=1G -t 10");
  EXPECT_EQ(w.look().preempted, 1U);
  EXPECT_EQ(w.at(mine).base, job::Base::preempted);
}

TEST(Preempt, LicencesAreTakenWhereThatIsAllowed) {
  for (const bool reclaims : {false, true}) {
    job::Policy policy = policy_of(PreemptMode::cancel);
    policy.licenses = {{"matlab", 3}};
    policy.preempt.reclaim_licenses = reclaims;
    World w(policy);
    const JobId other = w.runs("-p low -n1 --mem=1G");
    const JobId has = w.runs("-p low -n1 --mem=1G -L matlab:2");
    const JobId urgent = w.submit("-p high -n1 --mem=1G -L matlab:2");
    EXPECT_EQ(w.look().preempted, reclaims ? 1U : 0U);
    EXPECT_EQ(w.shown(urgent), "PENDING Licenses");
    EXPECT_EQ(w.shown(other), "RUNNING None");
    if (!reclaims) continue;
    w.gone(has);
    w.look();
    EXPECT_EQ(w.at(urgent).base, job::Base::running);
  }
}

}  // namespace
}  // namespace berth::schedule
