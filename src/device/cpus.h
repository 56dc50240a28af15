// Sockets, cores and threads of this machine, through hwloc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bits.h"

namespace berth::device {

struct CpuMap {
  std::uint32_t sockets = 1;
  std::uint32_t cores_per_socket = 1;
  std::uint32_t threads_per_core = 1;
  std::vector<std::uint32_t> os_numbers;  // of each CPU id, see Machine
  std::vector<std::string> notes;
};

/// One hardware thread, as found.
struct Thread {
  std::uint32_t socket = 0;
  std::uint32_t core = 0;  // counted over the whole machine
  std::uint32_t os_number = 0;
};

CpuMap find_cpus();
/// The sockets that CPUs of these numbers of the kernel belong to.
Bits sockets_of(const Bits& os_cpus, const CpuMap& cpus);
/// The regular shape that fits the threads. A machine that is not regular (cores of different
/// kinds, sockets of different size) becomes one socket of cores with one thread each.
CpuMap shape_of(std::vector<Thread> threads);

}  // namespace berth::device
