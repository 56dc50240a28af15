// The cluster of the recorded behaviour, in code, for tests: cpu1-2 with two threads a core, gpu1-4
// with four linked a100, gpu5 with two types, gpu6 with eight untyped GPUs of four shards each.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster.h"

namespace berth::place::corpus {

inline cluster::Device gpu(std::string type, std::size_t socket, int record, int index,
                           std::vector<int> links = {}) {
  cluster::Device device;
  device.type = std::move(type);
  device.sockets = Bits::of({socket});
  device.record = record;
  device.links = std::move(links);
  device.file = "/dev/nvidia" + std::to_string(index);
  return device;
}

inline cluster::Node node(std::string name, std::uint32_t threads,
                          std::vector<std::string> features, std::vector<cluster::Gres> gres = {}) {
  cluster::Node node;
  node.name = std::move(name);
  node.sockets = 2;
  node.cores_per_socket = 8;
  node.threads_per_core = threads;
  node.memory_mb = 65536;
  node.features = std::move(features);
  node.gres = std::move(gres);
  return node;
}

inline std::vector<cluster::Gres> four_a100() {
  cluster::Gres gres;
  gres.name = "gpu";
  gres.devices = {gpu("a100", 0, 0, 0, {-1, 4, 0, 0}), gpu("a100", 0, 1, 1, {4, -1, 0, 0}),
                  gpu("a100", 1, 2, 2, {0, 0, -1, 4}), gpu("a100", 1, 3, 3, {0, 0, 4, -1})};
  return {gres};
}

inline std::vector<cluster::Gres> two_types() {
  cluster::Gres gres;
  gres.name = "gpu";
  gres.devices = {gpu("tesla_v100", 0, 0, 0), gpu("tesla_v100", 0, 0, 1), gpu("a100", 1, 1, 2),
                  gpu("a100", 1, 1, 3)};
  return {gres};
}

inline std::vector<cluster::Gres> eight_shared() {
  cluster::Gres gres;
  gres.name = "gpu";
  cluster::Gres shards;
  shards.name = "shard";
  shards.shares_gpu = true;
  for (int i = 0; i < 8; ++i) {
    gres.devices.push_back(gpu("", i < 4 ? 0 : 1, i < 4 ? 0 : 1, i));
    shards.devices.push_back(gres.devices.back());
    shards.devices.back().units = 4;
  }
  return {gres, shards};
}

inline void add_partition(cluster::Cluster& cluster, std::string name,
                          const std::vector<std::string>& nodes, bool is_default = false) {
  cluster::Partition partition;
  partition.name = std::move(name);
  partition.is_default = is_default;
  for (cluster::NodeIndex i = 0; i < cluster.nodes.size(); ++i) {
    const bool listed = std::ranges::find(nodes, cluster.nodes[i].name) != nodes.end();
    if (nodes.empty() || listed) partition.nodes.push_back(i);
  }
  cluster.partitions.push_back(std::move(partition));
}

inline cluster::Cluster make() {
  cluster::Cluster c;
  c.name = "oracle";
  c.nodes = {node("gpu1", 1, {"a100", "nvlink"}, four_a100()),
             node("gpu2", 1, {"a100", "nvlink"}, four_a100()),
             node("gpu3", 1, {"a100", "rack2"}, four_a100()),
             node("gpu4", 1, {"a100", "rack2"}, four_a100()),
             node("gpu5", 1, {"tesla_v100"}, two_types()),
             node("gpu6", 1, {"sharded"}, eight_shared()),
             node("cpu1", 2, {"cpuonly"}),
             node("cpu2", 2, {"cpuonly"})};
  c.index_nodes();
  c.settings.gres_types = {"gpu", "shard"};
  add_partition(c, "debug", {}, true);
  add_partition(c, "ml", {"gpu1", "gpu2", "gpu3", "gpu4"});
  add_partition(c, "gpu_partition", {"gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6"});
  add_partition(c, "short", {});
  c.partitions.back().max_time_minutes = 2;
  c.partitions.back().default_time_minutes = 1;
  add_partition(c, "closed", {"cpu1", "cpu2"});
  c.partitions.back().state = cluster::PartitionState::down;
  return c;
}

}  // namespace berth::place::corpus
