// What agents find, against what the configuration says.
#include "job/found_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/state_test_fixture.h"

namespace berth::job::testing {
namespace {

using ::testing::ElementsAre;

wire::GpuFound found(const std::string& type, int minor, std::uint32_t socket,
                     std::vector<int> links = {}) {
  wire::GpuFound out;
  out.set_type(type);
  out.set_file("/dev/nvidia" + std::to_string(minor));
  out.add_sockets(socket);
  for (const int link : links) out.add_links(link);
  return out;
}

cluster::Node node_with(const std::vector<std::string>& types) {
  cluster::Node node;
  node.name = "n1";
  node.sockets = 2;
  cluster::Gres gpus;
  gpus.name = "gpu";
  for (const std::string& type : types) {
    cluster::Device device;
    device.type = type;
    gpus.devices.push_back(device);
  }
  node.gres.push_back(gpus);
  return node;
}

TEST(FoundGpus, FillWhatIsOpen) {
  cluster::Node node = node_with({"", ""});
  const std::vector gpus = {found("h100", 0, 0, {-1, 18}), found("h100", 1, 1, {18, -1})};
  EXPECT_TRUE(take_found_gpus(node, gpus));
  const auto& devices = node.gres[0].devices;
  EXPECT_EQ(devices[1].file, "/dev/nvidia1");
  EXPECT_EQ(devices[1].sockets.ranges(), "1");
  EXPECT_THAT(devices[1].links, ElementsAre(18, -1));
  EXPECT_EQ(devices[1].type, "");  // slurm.conf gives none
  EXPECT_FALSE(take_found_gpus(node, gpus));
}

TEST(FoundGpus, TellWhoMadeThemAndTheirNames) {
  cluster::Node node = node_with({"mi300", "mi300"});
  std::vector gpus = {found("mi300", 0, 0), found("mi300", 1, 1)};
  for (wire::GpuFound& gpu : gpus) {
    gpu.set_vendor("amd");
    gpu.set_uuid("GPU-" + gpu.file());
  }
  auto& devices = node.gres[0].devices;
  EXPECT_TRUE(take_found_gpus(node, gpus));
  EXPECT_EQ(devices[0].variables, cluster::GpuVariables()) << "AutoDetect= does not ask for it";
  EXPECT_EQ(devices[0].uuid, "");
  for (cluster::Device& device : devices) {
    device.variables.of_vendor = true;
    device.variables.by_uuid = true;
  }
  EXPECT_TRUE(take_found_gpus(node, gpus));
  EXPECT_TRUE(devices[1].variables.rocr);
  EXPECT_FALSE(devices[1].variables.cuda || devices[1].variables.of_vendor);
  EXPECT_EQ(devices[1].uuid, "GPU-/dev/nvidia1");
  EXPECT_FALSE(take_found_gpus(node, gpus));
}

TEST(FoundGpus, WhatIsConfiguredStays) {
  cluster::Node node = node_with({"h100", "h100"});
  auto& devices = node.gres[0].devices;
  devices[0].file = "/dev/nvidia1";
  devices[1].file = "/dev/nvidia0";
  devices[0].sockets.set(0);
  EXPECT_TRUE(take_found_gpus(node, std::vector{found("h100", 0, 1), found("h100", 1, 1)}));
  EXPECT_EQ(devices[0].sockets.ranges(), "0");
  EXPECT_EQ(devices[1].sockets.ranges(), "1");
  EXPECT_EQ(devices[0].file, "/dev/nvidia1");
}

TEST(FoundGpus, OrderIsThatOfTheMachine) {
  cluster::Node node = node_with({"a100", "a100", "v100"});
  cluster::Gres shards = node.gres[0];
  shards.name = "shard";
  shards.shares_gpu = true;
  for (cluster::Device& device : shards.devices) device.units = 4;
  shards.devices[2].units = 2;
  node.gres.push_back(shards);
  const std::vector gpus = {found("v100", 0, 0, {-1, 0, 0}), found("a100", 1, 1, {0, -1, 12}),
                            found("a100", 2, 1, {0, 12, -1})};
  EXPECT_TRUE(take_found_gpus(node, gpus));
  EXPECT_EQ(node.gres[0].devices[0].type, "v100");
  EXPECT_EQ(node.gres[0].devices[0].file, "/dev/nvidia0");
  EXPECT_THAT(node.gres[0].devices[1].links, ElementsAre(0, -1, 12));
  EXPECT_EQ(node.gres[1].devices[0].units, 2U);
}

TEST(FoundGpus, OthersThanConfiguredChangeNothing) {
  cluster::Node node = node_with({"a100", "a100"});
  EXPECT_FALSE(take_found_gpus(node, std::vector{found("h100", 0, 0), found("h100", 1, 1)}));
  EXPECT_FALSE(take_found_gpus(node, std::vector{found("a100", 0, 0)}));
  EXPECT_EQ(node.gres[0].devices[0].file, "");
}

TEST(FoundGpus, PartsAreFoundByName) {
  cluster::Node node = node_with({"a100", "a100_3g.20gb"});
  std::vector gpus = {found("a100", 0, 0), found("a100_3g.20gb", 1, 0)};
  gpus[0].set_uuid("GPU-1");
  EXPECT_TRUE(take_found_gpus(node, gpus));
  EXPECT_EQ(node.gres[0].devices[0].uuid, "");  // numbers will do
  gpus[1].set_uuid("MIG-2");
  EXPECT_TRUE(take_found_gpus(node, gpus));
  EXPECT_EQ(node.gres[0].devices[0].uuid, "GPU-1");
  EXPECT_EQ(node.gres[0].devices[1].uuid, "MIG-2");
}

/// The corpus with GPUs of which only the number is known, and more nodes of another kind.
cluster::Cluster bare_cluster(int more) {
  cluster::Cluster cluster = place::corpus::make();
  for (cluster::Node& node : cluster.nodes) {
    for (cluster::Gres& gres : node.gres) {
      for (cluster::Device& device : gres.devices) {
        device.sockets.clear();
        device.file.clear();
      }
    }
  }
  for (int i = 0; i < more; ++i) {
    cluster::Node node;
    node.name = "zz" + std::to_string(1000 + i);  // behind all others
    cluster.nodes.push_back(node);
  }
  cluster.index_nodes();
  return cluster;
}

void expect_sockets(Controller& c, const std::string& sockets) {
  const cluster::Cluster& cluster = c.state.cluster();
  const cluster::Node& node = cluster.nodes[*cluster.find_node("gpu1")];
  EXPECT_EQ(node.find_gres("gpu")->devices[3].sockets.ranges(), sockets);
}

wire::NodeReport four_gpus() {
  wire::NodeReport report;
  for (int i = 0; i < 4; ++i) *report.add_gpus() = found("a100", i, i < 2 ? 0 : 1);
  return report;
}

TEST(FoundGpus, AreKnownAtOnceAndAfterReconfiguration) {
  const cluster::Cluster cluster = bare_cluster(0);
  Controller c({}, cluster);
  expect_sockets(c, "");
  c.up("gpu1", four_gpus());
  expect_sockets(c, "1");
  c.state.reconfigure(cluster, {}, c.now);
  expect_sockets(c, "1");
}

TEST(FoundGpus, OfALargeClusterArePlannedWithAMomentLater) {
  Controller c({}, bare_cluster(100));
  c.up("gpu1", four_gpus());
  expect_sockets(c, "");
  ASSERT_EQ(c.state.next_deadline(), c.now + 1);
  c.state.tick(++c.now);
  expect_sockets(c, "1");
}

}  // namespace
}  // namespace berth::job::testing
