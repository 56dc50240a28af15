// Cores that are kept for GPU jobs, and limits of a partition on what a job may have of a node.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "place/place.h"
#include "place/step_test_fixture.h"

namespace berth::place {
namespace {

class Limits : public ::testing::Test {
 protected:
  Limits() {
    for (cluster::Node& node : cluster_.nodes) {
      if (!node.name.starts_with("gpu")) continue;
      node.restricted_cores_per_gpu = 2;
      node.gpu_cores = Bits::range(0, 3) | Bits::range(8, 11);
    }
  }
  JobPlan plan(const std::string& options) { return plan(options, cluster::Usage(cluster_)); }
  JobPlan plan(const std::string& options, const cluster::Usage& usage) {
    request_ = corpus::parsed(request::Command::srun, options);
    return place_job(cluster_, usage, request_);
  }
  /// Cores of the only node, or why not.
  std::string place(const std::string& options) {
    const JobPlan out = plan(options);
    if (out.verdict == Verdict::now) return out.allocation.nodes.front().cores.ranges();
    return out.verdict == Verdict::never ? out.error.hint : out.reasons.nearest_miss;
  }

  cluster::Cluster cluster_ = corpus::make();
  request::Request request_;
};

TEST_F(Limits, CoresAreKeptForGpuJobsUnderBothPolicies) {
  for (const auto policy : {cluster::Placement::best_fit, cluster::Placement::keep_whole}) {
    cluster_.settings.placement = policy;
    EXPECT_EQ(place("-w gpu1 -n1 -c8 --mem=1G"), "4-7,12-15");
    EXPECT_EQ(place("-w gpu1 -n1 -c9 --mem=1G"),
              "closest: gpu1 has 8 CPUs for it, asked 9 (8 of 16 cores are kept for GPU jobs) (1 "
              "node: not enough CPUs)");
    EXPECT_EQ(place("-w gpu1 -n1 -c2 --gpus=1 --mem=1G"), "0-1");
    EXPECT_EQ(place("-w gpu1 -n1 -c16 --gpus=4 --mem=1G"), "0-15");
    EXPECT_EQ(place("-w gpu1 --exclusive --mem=1G"), "0-15");
    EXPECT_EQ(place("-w gpu6 -n1 -c1 --gres=shard:1 --mem=1G"), "0");
  }
}

TEST_F(Limits, JobsOfAPartitionTogetherHaveNoMore) {
  cluster_.partitions.push_back(cluster_.partitions.front());
  cluster_.partitions.back().name = "other";
  cluster_.partitions.back().is_default = false;
  for (const bool by_socket : {false, true}) {
    cluster::Partition& partition = cluster_.partitions.front();
    partition.max_cpus_per_node.reset();
    partition.max_cpus_per_socket.reset();
    (by_socket ? partition.max_cpus_per_socket : partition.max_cpus_per_node) = 4;
    cluster::Usage usage(cluster_);
    std::vector<cluster::Allocation> running;
    const auto start = [&](const std::string& options) -> std::string {
      JobPlan out = plan("-w cpu1 -N1 -n1 --mem=1G " + options, usage);
      if (out.verdict != Verdict::now) return "waits";
      usage.take(out.allocation);
      running.push_back(out.allocation);
      return running.back().nodes.front().cores.ranges();
    };
    // Two threads a core, eight cores a socket.
    EXPECT_EQ(start("-c2"), "0");
    EXPECT_EQ(start("-p other -c4"), "1-2");
    EXPECT_EQ(start("-c2"), "3");
    EXPECT_EQ(start("-c2"), by_socket ? "8" : "waits");
    EXPECT_EQ(start("-p other -c2"), "4") << "others are not bound";
    EXPECT_EQ(start("-c4"), "waits");
    EXPECT_THAT(
        plan("-w cpu1 -N1 -n1 -c4 --mem=1G", usage).reasons.nodes_by_cause,
        ::testing::ElementsAre(::testing::Pair(by_socket ? "not enough CPUs (MaxCPUsPerSocket=4)"
                                                         : "not enough CPUs (MaxCPUsPerNode=4)",
                                               1)));
    usage.release(running.front());
    running.erase(running.begin());
    EXPECT_EQ(start("-c2"), "0") << "what one gives back another may have";
    for (const cluster::Allocation& one : running) usage.release(one);
    EXPECT_EQ(usage.state_of(0), cluster::Usage(cluster_).state_of(0));
  }
}

TEST_F(Limits, TheLimitIsNamed) {
  cluster::Partition& partition = cluster_.partitions.front();
  partition.max_cpus_per_node = 4;
  EXPECT_EQ(place("-w cpu1 -N1 -n1 -c6 --mem=1G"),
            "closest: cpu1 has 4 CPUs for it, asked 6 (MaxCPUsPerNode=4) (1 node: not enough "
            "CPUs)");
  partition.max_cpus_per_node.reset();
  partition.max_cpus_per_socket = 4;  // two threads a core
  EXPECT_EQ(place("-w cpu1 -N1 -n1 -c8 --mem=1G"), "0-1,8-9");
  EXPECT_EQ(place("-w cpu1 -N1 -n1 -c10 --mem=1G"),
            "closest: cpu1 has 8 CPUs for it, asked 10 (MaxCPUsPerSocket=4) (1 node: not enough "
            "CPUs)");
  partition.max_cpus_per_socket.reset();
  partition.max_mem_per_node_mb = 1000;
  EXPECT_EQ(plan("-w cpu1 -N1 -n1 --mem=2000").pending_reason, "MaxMemPerLimit");
  EXPECT_EQ(place("-w cpu1 -N1 -n1 --mem=2000"),
            "2000M of memory on a node asked, MaxMemPerNode=1000 in partition debug");
}

}  // namespace
}  // namespace berth::place
