// Cores that are kept for GPU jobs, and limits of a partition on what a job may have of a node.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "place/corpus_cluster_test_fixture.h"
#include "place/place.h"
#include "request/parse.h"

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
  JobPlan plan(const std::string& options) {
    std::istringstream in(options);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    words.emplace_back("true");
    auto parsed = request::parse(request::Command::srun, words, "", {});
    EXPECT_TRUE(parsed) << options;
    request_ = parsed->components.front();
    const cluster::Usage usage(cluster_);
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
