// Job placement against recorded behaviour: the worked examples of the placement rules, row by row.
#include "place/place.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "place/corpus_cluster_test_fixture.h"
#include "place/srun_test_fixture.h"
#include "request/parse.h"

namespace berth::place {
namespace {

/// "gpu1 0,8 gpus 0,1 | gpu2 0": cores, then devices, node by node.
std::string shown(const cluster::Cluster& cluster, const JobPlan& plan) {
  if (plan.verdict == Verdict::never) {
    return fmt::format("never: {}", plan.error.messages.front().text);
  }
  if (plan.verdict != Verdict::now) return "pending: " + plan.pending_reason;
  std::string out;
  for (const cluster::NodeShare& share : plan.allocation.nodes) {
    if (!out.empty()) out += " | ";
    out += fmt::format("{} {}", cluster.nodes[share.node].name, share.cores.ranges());
    if (share.gpus().any()) out += " gpus " + share.gpus().ranges();
  }
  return out;
}

struct JobRow {
  const char* options;
  const char* expected;
};

const char* const kUnavailable =
    "never: Unable to allocate resources: Requested node configuration is not available";

class JobPlacement : public testing::Test {
 protected:
  std::string place(const std::string& options) {
    return shown(cluster_, place_job(cluster_, usage_, parse_srun(options)));
  }
  void check(std::initializer_list<JobRow> rows) {
    for (const JobRow& row : rows)
      EXPECT_EQ(place(row.options), row.expected) << "srun " << row.options;
  }

  cluster::Cluster cluster_ = corpus::make();
  cluster::Usage usage_{cluster_};
};

TEST_F(JobPlacement, GpusNarrowTheCores) {
  check({
      {"-n1 --gres=gpu:2", "gpu1 0 gpus 0-1"},
      {"-n1 --gres=gpu:3", "gpu1 8 gpus 0,2-3"},
      {"-N1 --gres=gpu:3", "gpu1 0 gpus 0-2"},
      {"-n1 --gres=gpu:3 --gres-flags=enforce-binding", "gpu1 0,8 gpus 0-2"},
      {"-N2 -n4 --gpus=4", "gpu1 0,8-9 gpus 0-1,3 | gpu2 0 gpus 0"},
      {"-n2 --gpus-per-task=1", "gpu1 0-1 gpus 0-1"},
      {"-n3 --gpus-per-task=1", "gpu1 0,8-9 gpus 0,2-3"},
      {"-n1 -c10 --gres=gpu:1 -w gpu1", "gpu1 0-9 gpus 0"},
      {"-n1 -c10 --gres=gpu:1 -w gpu1 --gres-flags=enforce-binding", kUnavailable},
      {"-n16 --gres=gpu:1 -w gpu1", "gpu1 0-7 gpus 0 | gpu2 0-7 gpus 0"},
      {"-N1 -n16 --gres=gpu:1 -w gpu1", "gpu1 0-15 gpus 0"},
  });
}

TEST_F(JobPlacement, NodesAreChosen) {
  check({
      {"", "gpu1 0"},
      {"--mem=1G", "gpu1 0"},
      {"-n2", "gpu1 0,8"},
      {"-n16", "gpu1 0-15"},
      {"-n17", "cpu1 0-4,8-11"},
      {"-n33", "cpu1 0-15 | cpu2 0"},
      {"-N2", "cpu1 0 | cpu2 0"},
      {"-N3", "cpu1 0 | cpu2 0 | gpu1 0"},
      {"-n1", "cpu1 0"},
      {"-N1", "cpu1 0"},
      {"-N2 -n4 -p ml", "gpu1 0-1,8 | gpu2 0"},
      {"-N2 -n5", "cpu1 0,8 | cpu2 0"},
      {"-N3 -n7", "cpu1 0,8 | cpu2 0 | gpu1 0,8"},
      {"-n20 -p ml", "gpu1 0-15 | gpu2 0-1,8-9"},
      {"-n40 -p gpu_partition", "gpu1 0-15 | gpu2 0-15 | gpu3 0-3,8-11"},
      {"-N 2,4 -n8 -p ml", "gpu1 0-2,8-9 | gpu2 0 | gpu3 0 | gpu4 0"},
      {"-N2-4 -n24 -p ml", "gpu1 0-6,8-14 | gpu2 0-3,8-11 | gpu3 0 | gpu4 0"},
      {"-N3 -n8 -c2 -p ml", "gpu1 0-11 | gpu2 0-1 | gpu3 0-1"},
      {"-N1-2 -n24 -p ml", "gpu1 0-15 | gpu2 0-3,8-11"},
      {"-N1-3 -n3 --use-min-nodes", "gpu1 0-1,8"},
      {"-N2-4", "cpu1 0 | cpu2 0 | gpu1 0 | gpu2 0"},
      {"-n1 --mincpus=20", "cpu1 0"},
      {"-w gpu3 -N2", "gpu3 0 | gpu4 0"},
      {"-w cpu2 -N3", "cpu2 0 | gpu1 0 | gpu2 0"},
      {"-w gpu4,gpu2 -N3", "gpu2 0 | gpu3 0 | gpu4 0"},
      {"-w gpu1 -n17", "gpu1 0-15 | gpu2 0"},
      {"-w gpu[1-3] -N2", "gpu1 0 | gpu2 0"},
      {"-p ml -w gpu1,gpu5 -N1", "gpu1 0"},
      {"-n4 --spread-job -p ml", "gpu1 0 | gpu2 0 | gpu3 0 | gpu4 0"},
      {"-n6 --spread-job", "cpu1 0 | cpu2 0 | gpu1 0 | gpu2 0 | gpu3 0 | gpu4 0"},
      {"-C [rack2|nvlink] -N2", "gpu3 0 | gpu4 0"},
      {"-C [nvlink*1&rack2*2] -N3", "gpu1 0 | gpu3 0 | gpu4 0"},
      {"-C [nvlink*1&rack2*1] -N3", "gpu1 0 | gpu2 0 | gpu3 0"},
      {"-n4 --mem-per-cpu=30000", "cpu1 0 | cpu2 0"},
  });
}

TEST_F(JobPlacement, GpuJobsFindTheirNodes) {
  check({
      {"-N2 --gpus=4", "gpu1 0 gpus 0-2 | gpu2 0 gpus 0"},
      {"-N2 --gpus=3", "gpu1 0 gpus 0-1 | gpu2 0 gpus 0"},
      {"-N2-4 --gpus=6", "gpu1 0 gpus 0-1 | gpu6 0 gpus 0-3"},
      {"--gpus=3", "gpu6 0 gpus 0-2"},
      {"--gpus=4", "gpu6 0 gpus 0-3"},
      {"--gres=gpu:3", "gpu6 0 gpus 0-2"},
      {"-n4 --gres=gpu:4", "gpu1 0-1,8-9 gpus 0-3"},
      {"--gpus=1", "gpu1 0 gpus 0"},
      {"--gpus=2", "gpu1 0 gpus 0-1"},
      {"--gres=gpu:1", "gpu1 0 gpus 0"},
      {"-x gpu[1-4] --gres=gpu:1", "gpu5 0 gpus 0"},
      {"-x gpu[1-4] --gres=gpu:a100:1", "gpu5 8 gpus 2"},
      {"--gpus=12", "gpu1 0 gpus 0-3 | gpu6 0 gpus 0-7"},
      {"--gpus=13", "gpu1 0 gpus 0-3 | gpu2 0 gpus 0-3 | gpu6 0 gpus 0-4"},
      {"-N2 --ntasks-per-node=4 --gpus-per-task=1", "gpu1 0-1,8-9 gpus 0-3 | gpu6 0-3 gpus 0-3"},
      {"--exclusive --gres=gpu:1", "gpu6 0-15 gpus 0-7"},
      {"-n2 -c8 --gres=gpu:2", "gpu1 0-7 gpus 0-1 | gpu2 0-7 gpus 0-1"},
      {"-N1 -n2 -c8 --gres=gpu:4", "gpu1 0-15 gpus 0-3"},
      {"-n6 --gpus=6", "gpu6 0-2,8-10 gpus 0-2,4-6"},
      {"--gpus=3 --cpus-per-gpu=2", "gpu1 0-2,8-10 gpus 0-1,3"},
      {"--gres=gpu:a100:1,gpu:tesla_v100:1", "gpu5 0 gpus 0,2"},
      {"-n1 --gpus-per-task=5", "gpu6 8 gpus 0,4-7"},
      {"-N1 -n2 --gpus-per-socket=2 --sockets-per-node=1", "gpu1 0,8 gpus 0-3"},
      {"--gpus=5", "gpu6 0 gpus 0-4"},
      {"-N1 --gres=gpu:5", "gpu6 0 gpus 0-4"},
      {"-N1 --gpus=5", "gpu6 0 gpus 0-4"},
      {"--gres=gpu:8", "gpu6 0 gpus 0-7"},
  });
}

TEST_F(JobPlacement, CoresOnANode) {
  check({
      {"-n4", "gpu1 0-1,8-9"},
      {"-n2 -c4", "gpu1 0-7"},
      {"-n3 -c3 -w gpu1", "gpu1 0-5,8-10"},
      {"-n5 -c3 -w gpu1", "gpu1 0-14"},
      {"-n10 -m block:block", "gpu1 0-9"},
      {"-n3 -w cpu1", "cpu1 0,8"},
      {"-N2 --ntasks-per-node=4 -n8 -p ml -m block", "gpu1 0-3 | gpu2 0-3"},
      {"-n4 -N4 --ntasks-per-node=4 -p ml", "gpu1 0-3 | gpu2 0-3 | gpu3 0-3 | gpu4 0-3"},
      {"-N4 -n4 --ntasks-per-node=4 --gres=gpu:4 -p ml",
       "gpu1 0-1,8-9 gpus 0-3 | gpu2 0-1,8-9 gpus 0-3 | gpu3 0-1,8-9 gpus 0-3 | gpu4 0-1,8-9 gpus "
       "0-3"},
      {"-n5 --ntasks-per-node=2 -p ml", "gpu1 0-1 | gpu2 0-1 | gpu3 0-1"},
      {"-n4 --threads-per-core=1 -w cpu1", "cpu1 0-1,8-9"},
      {"-n4 --ntasks-per-core=1 -w cpu1", "cpu1 0-1,8-9"},
      {"-n2 --exclusive", "gpu1 0-15 gpus 0-3"},
      {"-N1 --exclusive", "cpu1 0-15"},
      {"-O -n20 -p ml", "gpu1 0"},
      {"-n1 --threads-per-core=2 --cores-per-socket=8", "cpu1 0"},
      {"--exclusive=user", "gpu1 0"},
  });
}

TEST_F(JobPlacement, MemoryIsChargedForWholeCoresAndAllGpus) {
  check({
      {"-N1 --ntasks-per-node=3 --mem-per-cpu=20000", "gpu1 0-2"},
      {"-n3 -N1 --ntasks-per-core=1 --mem-per-cpu=20000 -w cpu1", kUnavailable},
      {"--exclusive --mem-per-gpu=10G --gres=gpu:1", "gpu1 0-15 gpus 0-3"},
      {"-N2 --gpus=6 --mem-per-gpu=20G -p ml", "gpu1 0 gpus 0-2 | gpu2 0 gpus 0-2"},
  });
}

TEST_F(JobPlacement, OneTaskACore) {
  check({
      {"--hint=compute_bound -n4 -N1", "cpu1 0-1,8-9"},
      {"-n4 --ntasks-per-core=1 -c3 -w cpu1", "cpu1 0-7"},
      {"-n1 --mincpus=4 --gres=gpu:3", "gpu1 8 gpus 0,2-3"},
  });
}

TEST_F(JobPlacement, PreferenceIsTriedLikeAConstraint) {
  check({
      {"--prefer=[rack2|nvlink] -N2", "gpu3 0 | gpu4 0"},
      {"--prefer=tesla_v100 -N2", "cpu1 0 | cpu2 0"},
      {"-N 2,4 -C [nvlink*1&rack2*1] -p ml", "gpu1 0 | gpu2 0 | gpu3 0 | gpu4 0"},
      {"-C rack2|[nvlink|rack2]",
       "never: Unable to allocate resources: Invalid feature specification"},
  });
}

TEST_F(JobPlacement, PartitionLimitsBoundTheNodes) {
  cluster_.partitions[1].max_nodes = 2;  // ml
  check({
      {"-p ml -N1-4", "gpu1 0 | gpu2 0"},
      {"-p ml --gpus=9", kUnavailable},
      {"-p ml -N3", "pending: PartitionNodeLimit"},
  });
  cluster_.partitions[1].min_nodes = 2;
  check({{"-p ml -n4", "gpu1 0-1,8 | gpu2 0"}, {"-p ml -n1", "pending: PartitionNodeLimit"}});
  cluster_.partitions[1].max_mem_per_node_mb = 1000;
  check({{"-p ml -N2 --mem=2000", "pending: MaxMemPerLimit"}});
  cluster_.partitions[1].state = cluster::PartitionState::drain;
  check({{"-p ml -N2",
          "never: Unable to allocate resources: Required partition not available (inactive or "
          "drain)"}});
}

TEST_F(JobPlacement, LeastLoadedNodesFirst) {
  cluster_.partitions[1].least_loaded = true;
  const JobPlan plan = place_job(cluster_, usage_, parse_srun("-p ml -n1 --mem=1G"));
  usage_.take(plan.allocation);
  check({{"-p ml -n1 --mem=1G", "gpu2 0"}, {"-p ml -N2 --mem=1G", "gpu2 0 | gpu3 0"}});
}

TEST(JobPlacementOnOddNodes, ContiguousNodesAreNeighbours) {
  cluster::Cluster c;
  for (int i = 1; i <= 3; ++i) c.nodes.push_back(corpus::node("a" + std::to_string(i), 1, {}));
  c.nodes.push_back(corpus::node("z1", 1, {}));
  for (cluster::Node& node : c.nodes) node.cores_per_socket = node.name == "z1" ? 32 : 2;
  c.index_nodes();
  corpus::add_partition(c, "all", {}, true);
  const cluster::Usage usage(c);
  const JobPlan plan = place_job(c, usage, parse_srun("--contiguous -N2 -n60"));
  EXPECT_EQ(shown(c, plan).substr(0, 3), "a3 ") << shown(c, plan);
}

TEST(JobPlacementOnOddNodes, TemporaryDiskIsLookedAtNodeByNode) {
  cluster::Cluster c = corpus::make();
  c.nodes[3].tmp_disk_mb = 5000;  // gpu2
  const cluster::Usage usage(c);
  EXPECT_EQ(shown(c, place_job(c, usage, parse_srun("-n1 --tmp=4000"))), "gpu2 0");
}

TEST_F(JobPlacement, RefusedOrPending) {
  check({
      {"-p gpu_partition -n20 -c8", "pending: PartitionConfig"},
      {"-p ml -n65", "pending: PartitionConfig"},
      {"-N9", "pending: PartitionNodeLimit"},
      {"-p ml -N5", "pending: PartitionNodeLimit"},
      {"-n33 --ntasks-per-node=4", "pending: PartitionNodeLimit"},
      {"-c33", "never: CPU count per node can not be satisfied"},
      {"--ntasks-per-node=17 -p ml", "never: CPU count per node can not be satisfied"},
      {"--mem=65537", "never: Memory specification can not be satisfied"},
      {"--sockets-per-node=3",
       "never: Socket, core and/or thread specification can not be satisfied"},
      {"--gres=gpu:9", kUnavailable},
      {"--gpus=100", kUnavailable},
      {"--gres=gpu:h100:1", kUnavailable},
      {"-C tesla_v100 -N2", kUnavailable},
      {"-C [rack2|nvlink] -N3", kUnavailable},
      {"-w cpu1 --gres=gpu:1", kUnavailable},
      {"-p ml -w cpu1", kUnavailable},
      {"-x gpu[1-6],cpu[1-2] -n1", kUnavailable},
      {"-N1 -n17 -p ml", kUnavailable},
      {"-n4 -N2 --ntasks-per-node=1", kUnavailable},
      {"-N3 --mincpus=18", kUnavailable},
      {"--mem-per-cpu=40G -c2", kUnavailable},
      {"--gpus=1 --mem-per-gpu=100G", kUnavailable},
      {"-C nosuch", "never: Unable to allocate resources: Invalid feature specification"},
      {"-w nosuch", "never: Unable to allocate resources: Invalid node name specified"},
      {"-w gpu1 -x gpu1", "never: Unable to allocate resources: Invalid node name specified"},
      {"-p nosuch", "never: invalid partition specified: nosuch"},
      {"--gres=nic:1",
       "never: Unable to allocate resources: Invalid generic resource (gres) specification"},
      {"--gres=shard:5", "pending: Resources"},
      {"--gres=shard:33", kUnavailable},
      {"-p short -t 5", "pending: PartitionTimeLimit"},
      {"-p closed", "pending: PartitionDown"},
  });
}

TEST_F(JobPlacement, SuccessiveJobsShareANode) {
  const auto run = [&](const std::string& options) {
    const JobPlan plan = place_job(cluster_, usage_, parse_srun(options));
    if (plan.verdict == Verdict::now) usage_.take(plan.allocation);
    return shown(cluster_, plan);
  };
  const std::string one = "-w gpu1 --mem=1G -n1 --gres=gpu:1";
  EXPECT_EQ(run(one), "gpu1 0 gpus 0");
  EXPECT_EQ(run(one), "gpu1 8 gpus 2");
  EXPECT_EQ(run(one), "gpu1 1 gpus 1");
  EXPECT_EQ(run(one), "gpu1 9 gpus 3");
  EXPECT_EQ(run(one), "pending: Resources");
  EXPECT_EQ(run("-w gpu2 --mem=1G -n1 --gres=gpu:1"), "gpu2 0 gpus 0");
  EXPECT_EQ(run("-w gpu2 --mem=1G -n1 --gres=gpu:2"), "gpu2 8 gpus 2-3");
  EXPECT_EQ(run("--gres=shard:2 --mem=1G -n1"), "gpu6 0 gpus 0");
  EXPECT_EQ(run("--gres=shard:2 --mem=1G -n1"), "gpu6 8 gpus 4");
  EXPECT_EQ(run("-w gpu3 -n1"), "gpu3 0");
  EXPECT_EQ(run("-w gpu3 -n1 --mem=1G"), "pending: Resources")
      << "a plain job holds all the memory";
}

TEST_F(JobPlacement, ReleaseReturnsExactlyWhatWasTaken) {
  const JobPlan plan = place_job(cluster_, usage_, parse_srun("-N2 -n4 --gpus=4 --mem=1G"));
  ASSERT_EQ(plan.verdict, Verdict::now);
  usage_.take(plan.allocation);
  EXPECT_EQ(usage_.at(2).memory_mb, 1024U);
  usage_.release(plan.allocation);
  for (cluster::NodeIndex i = 0; i < cluster_.nodes.size(); ++i) {
    EXPECT_TRUE(usage_.at(i).cores.empty());
    EXPECT_EQ(usage_.at(i).memory_mb, 0U);
    for (const auto& devices : usage_.at(i).gres) {
      for (std::uint64_t units : devices) EXPECT_EQ(units, 0U);
    }
  }
}

TEST_F(JobPlacement, ArraysEndWhereTheClusterSays) {
  const auto placed = [&](const std::string& indices) {
    const std::vector<std::string> words = {"--array=" + indices, "--wrap", "true"};
    const auto parsed = request::parse(request::Command::sbatch, words, "", {});
    return shown(cluster_, place_job(cluster_, usage_, parsed->components.front()));
  };
  EXPECT_EQ(placed("0-1000"), "gpu1 0");
  EXPECT_EQ(placed("0-1001"),
            "never: Batch job submission failed: Invalid job array specification");
}

TEST_F(JobPlacement, WaitingForDownNodesSaysSo) {
  for (cluster::Node& node : cluster_.nodes) node.usable = false;
  const JobPlan plan = place_job(cluster_, usage_, parse_srun("-n2"));
  EXPECT_EQ(plan.verdict, Verdict::later);
  EXPECT_EQ(plan.reasons.nearest_miss, "8 of the 8 nodes of partition debug are down or drained");
}

TEST_F(JobPlacement, SharesThatNoGpuHasNeverStart) {
  const JobPlan plan = place_job(cluster_, usage_, parse_srun("--gres=shard:5"));
  EXPECT_EQ(plan.verdict, Verdict::pending);
  EXPECT_NE(plan.reasons.nearest_miss.find("no GPU has more than 4"), std::string::npos)
      << plan.reasons.nearest_miss;
}

TEST_F(JobPlacement, RefusalNamesTheNearestMiss) {
  const auto hint = [&](const std::string& options) {
    return place_job(cluster_, usage_, parse_srun(options)).error.hint;
  };
  EXPECT_NE(hint("--gres=gpu:tesla_v100:3").find("closest: gpu5 has 2 tesla_v100, asked 3"),
            std::string::npos)
      << hint("--gres=gpu:tesla_v100:3");
  EXPECT_NE(hint("--gres=gpu:h100:1").find("have a100:18"), std::string::npos)
      << hint("--gres=gpu:h100:1");
  EXPECT_NE(hint("--gpus=100").find("28 GPUs in all, asked 100"), std::string::npos)
      << hint("--gpus=100");
  EXPECT_NE(hint("-p gpu_partitio").find("did you mean 'gpu_partition'?"), std::string::npos)
      << hint("-p gpu_partitio");
  EXPECT_NE(hint("-N1 -n5 --gpus-per-task=2").find("closest: gpu6 has 8 GPUs, asked 10"),
            std::string::npos)
      << hint("-N1 -n5 --gpus-per-task=2");
  EXPECT_NE(hint("-w gpu1 --gres=gpu:5").find("closest: gpu1 has 4 GPUs, asked 5"),
            std::string::npos)
      << hint("-w gpu1 --gres=gpu:5");
  EXPECT_NE(hint("-N1 --gpus=9").find("closest: gpu6 has 8 GPUs, asked 9"), std::string::npos)
      << hint("-N1 --gpus=9");
  EXPECT_NE(hint("--gpus=1 --cpus-per-gpu=17").find("CPUs"), std::string::npos)
      << hint("--gpus=1 --cpus-per-gpu=17");
  EXPECT_NE(hint("--threads-per-core=3").find("closest: cpu1 has 2 threads per core, asked 3"),
            std::string::npos)
      << hint("--threads-per-core=3");
  EXPECT_NE(hint("--mem=65537").find("has 64G of memory"), std::string::npos)
      << hint("--mem=65537");
}

}  // namespace
}  // namespace berth::place
