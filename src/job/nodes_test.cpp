// Nodes: registration, silence, what happens to their jobs; and recovery from the store.
#include <gtest/gtest.h>

#include "job/record.h"
#include "job/state_test_fixture.h"

namespace berth::job::testing {
namespace {

TEST(Nodes, LessThanConfiguredIsNotUsed) {
  Controller c;
  wire::NodeReport report;
  report.set_memory_mb(1000);
  c.up("cpu1", report);
  const NodeState& node = *c.state.find_node("cpu1");
  EXPECT_TRUE(node.invalid);
  EXPECT_EQ(node.reason, "Low RealMemory (reported:1000 < 100.00% of configured:65536)");
  EXPECT_FALSE(node.usable());
  c.up("cpu1");
  EXPECT_TRUE(node.usable());
  EXPECT_EQ(node.reason, "");
  wire::NodeReport gpus;
  gpus.add_gres()->set_name("gpu");
  gpus.mutable_gres(0)->set_count(1);
  c.up("gpu1", gpus);
  EXPECT_EQ(c.state.find_node("gpu1")->reason,
            "gres/gpu count reported lower than configured (1 < 4)");
}

TEST(Nodes, OfAReasonThatANodeTellsTheBeginningIsKept) {
  Controller c;
  c.state.node_trouble("gpu1", std::string(60 << 20, 'x'), c.now);
  EXPECT_TRUE(c.state.find_node("gpu1")->drain);
  EXPECT_EQ(c.state.find_node("gpu1")->reason, std::string(1021, 'x') + "...");
}

TEST(Nodes, FaultOfGresConfTakesItOut) {
  Controller c;
  wire::NodeReport report;
  report.set_gres_fault("gres.conf:2: Type=a100, but /dev/nvidia0 is an h100");
  c.up("gpu1", report);
  EXPECT_FALSE(c.state.find_node("gpu1")->usable());
  EXPECT_EQ(c.state.find_node("gpu1")->reason, report.gres_fault());
  c.up("gpu1");
  EXPECT_TRUE(c.state.find_node("gpu1")->usable());
}

TEST(Nodes, SilenceMakesItDownAndItsJobsStartAgainElsewhere) {
  Controller c;
  const JobId batch = c.started("-w gpu1 --mem=1G");
  const JobId mine = c.started("-w gpu1 --mem=1G", "salloc");
  c.state.node_lost("gpu1", c.now);
  EXPECT_FALSE(c.state.find_node("gpu1")->usable());
  EXPECT_EQ(c.shown(batch), "RUNNING None");
  EXPECT_EQ(c.state.next_deadline(), kStart + 300);
  c.now += 300;
  c.state.tick(c.now);
  EXPECT_EQ(c.state.find_node("gpu1")->reason, "Not responding");
  EXPECT_EQ(c.shown(batch), "PENDING BeginTime");
  EXPECT_EQ(c.at(batch).restarts, 1U);
  EXPECT_EQ(c.at(batch).failed_node, "gpu1");
  EXPECT_EQ(c.shown(mine), "NODE_FAIL NodeDown");
  EXPECT_TRUE(c.idle());
}

TEST(Nodes, DownCountsFromTheLastWordAndNotFromWhenItWasMissed) {
  Controller c;
  const JobId id = c.started("-w gpu1 --mem=1G", "salloc");
  c.now += 20;
  c.state.node_lost("gpu1", c.now - 20);
  EXPECT_FALSE(c.state.find_node("gpu1")->usable());
  // Its connection breaks as well: nothing new.
  c.state.node_lost("gpu1", c.now);
  c.now = kStart + 299;
  c.state.tick(c.now);
  EXPECT_EQ(c.shown(id), "RUNNING None");
  c.state.tick(kStart + 300);
  EXPECT_EQ(c.shown(id), "NODE_FAIL NodeDown");
}

TEST(Nodes, ANodeThatIsHeardAgainIsUsedAgain) {
  Controller c;
  const JobId id = c.started("-w gpu1 --mem=1G", "salloc");
  c.state.node_lost("gpu1", c.now);
  EXPECT_TRUE(c.state.node_heard("gpu1", c.now + 25));
  EXPECT_TRUE(c.state.find_node("gpu1")->usable());
  c.state.tick(c.now + 400);
  EXPECT_EQ(c.shown(id), "RUNNING None");
  c.state.node_lost("gpu1", c.now + 400);
  c.state.tick(c.now + 700);
  // It was given up meanwhile: what is there is compared when it registers.
  EXPECT_FALSE(c.state.node_heard("gpu1", c.now + 700));
  EXPECT_FALSE(c.state.find_node("gpu1")->usable());
}

TEST(Nodes, WhatAnAdministratorCallsSilentStaysSo) {
  Controller c;
  NodeChange change;
  change.state = "NORESP";
  change.caller = kRoot;
  ASSERT_TRUE(c.state.change_node("gpu1", change, c.now));
  EXPECT_TRUE(c.state.node_heard("gpu1", c.now));
  EXPECT_FALSE(c.state.find_node("gpu1")->usable());
  c.up("gpu1");
  EXPECT_TRUE(c.state.find_node("gpu1")->usable());
}

TEST(Nodes, AControllerThatStoodStillBlamesNobody) {
  Controller c;
  const JobId id = c.started("-w gpu1 --mem=1G", "salloc");
  c.state.node_lost("gpu1", c.now);
  c.now += 1000;
  c.state.stood_still(c.now);
  c.state.tick(c.now);
  EXPECT_EQ(c.shown(id), "RUNNING None");
  c.state.tick(c.now + 300);
  EXPECT_EQ(c.shown(id), "NODE_FAIL NodeDown");
}

TEST(Nodes, WithoutSlurmdTimeoutNobodyGoesDown) {
  Policy policy;
  policy.slurmd_timeout = 0;
  Controller c(policy);
  const JobId id = c.started("-w gpu1 --mem=1G", "salloc");
  c.state.node_lost("gpu1", c.now);
  c.state.tick(c.now + 100000);
  EXPECT_EQ(c.shown(id), "RUNNING None");
  EXPECT_FALSE(c.state.find_node("gpu1")->usable());
}

TEST(Nodes, ANodeThatIsBackInTimeKeepsItsJobs) {
  Controller c;
  const JobId id = c.started("-w gpu1 --mem=1G");
  c.state.node_lost("gpu1", c.now);
  wire::NodeReport report;
  wire::HeldJob* held = report.add_jobs();
  held->set_job_id(id);
  held->set_attempt(1);
  wire::HeldJob* stranger = report.add_jobs();
  stranger->set_job_id(77);
  stranger->set_attempt(1);
  c.state.take_effects();
  c.up("gpu1", report);
  EXPECT_EQ(c.shown(id), "RUNNING None");
  const auto ends = c.effects<EndJob>();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].job, 77U);
  c.state.tick(c.now + 300);
  EXPECT_EQ(c.shown(id), "RUNNING None");
}

/// What a machine that was started anew says of the jobs that it had: whatever ReturnToService is,
/// a job begins again where it may, and is NODE_FAIL else.
TEST(Nodes, JobsOfAMachineThatWasStartedAnewBeginAgainOrAreNodeFail) {
  struct Row {
    const char* options;
    const char* command;
    Base base;
  };
  for (const Row& row : {Row{"--requeue", "sbatch", Base::pending},
                         {"--no-requeue", "sbatch", Base::node_fail},
                         {"", "salloc", Base::node_fail}}) {
    for (const std::uint32_t service : {0U, 1U, 2U}) {
      for (const bool begun : {true, false}) {
        Policy policy;
        policy.return_to_service = service;
        Controller c(policy);
        wire::NodeReport boot;
        boot.set_boot_id("one");
        c.up("gpu1", boot);
        const JobId id = c.submit(std::string(row.options) + " -w gpu1 --mem=1G", row.command);
        ASSERT_TRUE(c.start(id));
        if (begun) c.begun(id);
        c.state.node_lost("gpu1", c.now);
        c.now += 100;
        boot.set_boot_id("two");
        wire::HeldJob* held = boot.add_jobs();
        held->set_job_id(id);
        held->set_attempt(1);
        held->set_lost(true);
        c.up("gpu1", boot);
        if (begun && row.command == std::string("sbatch")) c.script_lost(id, "gpu1");
        c.gone(id);
        EXPECT_EQ(c.at(id).base, row.base) << row.options << row.command << service << begun;
        EXPECT_EQ(c.at(id).restarts, row.base == Base::pending ? 1U : 0U);
        EXPECT_EQ(c.state.find_node("gpu1")->down, service != 2);
        EXPECT_TRUE(c.idle());
      }
    }
  }
}

TEST(Nodes, BeginJobIsSentAgainToANodeThatDidNotGetIt) {
  Controller c;
  const JobId id = c.submit("-w gpu1 --mem=1G");
  ASSERT_TRUE(c.start(id));
  c.state.node_lost("gpu1", c.now);
  c.state.take_effects();
  c.up("gpu1");
  EXPECT_EQ(c.effects<BeginJob>().size(), 1U);
  c.begun(id);
  c.state.node_lost("gpu1", c.now);
  c.up("gpu1");  // begun there, and now it knows nothing of it
  EXPECT_EQ(c.at(id).restarts, 1U);
}

TEST(Nodes, DrainLetsJobsRunOnDownDoesNot) {
  Controller c;
  const JobId id = c.started("-w gpu1 --mem=1G", "salloc");
  NodeChange drain;
  drain.state = "DRAIN";
  drain.caller = kRoot;
  EXPECT_FALSE(c.state.change_node("gpu1", drain, c.now));
  drain.reason = "fan";
  EXPECT_TRUE(c.state.change_node("gpu1", drain, c.now));
  EXPECT_EQ(c.shown(id), "RUNNING None");
  EXPECT_FALSE(c.start(c.submit("-w gpu1 --mem=1G")));
  drain.state = "DOWN";
  EXPECT_TRUE(c.state.change_node("gpu1", drain, c.now));
  EXPECT_EQ(c.shown(id), "NODE_FAIL+COMPLETING NodeDown");
  c.gone(id);
  EXPECT_EQ(c.shown(id), "NODE_FAIL NodeDown");
  NodeChange resume;
  resume.state = "RESUME";
  resume.caller = kRoot;
  EXPECT_TRUE(c.state.change_node("gpu1", resume, c.now));
  EXPECT_TRUE(c.state.find_node("gpu1")->usable());
  EXPECT_EQ(c.state.find_node("gpu1")->reason, "");
}

TEST(Nodes, AnotherBootIsKnownByItsIdAndNotByTheClock) {
  Controller c;
  wire::NodeReport report;
  report.set_boot_id("one");
  report.set_boot_time(kStart);
  c.up("gpu1", report);
  report.set_boot_time(kStart + 86400);  // the clock was set
  c.up("gpu1", report);
  EXPECT_TRUE(c.state.find_node("gpu1")->usable());
  report.set_boot_id("two");
  report.set_boot_time(kStart);
  c.up("gpu1", report);
  EXPECT_EQ(c.state.find_node("gpu1")->reason, "Node unexpectedly rebooted");
}

TEST(Nodes, TroubleWithTheEpilogDrains) {
  Controller c;
  const JobId id = c.started("-w gpu1 --mem=1G");
  c.script_ends(id);
  wire::JobGone gone;
  gone.set_node("gpu1");
  gone.set_job_id(id);
  gone.set_attempt(1);
  gone.set_trouble("Epilog error");
  c.state.job_gone(gone, c.now);
  EXPECT_EQ(c.shown(id), "COMPLETED None");
  EXPECT_TRUE(c.state.find_node("gpu1")->drain);
  EXPECT_EQ(c.state.find_node("gpu1")->reason, "Epilog error");
}

/// All records of a controller, as its store would have them.
Stored stored(const Controller& c) {
  Stored out;
  for (const auto& [id, job] : c.state.jobs()) {
    out.jobs.push_back(to_record(c.state.cluster(), job));
  }
  for (cluster::NodeIndex i = 0; i < c.state.cluster().nodes.size(); ++i) {
    out.nodes.push_back(to_record(c.state.cluster().nodes[i].name, c.state.node(i)));
  }
  out.next_job_id = 50;
  return out;
}

TEST(Recovery, TheSameStateFromTheStore) {
  Controller c;
  const JobId running = c.started("-w gpu1 -n2 --gpus=2 --mem=1G -t 10");
  const JobId completing = c.started("-w gpu2 --mem=1G");
  c.script_ends(completing);
  const JobId array = c.submit("--array=1-4%2 --mem=1G");
  ASSERT_TRUE(c.start(array));
  const JobId waits = c.submit("--mem=1G -d afterok:1");
  const JobId het = c.submit("-n1 -H --mem=1G : -n2 --mem=1G");
  const JobId held = c.submit("-H --mem=1G");
  ASSERT_TRUE(c.state.update_words(held, {"--ntasks=3"}, c.blobs.back(), kAlice, c.now));
  const Stored before = stored(c);

  Controller d;
  d.now = c.now + 10;
  State again(place::corpus::make(), {});
  again.load(before, [&](std::uint64_t blob) { return std::optional(c.blobs[blob]); }, d.now);
  ASSERT_EQ(again.jobs().size(), c.state.jobs().size());
  for (const auto& [id, job] : c.state.jobs()) {
    const Job* other = again.find(id);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(to_record(c.state.cluster(), job).SerializeAsString(),
              to_record(again.cluster(), *other).SerializeAsString())
        << id;
  }
  EXPECT_EQ(again.queue().size(), c.state.queue().size());
  for (cluster::NodeIndex i = 0; i < again.cluster().nodes.size(); ++i) {
    EXPECT_EQ(again.usage().at(i).cores, c.state.usage().at(i).cores);
    EXPECT_EQ(again.node(i).jobs, c.state.node(i).jobs);
  }
  EXPECT_EQ(again.find(held)->what->request.ntasks, 3U);
  EXPECT_EQ(again.find(waits)->reason, "Dependency");
  EXPECT_EQ(again.records_of(het).size(), 2U);
  EXPECT_EQ(again.find(running)->limit_at(), kStart + 600);
  wire::JobGone gone;
  gone.set_node("gpu2");
  gone.set_job_id(completing);
  gone.set_attempt(1);
  again.job_gone(gone, d.now);
  EXPECT_FALSE(again.find(completing)->holds_nodes());
}

TEST(Recovery, ReconfigureKeepsAllocationsByName) {
  Controller c;
  const JobId id = c.started("-w gpu3 --gpus=1 --mem=1G");
  cluster::Cluster smaller = place::corpus::make();
  std::erase_if(smaller.nodes, [](const cluster::Node& node) { return node.name == "gpu1"; });
  smaller.partitions.clear();
  smaller.index_nodes();
  place::corpus::add_partition(smaller, "debug", {}, true);
  c.state.reconfigure(smaller, {}, c.now);
  EXPECT_EQ(c.shown(id), "RUNNING None");
  const auto index = *c.state.cluster().find_node("gpu3");
  EXPECT_EQ(c.at(id).allocation.nodes.front().node, index);
  EXPECT_FALSE(c.state.usage().at(index).idle());
  EXPECT_TRUE(c.state.find_node("gpu3")->usable());
  c.runs_to_the_end(id);
  EXPECT_TRUE(c.idle());
}

}  // namespace
}  // namespace berth::job::testing
