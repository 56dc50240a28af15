// Simulations that were worked out by hand.
#include "simulate/world.h"

#include <gtest/gtest.h>

#include "cluster/usage.h"
#include "simulate/fragmentation.h"
#include "simulate/render.h"
#include "simulate/synthetic.h"

namespace berth::simulate {
namespace {

constexpr const char* kConf =
    "ClusterName=c\nSlurmctldHost=h\nSelectType=select/cons_tres\n"
    "SelectTypeParameters=CR_Core_Memory\nGresTypes=gpu\nSlurmdParameters=config_overrides\n"
    "NodeName=n1 Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=4000 Gres=gpu:a100:2\n"
    "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";

Setup setup_of(std::vector<Override> overrides = {}, const std::string& more = "") {
  const conf::MemorySource source(
      {{"slurm.conf", kConf + more},
       {"gres.conf", "NodeName=n1 Name=gpu Type=a100 File=/dev/nvidia[0-1]\n"}});
  auto setup = read_setup(source, overrides, "test");
  EXPECT_TRUE(setup) << (setup ? "" : setup.error().what());
  return std::move(*setup);
}

TraceJob job(Trace& trace, std::int64_t submit, std::int64_t runtime, std::uint32_t limit,
             std::uint32_t gpus) {
  Ask ask;
  ask.nodes = 1;
  ask.memory_per_node_mb = 100;
  ask.gpus = gpus;
  TraceJob one;
  one.submit = submit;
  one.runtime = runtime;
  one.limit_minutes = limit;
  one.ask = trace.intern(ask);
  one.line = static_cast<std::uint32_t>(trace.jobs.size() + 1);
  return one;
}

/// A holds both GPUs until 100. Then B starts, C has to wait for B, and D fits beside B and is over
/// before B's limit: it is started by backfill. C starts when B is over.
Trace four_jobs() {
  Trace trace;
  trace.name = "four";
  trace.jobs.push_back(job(trace, 0, 100, 2, 2));   // A
  trace.jobs.push_back(job(trace, 10, 50, 10, 1));  // B
  trace.jobs.push_back(job(trace, 20, 30, 10, 2));  // C
  trace.jobs.push_back(job(trace, 30, 20, 5, 1));   // D
  return trace;
}

TEST(World, FiguresAreExact) {
  const Outcome out = run(setup_of(), four_jobs());
  EXPECT_EQ(out.nodes, 1U);
  EXPECT_EQ(out.cpus, 4U);
  EXPECT_EQ(out.gpus, 2U);
  EXPECT_EQ(out.started, 4U);
  EXPECT_EQ(out.completed, 4U);
  EXPECT_EQ(out.backfilled, 1U);
  EXPECT_EQ(out.refused + out.timed_out + out.never_started + out.otherwise, 0U);
  EXPECT_EQ(out.makespan, 180);
  EXPECT_EQ(out.arrivals, 30);
  EXPECT_DOUBLE_EQ(out.gpu, (200 + 50 + 60 + 20) / 360.0);
  EXPECT_DOUBLE_EQ(out.cpu, (100 + 50 + 30 + 20) / 720.0);
  EXPECT_DOUBLE_EQ(out.gpu_arrivals, 1);
  EXPECT_DOUBLE_EQ(out.cpu_arrivals, 0.25);
  // Waits: A 0, D 70, B 90, C 130.
  EXPECT_EQ(out.wait.count, 4U);
  EXPECT_DOUBLE_EQ(out.wait.mean, 72.5);
  EXPECT_DOUBLE_EQ(out.wait.median, 70);
  EXPECT_DOUBLE_EQ(out.wait.p95, 130);
  EXPECT_DOUBLE_EQ(out.wait.max, 130);
  EXPECT_DOUBLE_EQ(out.slowdown.mean, (1 + 140 / 50.0 + 160 / 30.0 + 90 / 20.0) / 4);
  ASSERT_EQ(out.sizes.size(), 2U);
  EXPECT_EQ(out.sizes[0].label, "1");
  EXPECT_DOUBLE_EQ(out.sizes[0].wait.mean, 80);
  EXPECT_EQ(out.sizes[1].label, "2");
  EXPECT_DOUBLE_EQ(out.sizes[1].wait.mean, 65);
  EXPECT_EQ(out.most_waiting, 3U);
  EXPECT_DOUBLE_EQ(out.waiting, (90 + 130 + 70) / 180.0);
}

TEST(World, AKeySaidOtherwiseCounts) {
  Trace trace = four_jobs();
  const Outcome base = run(setup_of(), trace);
  const auto closed =
      setup_of({{"PartitionName", "main Nodes=ALL Default=YES State=UP MaxTime=5"}});
  const Outcome out = run(closed, trace);
  EXPECT_EQ(base.never_started, 0U);
  EXPECT_EQ(out.never_started + out.refused, 2U) << "B and C ask for 10 minutes";
}

TEST(World, TheLimitEndsAJob) {
  Trace trace;
  trace.jobs.push_back(job(trace, 0, 100, 1, 1));
  trace.jobs.push_back(job(trace, 0, 60, 1, 1));
  const Outcome out = run(setup_of(), trace);
  EXPECT_EQ(out.timed_out, 1U);
  EXPECT_EQ(out.completed, 1U) << "one that needs just its limit is in time";
  EXPECT_EQ(out.makespan, 60);
}

TEST(World, WhatNoNodeCouldRunIsRefusedAndNamed) {
  Trace trace = four_jobs();
  trace.jobs.push_back(job(trace, 40, 10, 1, 3));
  const Outcome out = run(setup_of(), trace);
  EXPECT_EQ(out.refused, 1U);
  ASSERT_EQ(out.refused_first.size(), 1U);
  EXPECT_TRUE(out.refused_first[0].starts_with("four:5: Batch job submission failed: "))
      << out.refused_first[0];
  EXPECT_EQ(out.completed, 4U);
}

TEST(World, JobsOfNoLengthEndInTheirSecond) {
  Trace trace;
  for (int i = 0; i < 5; ++i) trace.jobs.push_back(job(trace, 0, 0, 1, 2));
  const Outcome out = run(setup_of(), trace);
  EXPECT_EQ(out.completed, 5U);
  EXPECT_EQ(out.makespan, 0);
  EXPECT_DOUBLE_EQ(out.wait.max, 0);
}

TEST(World, TheSameInputGivesTheSameBytes) {
  const auto setup = setup_of();
  Synthetic what;
  what.jobs = 300;
  what.load = 1.2;
  const auto page = [&](std::uint64_t seed) {
    const Trace trace = synthesize(what, setup.cluster, seed);
    Report report;
    report.trace = trace.name;
    report.runs = {run(setup, trace), run(setup, trace)};
    return render_json(report) + render_text(report) + render_html(report);
  };
  const std::string first = page(7);
  EXPECT_EQ(first, page(7));
  EXPECT_NE(first, page(8));
}

TEST(Fragmentation, CountsWhatTheUsualJobCannotUse) {
  Trace trace;
  trace.jobs.push_back(job(trace, 0, 1, 1, 1));
  trace.jobs.push_back(job(trace, 0, 1, 1, 2));
  const auto setup = setup_of();
  cluster::Usage usage(setup.cluster);
  const Fragmentation fragmentation(setup.cluster, trace);
  EXPECT_DOUBLE_EQ(fragmentation.sample(usage).free, 2);
  EXPECT_DOUBLE_EQ(fragmentation.sample(usage).stranded, 0);
  cluster::NodeShare share;
  share.cores = Bits::range(0, 0);
  share.cpus = 1;
  share.gres = {{"gpu", {1, 0}}};
  usage.take({{share}, false});
  EXPECT_DOUBLE_EQ(fragmentation.sample(usage).free, 1);
  EXPECT_DOUBLE_EQ(fragmentation.sample(usage).stranded, 0.5) << "half of the jobs want two";
  cluster::NodeShare cores;
  cores.cores = Bits::range(1, 3);
  cores.cpus = 3;
  usage.take({{cores}, false});
  EXPECT_DOUBLE_EQ(fragmentation.sample(usage).stranded, 1) << "no CPU is left beside it";
}

TEST(Setup, OverridesTakeThePlaceOfALine) {
  EXPECT_EQ(overridden("A=1\nb = 2\nC=3 \\\n more\nD=4\n", {{"B", "5"}, {"c", "6"}}),
            "A=1\n\n\n\nD=4\nB=5\nc=6\n");
  EXPECT_EQ(overridden("PartitionName=a X=1\nPartitionName=b X=1\n", {{"PartitionName", "b X=2"}}),
            "PartitionName=a X=1\n\nPartitionName=b X=2\n");
  EXPECT_FALSE(read_override("novalue"));
  EXPECT_FALSE(read_override("=x"));
  EXPECT_EQ(read_override("SchedulerParameters=bf_window=10")->value, "bf_window=10");
}

TEST(Synthetic, LoadIsWhatWasAskedFor) {
  const auto setup = setup_of();
  const auto what = read_synthetic("jobs=2000,load=0.5,users=3");
  ASSERT_TRUE(what);
  const Trace trace = synthesize(*what, setup.cluster, 1);
  ASSERT_EQ(trace.jobs.size(), 2000U);
  double demand = 0;
  for (const TraceJob& one : trace.jobs) {
    demand += static_cast<double>(one.runtime) * trace.asks[one.ask].gpus;
    EXPECT_LT(one.user, 3U);
    EXPECT_GE(std::int64_t{one.limit_minutes} * 60, one.runtime);
  }
  EXPECT_NEAR(demand / (2.0 * static_cast<double>(trace.jobs.back().submit)), 0.5, 0.01);
  for (const char* text : {"jobs", "jobs=0", "load=x", "load=0", "what=1", "jobs=1,,load=1e"}) {
    EXPECT_FALSE(read_synthetic(text)) << text;
  }
}

/// The low job has run for 30 of its 100 seconds when the high one takes both GPUs; it starts again
/// from the beginning when the delay of a requeue is over.
TEST(World, WhoGivesWayStartsAgain) {
  Trace trace;
  trace.name = "tiers";
  const auto add = [&](std::int64_t submit, std::int64_t runtime, const char* partition) {
    TraceJob one = job(trace, submit, runtime, 10, 2);
    Ask ask = trace.asks[one.ask];
    ask.partition = partition;
    one.ask = trace.intern(ask);
    trace.jobs.push_back(one);
  };
  add(0, 100, "main");
  add(30, 50, "high");
  const auto setup =
      setup_of({{"PreemptType", "preempt/partition_prio"}, {"PreemptMode", "REQUEUE"}},
               "PartitionName=high Nodes=ALL PriorityTier=5 State=UP\n");
  const Outcome out = run(setup, trace);
  EXPECT_EQ(out.preemptions, 1U);
  EXPECT_EQ(out.restarts, 1U);
  EXPECT_EQ(out.completed, 2U);
  EXPECT_EQ(out.makespan, 30 + 120 + 100);
}

}  // namespace
}  // namespace berth::simulate
