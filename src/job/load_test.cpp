// What is kept over a restart when slurm.conf was changed meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/record.h"
#include "job/state_test_fixture.h"

namespace berth::job::testing {
namespace {

using ::testing::HasSubstr;

/// The cluster of the recordings; the a100 of gpu1 have 40 GiB each, which jobs may share.
cluster::Cluster with_gpu_memory(std::size_t gpus = 4, bool shared = true) {
  cluster::Cluster cluster = place::corpus::make();
  cluster::Node& node = cluster.nodes[*cluster.find_node("gpu1")];
  node.gres.front().devices.resize(gpus);
  for (cluster::Device& device : node.gres.front().devices) {
    device.memory_mb = 40 * 1024;
    device.links.clear();
  }
  if (!shared) return cluster;
  cluster.settings.gres_types.emplace_back(text::kGpuMemory);
  cluster::add_gpu_memory(node);
  return cluster;
}

class LoadTest : public ::testing::Test {
 protected:
  /// A controller that starts with what `c` has stored, on a cluster that may be another one.
  std::unique_ptr<State> restarted(cluster::Cluster cluster) {
    Dirty dirty = c.state.take_dirty();
    Stored stored;
    stored.nodes = std::move(dirty.nodes);
    stored.jobs = std::move(dirty.jobs);
    auto again = std::make_unique<State>(std::move(cluster), Policy());
    again->load(stored, [&](std::uint64_t blob) { return std::optional(c.blobs.at(blob)); }, c.now);
    return again;
  }

  [[nodiscard]] cluster::NodeIndex gpu1() const { return *c.state.cluster().find_node("gpu1"); }

  Controller c{{}, with_gpu_memory()};
};

TEST_F(LoadTest, AJobKeepsItsPartOfAGpu) {
  const JobId id = c.started("-w gpu1 -N1 -n1 --mem=1G --gpu-mem=30G");
  const auto again = restarted(with_gpu_memory());
  EXPECT_EQ(again->find(id)->base, Base::running);
  EXPECT_EQ(again->usage().at(gpu1()).gres.at(1).at(0), 30U * 1024);
}

TEST_F(LoadTest, LessMemoryThanBeforeEndsNobody) {
  const JobId id = c.started("-w gpu1 -N1 -n1 --mem=1G --gpu-mem=30G");
  cluster::Cluster smaller = with_gpu_memory();
  for (cluster::Gres& gres : smaller.nodes[gpu1()].gres) {
    for (cluster::Device& device : gres.devices) device.memory_mb = 20 * 1024;
  }
  for (cluster::Device& device : smaller.nodes[gpu1()].gres.back().devices) device.units = 20480;
  EXPECT_EQ(restarted(smaller)->find(id)->base, Base::running);
}

TEST_F(LoadTest, AJobWhoseSharesAreNotCountedAnyMoreEnds) {
  const JobId id = c.started("-w gpu1 -N1 -n1 --mem=1G --gpu-mem=30G");
  const auto again = restarted(with_gpu_memory(4, false));
  EXPECT_EQ(again->find(id)->base, Base::node_fail);
  EXPECT_TRUE(again->usage().at(gpu1()).idle());
}

TEST_F(LoadTest, AJobWhoseGpusAreFewerEnds) {
  const JobId id = c.started("-w gpu1 -N1 -n1 --mem=1G --gpu-mem=30G");
  const auto again = restarted(with_gpu_memory(2));
  EXPECT_EQ(again->find(id)->base, Base::node_fail);
  EXPECT_TRUE(again->usage().at(gpu1()).idle());
}

TEST_F(LoadTest, SoItIsWhenSlurmConfIsReadAgain) {
  const JobId id = c.started("-w gpu1 -N1 -n1 --mem=1G --gpu-mem=30G");
  c.state.reconfigure(with_gpu_memory(2), {}, c.now);
  EXPECT_THAT(c.shown(id), HasSubstr("NODE_FAIL"));
  c.gone(id);
  EXPECT_TRUE(c.idle());
}

TEST_F(LoadTest, NodesThatAJobIsLeavingMayHaveLess) {
  const JobId id = c.started("-w gpu[1-2] -N2 -n2 --mem=1G --gres=gpu:4", "salloc");
  ASSERT_TRUE(c.state.shrink(id, {"gpu2"}, kAlice, c.now));
  c.state.reconfigure(with_gpu_memory(2), {}, c.now);
  EXPECT_EQ(c.shown(id), "RUNNING None");
  c.gone(id, "gpu1");
  EXPECT_TRUE(c.state.usage().at(gpu1()).idle());
}

TEST_F(LoadTest, AGpuTakenOutByHandThatIsNotThereAnyMoreIsForgotten) {
  ASSERT_TRUE(c.state.change_gpus({"gpu1"}, {Bits::of({1, 3}), true, "fan", "root", kRoot}));
  const auto again = restarted(with_gpu_memory(2));
  EXPECT_EQ(again->cluster().nodes[gpu1()].gpus_out.size(), 1U);
  EXPECT_TRUE(again->cluster().nodes[gpu1()].gpus_out.contains(1));
  EXPECT_EQ(again->take_dirty().nodes.at(0).gpus_drained_size(), 1) << "nor is it stored";

  c.state.reconfigure(with_gpu_memory(2), {}, c.now);
  EXPECT_EQ(c.state.cluster().nodes[gpu1()].gpus_out.size(), 1U);
  ASSERT_TRUE(c.state.change_gpus({"gpu1"}, {Bits::of({1}), false, "", "root", kRoot}));
  EXPECT_TRUE(c.state.cluster().nodes[gpu1()].gpus_out.empty());
}

}  // namespace
}  // namespace berth::job::testing
