// The shape of a node: CPUs against sockets, cores and threads; what is withheld from jobs.
#include "site/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace berth::site {
namespace {

constexpr std::uint64_t kMaxCpus = 16384;

template <class T>
T or_else(const conf::Maybe<T>& value, T otherwise) {
  return value ? value->value : otherwise;
}

void shape(const conf::NodeLine& line, cluster::Node& node, conf::Complaints& complaints) {
  const std::uint32_t cores = or_else(line.cores_per_socket, 1U);
  const std::uint32_t threads = or_else(line.threads_per_core, 1U);
  std::uint64_t sockets = 1;
  if (line.sockets) {
    sockets = line.sockets->value;
  } else if (line.sockets_per_board || line.boards) {
    sockets = std::uint64_t{or_else(line.boards, 1U)} * or_else(line.sockets_per_board, 1U);
  } else if (line.cpus) {
    sockets = std::max<std::uint64_t>(1, line.cpus->value / (std::uint64_t{cores} * threads));
  }
  const std::uint64_t all_cores = sockets * cores;
  const std::uint64_t all_threads = all_cores * threads;
  if (all_threads > kMaxCpus) {
    complaints.error(line.at,
                     fmt::format("{} sockets x {} cores x {} threads are {} CPUs; at most {} "
                                 "are allowed",
                                 sockets, cores, threads, all_threads, kMaxCpus));
    return;
  }
  node.sockets = static_cast<std::uint32_t>(sockets);
  node.cores_per_socket = cores;
  node.threads_per_core = threads;
  if (!line.cpus || line.cpus->value == all_threads) return;
  if (line.cpus->value == all_cores) {
    node.threads_per_core = 1;  // CPUs= counts cores: threads are not scheduled
    return;
  }
  complaints.warn(
      line.cpus->at,
      fmt::format("CPUs={} fits neither {} sockets x {} cores ({}) nor x {} threads ({}); "
                  "planned with {} CPUs",
                  line.cpus->value, sockets, cores, all_cores, threads, all_threads, all_threads));
}

void withhold(const conf::NodeLine& line, cluster::Node& node, conf::Complaints& complaints) {
  if (line.mem_spec_limit_mb) node.reserved_memory_mb = line.mem_spec_limit_mb->value;
  if (line.cpu_spec_list) {
    const Bits& ids = line.cpu_spec_list->value;
    if (ids.any() && ids.last() >= node.cpus()) {
      complaints.error(
          line.cpu_spec_list->at,
          fmt::format("CpuSpecList={} but the node has CPUs 0-{}", ids.ranges(), node.cpus() - 1));
      return;
    }
    ids.each([&](std::size_t id) { node.reserved_cores.set(id / node.threads_per_core); });
  } else if (line.core_spec_count) {
    if (line.core_spec_count->value > node.cores()) {
      complaints.error(line.core_spec_count->at,
                       fmt::format("CoreSpecCount={} but the node has {} "
                                   "cores",
                                   line.core_spec_count->value, node.cores()));
      return;
    }
    node.reserved_cores = specialized_cores(node, line.core_spec_count->value);
  }
}

}  // namespace

Bits specialized_cores(const cluster::Node& node, std::uint32_t count) {
  Bits out;
  for (std::uint32_t layer = node.cores_per_socket; layer-- > 0 && count > 0;) {
    for (std::uint32_t socket = node.sockets; socket-- > 0 && count > 0; --count) {
      out.set(std::size_t{socket} * node.cores_per_socket + layer);
    }
  }
  return out;
}

Bits gpu_cores(const cluster::Node& node, std::uint32_t per_gpu) {
  Bits out;
  const cluster::Gres* gpus = node.find_gres("gpu");
  if (gpus == nullptr || per_gpu == 0) return out;
  const auto take_from = [&](const std::vector<std::uint32_t>& sockets) {
    // A core of the socket that has given fewest, so that GPUs of no socket spread.
    std::optional<std::size_t> best;
    std::size_t least = 0;
    for (const std::uint32_t s : sockets) {
      const std::size_t first = std::size_t{s} * node.cores_per_socket;
      const std::size_t given = out.count_in(first, first + node.cores_per_socket - 1);
      if (best && given >= least) continue;
      for (std::size_t core = first; core < first + node.cores_per_socket; ++core) {
        if (out.test(core) || node.reserved_cores.test(core)) continue;
        best = core;
        least = given;
        break;
      }
    }
    if (best) out.set(*best);
  };
  for (const cluster::Device& device : gpus->devices) {
    std::vector<std::uint32_t> sockets;
    for (std::uint32_t s = 0; s < node.sockets; ++s) {
      if (device.near(s)) sockets.push_back(s);
    }
    const std::uint64_t cores = std::min<std::uint64_t>(device.units * per_gpu, node.cores());
    for (std::uint64_t i = 0; i < cores; ++i) take_from(sockets);
  }
  return out;
}

cluster::Node node_hardware(const conf::NodeLine& line, conf::Complaints& complaints) {
  cluster::Node node;
  shape(line, node, complaints);
  node.memory_mb = or_else(line.real_memory_mb, std::uint64_t{1});
  node.tmp_disk_mb = or_else(line.tmp_disk_mb, std::uint64_t{0});
  node.weight = or_else(line.weight, 1U);
  if (line.features) node.features = line.features->value;
  node.cloud = line.state && line.state->value == "CLOUD";
  withhold(line, node, complaints);
  if (line.state && line.state->value != "UNKNOWN" && line.state->value != "CLOUD") {
    node.usable = false;
    node.state_reason = line.reason ? fmt::format("{} ({})", line.state->value, line.reason->value)
                                    : line.state->value;
  }
  return node;
}

}  // namespace berth::site
