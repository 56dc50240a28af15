// A cluster of equal nodes with 64 cores and 8 GPUs, for benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cluster/cluster.h"

namespace berth::place::testing {

inline cluster::Cluster large_cluster(std::uint32_t nodes) {
  cluster::Cluster c;
  cluster::Gres gpus;
  gpus.name = "gpu";
  for (int i = 0; i < 8; ++i) {
    cluster::Device device;
    device.type = "h100";
    device.sockets = Bits::of({i < 4 ? 0U : 1U});
    device.record = i;
    gpus.devices.push_back(std::move(device));
  }
  for (std::uint32_t i = 0; i < nodes; ++i) {
    cluster::Node node;
    node.name = "node" + std::to_string(i + 1);
    node.sockets = 2;
    node.cores_per_socket = 32;
    node.memory_mb = 1024 * 1024;
    node.gres = {gpus};
    c.nodes.push_back(std::move(node));
  }
  c.index_nodes();
  c.settings.gres_types = {"gpu"};
  cluster::Partition all;
  all.name = "main";
  all.is_default = true;
  for (std::uint32_t i = 0; i < nodes; ++i) all.nodes.push_back(i);
  c.partitions.push_back(std::move(all));
  return c;
}

}  // namespace berth::place::testing
