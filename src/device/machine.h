// What this machine has: what an agent tells the controller, and `berth up` writes into slurm.conf.
//
//   device::Machine m = device::this_machine();       // hwloc, /proc, /dev
//   device::Machine e = device::pretended(node);      // a node of an emulated cluster
//   m.os_cpus(mask);                                  // CPU ids of the plan → CPU numbers of the
//   kernel
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bits.h"
#include "cluster/cluster.h"

namespace berth::device {

struct Gpu {
  std::uint32_t minor = 0;  // /dev/nvidia<minor>
  std::string type;         // "a100": one word, as in Gres=gpu:a100:4; "" = not known
  std::string model;        // "NVIDIA A100-SXM4-80GB"
  std::string file;         // "/dev/nvidia0"
  std::string bus;          // "0000:3b:00.0"
  Bits sockets;             // near these; empty = not known
};

struct Machine {
  std::string host;  // short name
  std::uint32_t sockets = 1;
  std::uint32_t cores_per_socket = 1;
  std::uint32_t threads_per_core = 1;
  std::uint64_t memory_mb = 1;
  std::uint64_t tmp_disk_mb = 0;
  std::vector<Gpu> gpus;       // by minor number
  std::int64_t boot_time = 0;  // Unix seconds
  std::string arch;            // "x86_64"
  std::string os;              // "Linux 6.1.0-18-amd64 #1 SMP …"
  /// The kernel's number of each CPU id (core × threads + thread, cores counted over sockets).
  /// Empty for a pretended machine, where nothing is bound.
  std::vector<std::uint32_t> os_numbers;
  std::vector<std::string> notes;  // what was not as expected, and how it was taken

  [[nodiscard]] std::uint32_t cpus() const { return sockets * cores_per_socket * threads_per_core; }
  /// The kernel's numbers of a set of CPU ids; ids this machine does not have are left out.
  [[nodiscard]] Bits os_cpus(const Bits& ids) const;
};

/// Where to look; tests point it elsewhere.
struct Places {
  std::string proc = "/proc";
  std::string dev = "/dev";
  std::string sys = "/sys";
  std::string tmp = "/tmp";
};

Machine this_machine(const Places& places = {});

/// The machine that a node of a configuration would be.
Machine pretended(const cluster::Node& node);

}  // namespace berth::device
