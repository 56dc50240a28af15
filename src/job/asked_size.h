// What a job asks for, in numbers, before it has nodes: what listings show and priorities count.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cluster/cluster.h"
#include "request/counts.h"
#include "request/request.h"

namespace berth::job {

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

/// Generic resources of the whole job; a name may come several times, with its types.
std::vector<request::GresAsk> gres_asked(const AskedSize& size);

}  // namespace berth::job
