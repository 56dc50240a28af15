// What a job asks for, in numbers, before it has nodes: the size that ReqTRES, NumCPUs and NumTasks
// show.
#pragma once

#include <cstdint>
#include <optional>

#include "cluster/cluster.h"
#include "controller/info_tres.h"
#include "request/counts.h"
#include "request/request.h"

namespace berth::controller {

struct AskedSize {
  request::Counts counts;
  std::uint32_t nodes = 1;
  std::uint32_t tasks = 1;
  bool tasks_given = false;  // -n, or an option that fixes the count
  std::uint32_t cpus_per_task = 1;
  std::uint64_t cpus = 1;
  std::uint32_t min_cpus_node = 1;
  std::optional<request::Memory> memory;  // asked for, or the default of the partition
  std::uint64_t memory_mb = 0;            // of the whole job
};
AskedSize asked_size(const cluster::Cluster& cluster, const request::Request& request,
                     const cluster::Partition* partition);

/// NumCPUs of a job that has no nodes: what the search for nodes tries, which under
/// --gres-flags=enforce-binding is a core near each of the GPUs.
std::uint64_t cpus_tried(const cluster::Cluster& cluster, const request::Request& request,
                         const cluster::Partition* partition, const AskedSize& size);
/// NumNodes of a job that was refused: enough for --ntasks-per-node, whatever -N said.
std::uint32_t nodes_tried(const AskedSize& size);

/// ReqTRES.
TresCounts counts_of(const AskedSize& size);

/// "gres/gpu:a100:2,gres/shard:1".
std::string gres_ask_words(const std::vector<request::GresAsk>& asks);

}  // namespace berth::controller
