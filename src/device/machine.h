// What this machine has: what an agent tells the controller, and `berth up` writes into slurm.conf.
//
//   device::Machine m = device::this_machine();       // hwloc, NVML, /proc, /sys, /dev
//   device::Machine e = device::pretended(node);      // a node of an emulated cluster
//   device::Machine f = device::described(survey);    // a topology file
//   m.os_cpus(mask);                                  // CPU ids of the plan → the kernel's numbers
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bits.h"
#include "cluster/cluster.h"
#include "survey/survey.h"

namespace berth::device {

enum class Vendor { nvidia, amd, intel };
std::string_view name_of(Vendor vendor);

/// A GPU that jobs can be given; of one that is cut into parts (MIG), each part.
struct Gpu {
  Vendor vendor = Vendor::nvidia;
  std::uint32_t minor = 0;              // /dev/nvidia<minor>, /dev/dri/renderD<minor>
  std::string type;                     // "a100": one word, as in Gres=gpu:a100:4; "" = not known
  std::string model;                    // "NVIDIA A100-SXM4-80GB"
  std::string file;                     // "/dev/nvidia0"
  std::string bus;                      // "0000:3b:00.0"
  Bits sockets;                         // near these; empty = not known
  std::string uuid;                     // "GPU-…", "MIG-…"; "" = not known
  std::uint64_t memory_mb = 0;          // 0 = not known
  std::optional<std::uint32_t> numa;    // node of memory near it
  std::string profile;                  // of a part: "3g.40gb"
  std::vector<std::string> more_files;  // of a part: what it needs besides `file`
  std::vector<int> links;               // to each GPU: NVLinks or XGMI links, -1 = itself; empty =
                                        // there are none, or it is not known
  std::vector<std::optional<survey::Way>> ways;  // to each GPU; empty = not known

  /// The model as Slurm's NVML plugin spells types: "nvidia_a100-sxm4-80gb". gres.conf may name a
  /// GPU by any part of it.
  [[nodiscard]] std::string long_type() const;
  /// Whether a configuration that calls it so means this GPU.
  [[nodiscard]] bool is_called(std::string_view type) const;
};

struct Machine {
  std::string host;  // short name
  std::uint32_t sockets = 1;
  std::uint32_t cores_per_socket = 1;
  std::uint32_t threads_per_core = 1;
  std::uint64_t memory_mb = 1;
  std::uint64_t tmp_disk_mb = 0;
  std::vector<Gpu> gpus;       // in the order in which jobs count them
  std::int64_t boot_time = 0;  // Unix seconds
  std::string arch;            // "x86_64"
  std::string os;              // "Linux 6.1.0-18-amd64 #1 SMP …"
  /// The kernel's number of each CPU id (core × threads + thread, cores counted over sockets).
  /// Empty for a pretended machine, where nothing is bound.
  std::vector<std::uint32_t> os_numbers;
  std::vector<std::string> notes;      // what was not as expected, and how it was taken
  std::optional<survey::Survey> told;  // by NVIDIA's library

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

/// AutoDetect= of gres.conf: where GPUs are looked for. `full`: everywhere, until one finds some.
enum class Detect { full, nvml, nvidia, rsmi, oneapi, off };

struct Search {
  Places places;
  Detect detect = Detect::full;
  /// The program that asks NVML; "" = there is none.
  std::string nvml_helper = helper_beside_this_program();

  static std::string helper_beside_this_program();
};

/// The short name of this host.
std::string host_name();

Machine this_machine(const Search& search = {});

/// The machine of a topology file.
Machine described(const survey::Survey& survey);
/// The other way: what NVIDIA's library told, with the CPUs. Only of a machine with `told`.
survey::Survey recorded(const Machine& machine);

/// The machine that a node of a configuration would be.
Machine pretended(const cluster::Node& node);

}  // namespace berth::device
