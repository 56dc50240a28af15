// What scontrol prints about jobs and nodes, read as what is in use.
#include "site/busy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "site/site.h"

namespace berth::site {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string sample(const std::string& name) {
  std::ifstream file(std::string(BERTH_SOURCE_DIR) + "/tests/conf/samples/" + name);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

const cluster::Cluster& recorded() {
  static const Site site =
      read_site(conf::DirectorySource(std::string(BERTH_SOURCE_DIR) + "/tests/conf/corpus"))
          .value();
  return site.cluster;
}

/// "gpu1 cores=0-3 mem=4096 gpu=0,1 whole" for each node of each job.
std::vector<std::string> shown(const Busy& busy) {
  std::vector<std::string> out;
  cluster::Usage usage(recorded());
  for (const cluster::Allocation& job : busy.jobs) {
    usage.take(job);
    for (const cluster::NodeShare& share : job.nodes) {
      std::string text =
          fmt::format("{} cores={} cpus={} mem={}", recorded().nodes[share.node].name,
                      share.cores.ranges(), share.cpus, share.memory_mb);
      for (const cluster::GresShare& gres : share.gres) {
        text += fmt::format(" {}=", gres.name);
        for (std::size_t i = 0; i < gres.units.size(); ++i) {
          if (gres.units[i] > 0) text += fmt::format("[{}]{}", i, gres.units[i]);
        }
      }
      out.push_back(text + (job.whole_nodes ? " whole" : ""));
    }
  }
  return out;
}

std::string job(std::string_view detail, std::string_view state = "RUNNING",
                std::string_view sharing = "OverSubscribe=NO Exclusive=NO") {
  return fmt::format(
      "JobId=7 JobName=x y=z\n   JobState={} Reason=None\n   NodeList=gpu1\n   {}\n   {}\n\n",
      state, detail, sharing);
}

TEST(Busy, ReadsTheSamples) {
  const std::string jobs = sample("scontrol_d_show_job.txt");
  const std::string nodes = sample("scontrol_d_show_node_gpu1.txt") +
                            sample("scontrol_show_node_gpu6.idle.txt") +
                            sample("scontrol_show_node_cpu1.idle.txt");
  for (const std::string& text : {jobs + nodes, nodes + jobs}) {
    const auto busy = parse_busy(text, recorded());
    ASSERT_TRUE(busy) << busy.error().what();
    EXPECT_THAT(busy->problems, ElementsAre());
    EXPECT_THAT(busy->unusable, ElementsAre());
    EXPECT_THAT(shown(*busy), ElementsAre("gpu1 cores=0-3 cpus=4 mem=4096 gpu=[0]1[1]1",
                                          "gpu2 cores=0-3 cpus=4 mem=4096 gpu=[0]1[1]1"));
  }
}

TEST(Busy, ReadsDetails) {
  struct Row {
    std::string text;
    std::vector<std::string> shares;
  };
  const Row rows[] = {
      {job("  Nodes=cpu1 CPU_IDs=0-3,6 Mem=100 GRES="), {"cpu1 cores=0-1,3 cpus=6 mem=100"}},
      {job("Nodes=gpu5 CPU_IDs=0 Mem=1 GRES=gpu:tesla_v100:1(IDX:1),gpu:a100:2(IDX:2-3)"),
       {"gpu5 cores=0 cpus=1 mem=1 gpu=[1]1[2]1[3]1"}},
      {job("Nodes=gpu6 CPU_IDs=0 Mem=1 GRES=shard:3(IDX:2)"),
       {"gpu6 cores=0 cpus=1 mem=1 shard=[2]3"}},
      {job("Nodes=gpu6 CPU_IDs=0 Mem=1 GRES=shard:3(-/4,2/4,1/4,0/4,0/4,0/4,0/4,0/4)"),
       {"gpu6 cores=0 cpus=1 mem=1 shard=[1]2[2]1"}},
      {job("Nodes=gpu1 CPU_IDs=0 Mem=1 GRES=gpu:a100:0(IDX:N/A)"), {"gpu1 cores=0 cpus=1 mem=1"}},
      {job("Nodes=gpu1 CPU_IDs=0-15 Mem=0 GRES=", "RUNNING", "OverSubscribe=NO Exclusive=NODE"),
       {"gpu1 cores=0-15 cpus=16 mem=0 whole"}},
      {job("Nodes=gpu1 CPU_IDs=0-15 Mem=0 GRES=", "RUNNING", "OverSubscribe=NO Contiguous=0"),
       {"gpu1 cores=0-15 cpus=16 mem=0 whole"}},
      {job("Nodes=gpu1 CPU_IDs=0 Mem=0 GRES=", "COMPLETING", "OverSubscribe=OK Contiguous=0"),
       {"gpu1 cores=0 cpus=1 mem=0"}},
      {job("NodeList=(null)", "PENDING"), {}},
      {job("Nodes=gpu1 CPU_IDs=0 Mem=0 GRES=", "COMPLETED"), {}},
      {"No jobs in the system\n", {}},
      {"JobId=1 JobName=a JobState=RUNNING NodeList=gpu1 Nodes=gpu1 CPU_IDs=1 Mem=5 GRES= "
       "OverSubscribe=NO Exclusive=NO\n",
       {"gpu1 cores=1 cpus=1 mem=5"}},
  };
  for (const Row& row : rows) {
    const auto busy = parse_busy(row.text, recorded());
    ASSERT_TRUE(busy) << row.text;
    EXPECT_THAT(shown(*busy), testing::ElementsAreArray(row.shares)) << row.text;
    EXPECT_THAT(busy->problems, ElementsAre()) << row.text;
  }
}

TEST(Busy, SaysWhatItDoesNotUnderstand) {
  struct Row {
    std::string text;
    const char* problem;
  };
  const Row rows[] = {
      {"NodeName=gpu1 Arch=x\n   Wibble=1\n   State=IDLE\n",
       "line 2: not understood: \"Wibble=1\""},
      {"hello there\nNodeName=gpu1 Arch=x\n", "line 1: not understood: \"hello there\""},
      {"NodeName=gpu99 Arch=x\n", "line 1: node gpu99 is not in the configuration"},
      {job("Nodes=gpu99 CPU_IDs=0 Mem=1 GRES="), "line 4: node gpu99 is not in the configuration"},
      {job("Nodes=gpu[1 CPU_IDs=0 Mem=1 GRES="),
       "line 4: Invalid host list \"gpu[1\": '[' without ']'"},
      {job("Nodes=gpu1 CPU_IDs=x Mem=1 GRES="), "line 4: CPU_IDs=x is not a list of CPUs"},
      {job("Nodes=gpu1 CPU_IDs=0 Mem=x GRES="), "line 4: Mem=x is not a size"},
      {job("Nodes=gpu1 CPU_IDs=15-16 Mem=1 GRES="),
       "line 4: CPU_IDs=15-16, but gpu1 has CPUs 0-15"},
      {job("Nodes=gpu1 CPU_IDs=0 Mem=99999 GRES="),
       "line 4: Mem=99999, but only 64G of gpu1 is left by the other jobs"},
      {job("Nodes=gpu1 CPU_IDs=0 Mem=1 GRES=tape:1"),
       "line 4: gpu1 has no tape in the configuration"},
      {job("Nodes=gpu1 CPU_IDs=0 Mem=1 GRES=gpu:a100:x(IDX:0)"),
       "line 4: \"x\" is not a count of gpu"},
      {job("Nodes=gpu1 CPU_IDs=0 Mem=1 GRES=gpu:a100:2(IDX:3-4)"),
       "line 4: which gpu of gpu1 are in use is not understood: \"IDX:3-4\""},
      {job("Nodes=gpu1 CPU_IDs=0 Mem=1 GRES=gpu:a100:2"),
       "line 4: which gpu of gpu1 are in use is not understood: \"\""},
      {job("NodeList=gpu1"),
       "line 1: job 7 runs, but its CPUs are not listed: print it with scontrol -d show job"},
      {job("Nodes=gpu1 CPU_IDs=0 Mem=1 GRES=", "DANCING"),
       "line 1: job 7 has no state that is known (\"DANCING\")"},
      {job("Nodes=gpu1 CPU_IDs=0 Mem=1 GRES=") + job("Nodes=gpu1 CPU_IDs=0-1 Mem=1 GRES="),
       "line 10: CPUs of gpu1 are in use by two jobs; counted once"},
      {job("Nodes=gpu1 CPU_IDs=0 Mem=1 GRES=gpu:1(IDX:0)") +
           job("Nodes=gpu1 CPU_IDs=1 Mem=1 GRES=gpu:1(IDX:0)"),
       "line 10: gpu 0 of gpu1 is in use by two jobs; counted once"},
      {job("Nodes=gpu6 CPU_IDs=0 Mem=1 GRES=gpu:1(IDX:0)") +
           job("Nodes=gpu6 CPU_IDs=1 Mem=1 GRES=shard:1(IDX:0)"),
       "line 10: shard 0 of gpu6 is in use by two jobs; counted once"},
      {"NodeName=gpu1 Arch=x\n   CPUAlloc=4 CPUTot=16\n   State=MIXED\n",
       "line 1: gpu1 has 4 CPUs in use, the jobs listed hold 0; is the output of scontrol -d show "
       "job complete?"},
  };
  for (const Row& row : rows) {
    const auto busy = parse_busy(row.text, recorded());
    ASSERT_TRUE(busy) << row.text;
    EXPECT_THAT(busy->problems, ElementsAre(row.problem)) << row.text;
    shown(*busy);  // what is left can be taken
  }
}

TEST(Busy, BoundsTheParts) {
  std::string parts;
  for (int i = 0; i < 20; ++i) parts += "Nodes=gpu1 CPU_IDs=0 Mem=1 GRES=\n   ";
  const auto busy = parse_busy(job(parts), recorded());
  ASSERT_TRUE(busy);
  EXPECT_THAT(busy->problems,
              testing::Contains("line 12: the job has more parts than the cluster has nodes"));
  EXPECT_THAT(shown(*busy), ElementsAre("gpu1 cores=0 cpus=1 mem=1"));
}

TEST(Busy, FindsNodesThatCannotBeUsed) {
  const auto busy = parse_busy(
      "NodeName=gpu1 Arch=x\n   State=IDLE+DRAIN ThreadsPerCore=1\n   Reason=bad disk "
      "[root@now]\n\n"
      "NodeName=gpu2 Arch=x\n   State=DOWN* ThreadsPerCore=1\n\n"
      "NodeName=gpu3 Arch=x\n   State=MIXED+PLANNED ThreadsPerCore=1\n\n"
      "NodeName=gpu4 Arch=x\n   State=IDLE~ ThreadsPerCore=1\n\n"
      "NodeName=gpu5 Arch=x\n   State=IDLE* ThreadsPerCore=1\n",
      recorded());
  ASSERT_TRUE(busy);
  std::vector<std::string> got;
  for (const UnusableNode& node : busy->unusable) got.push_back(node.name + ": " + node.reason);
  EXPECT_THAT(got,
              ElementsAre("gpu1: IDLE+DRAIN (bad disk [root@now])", "gpu2: DOWN*", "gpu5: IDLE*"));
  EXPECT_THAT(busy->problems, ElementsAre());
}

TEST(Busy, RefusesOtherText) {
  const auto busy = parse_busy("#!/bin/bash\necho\n", recorded());
  ASSERT_FALSE(busy);
  EXPECT_THAT(busy.error().hint, HasSubstr("scontrol -d show job"));
  EXPECT_FALSE(parse_busy("", recorded()));
}

TEST(Busy, NamesItsFiles) {
  const BusyText texts[] = {{"nodes.txt", "NodeName=gpu1 Arch=x\n   State=IDLE\n   Wibble=1"},
                            {"empty.txt", ""},
                            {"jobs.txt", "\nhello there\n"}};
  const auto busy = parse_busy(texts, recorded());
  ASSERT_TRUE(busy);
  EXPECT_THAT(busy->problems, ElementsAre("nodes.txt: line 3: not understood: \"Wibble=1\"",
                                          "jobs.txt: line 2: not understood: \"hello there\""));
  const auto none = parse_busy(std::span(texts).subspan(1), recorded());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what(), "empty.txt, jobs.txt name neither a job nor a node");
  const auto one = parse_busy(std::span(texts).subspan(2), recorded());
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().what(), "jobs.txt names neither a job nor a node");
}

TEST(Busy, BoundsItsComplaints) {
  std::string text = "NodeName=gpu1 Arch=x\n";
  for (int i = 0; i < 1000; ++i) text += "Wibble=1\n";
  const auto busy = parse_busy(text, recorded());
  ASSERT_TRUE(busy);
  EXPECT_EQ(busy->problems.size(), 101u);
  EXPECT_EQ(busy->problems.back(), "900 more lines like these");
}

}  // namespace
}  // namespace berth::site
