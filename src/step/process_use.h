// What a process uses, as the kernel tells it in /proc. Times, faults and bytes are with those of
// its children that have ended and were waited for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace berth::step {

struct ProcessUse {
  std::uint64_t cpu = 0;     // microseconds
  std::uint64_t pages = 0;   // faults that had to read
  std::uint64_t memory = 0;  // resident; bytes, as all sizes here
  std::uint64_t memory_most = 0;
  std::uint64_t address_space = 0;
  std::uint64_t address_space_most = 0;
  unsigned processor = 0;  // it ran there last
};

struct ProcessBytes {
  std::uint64_t read = 0;  // by read(2) and the like, wherever from
  std::uint64_t written = 0;
};

/// How the kernel counts.
struct KernelUnits {
  std::uint64_t ticks_per_second = 100;
  std::uint64_t page = 4096;
  static KernelUnits of_this_machine();
};

/// The text of /proc/PID/stat; nullopt when it is none.
std::optional<ProcessUse> parse_stat(std::string_view text, const KernelUnits& units);
/// The marks of /proc/PID/status: what was most.
void parse_status(std::string_view text, ProcessUse& use);
/// The text of /proc/PID/io.
std::optional<ProcessBytes> parse_io(std::string_view text);

/// nullopt: it is gone.
std::optional<ProcessUse> use_of(pid_t pid, const KernelUnits& units);
/// Also of one that has ended and was not waited for.
std::optional<ProcessBytes> bytes_of(pid_t pid);

/// The frequencies of CPUs in kHz, each asked for once.
class CpuClocks {
 public:
  /// nullopt where the kernel does not tell.
  std::optional<std::uint64_t> khz(unsigned processor);

 private:
  std::map<unsigned, std::optional<std::uint64_t>> known_;
  std::optional<std::map<unsigned, std::uint64_t>> listed_;  // of /proc/cpuinfo
};
/// "cpu MHz" of each processor in the text of /proc/cpuinfo, in kHz.
std::map<unsigned, std::uint64_t> parse_cpuinfo(std::string_view text);

}  // namespace berth::step
