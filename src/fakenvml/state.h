// The machine that the fake library pretends: one JSON file, named by BERTH_FAKE_NVML, read again
// whenever it changes. docs/hardware.md has its keys.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace berth::fakenvml {

struct Instance {
  std::string uuid;
  unsigned int gpu_instance = 0;
  unsigned int compute_instance = 0;
  std::string profile;
  unsigned int slices = 0;
  std::uint64_t memory_mb = 0;
};

struct Process {
  unsigned int pid = 0;
  std::optional<std::uint64_t> memory_mb;
  std::optional<unsigned int> gpu_instance;
  bool draws = false;  // a graphics process
};

struct Gpu {
  std::string uuid;
  unsigned int minor = 0;
  std::string model;
  std::string bus;
  std::uint64_t memory_mb = 0;
  std::vector<unsigned long> cpus;  // a bit for each
  std::optional<unsigned int> numa;
  std::vector<int> links;  // the GPU at the end of each; -1 = a switch
  std::vector<int> ways;   // to the GPU of that index, as NVML numbers them; -1 = not told
  std::vector<Instance> instances;
  bool mig = false;
  std::vector<Process> processes;
  std::optional<unsigned int> busy_percent;
  std::uint64_t memory_used_mb = 0;
  std::optional<unsigned int> power_mw;
  std::optional<unsigned int> celsius;
  std::optional<std::uint64_t> ecc_corrected;
  std::optional<std::uint64_t> ecc_uncorrected;
  std::optional<unsigned int> rows_remapped;
  bool rows_pending = false;
  bool rows_failed = false;
  bool missing = false;  // fell off the bus
};

struct XidEvent {
  std::uint64_t number = 0;  // 1, 2, …: each is told once
  unsigned int gpu = 0;
  std::uint64_t code = 0;
};

struct State {
  std::string driver;
  std::vector<Gpu> gpus;
  std::vector<XidEvent> xids;
  std::set<std::string> missing_functions;  // as with an older driver
};

/// nullopt: not such a file.
std::optional<State> parse_state(const std::string& text);

/// The state now; nullptr while there is no file that can be read. A file that is being written
/// leaves the state as it was.
const State* current();
/// The path of the file; "" = not named.
std::string state_path();

}  // namespace berth::fakenvml
