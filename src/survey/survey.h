// What a machine's GPUs are and how they fare, as berth-nvml tells it and topology files keep it.
//
// The text is lines of words: what the line is about, then key=value. Bytes of a value that are not
// printable ASCII, blanks, '%' and '=' are written as %xx. A key whose value is not known is left
// out. docs/hardware.md has the whole format.
//
//   berth-nvml version=1                          always the first line
//   gpu index=0 minor=0 uuid=GPU-… bus=0000:1b:00.0 memory_mb=81559 model=NVIDIA%20H100 cpus=0-31
//   nvlink from=0 to=1 count=4
//   end                                           the whole list, or one round of a watch
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bits.h"
#include "base/result.h"

namespace berth::survey {

inline constexpr std::uint32_t kVersion = 1;
// Bounds of what is read.
inline constexpr std::size_t kMostGpus = 256;
inline constexpr std::size_t kMostInstances = 64;  // MIG, of one GPU
inline constexpr std::size_t kMostProcesses = 4096;
inline constexpr std::size_t kMostLine = 16384;
inline constexpr std::size_t kMostBytes = std::size_t{4} << 20;

/// The first line of every text.
struct Header {
  std::uint32_t version = kVersion;
};

/// The rest of the machine: only in topology files.
struct Cpus {
  std::uint32_t sockets = 1;
  std::uint32_t cores = 1;    // of a socket
  std::uint32_t threads = 1;  // of a core
  std::uint64_t memory_mb = 1;
  /// "0,4,1,5": the kernel's number of each CPU id. "" = as Linux counts a regular machine: first
  /// threads of all cores, then second ones.
  std::string os;
};

struct Driver {
  std::string version;
};

struct FoundGpu {
  std::uint32_t index = 0;             // in the order of PCI buses
  std::optional<std::uint32_t> minor;  // /dev/nvidia<minor>
  std::string uuid;
  std::string bus;  // "0000:1b:00.0"
  std::uint64_t memory_mb = 0;
  std::string model;
  Bits cpus;                          // near ones, by the kernel's numbers; empty = not known
  std::optional<std::uint32_t> numa;  // node of memory near it
  std::optional<std::uint32_t> mig;   // 1: it is used only by its parts
};

/// A part of a GPU that programs see as a GPU of its own.
struct FoundInstance {
  std::uint32_t gpu = 0;
  std::uint32_t gpu_instance = 0;
  std::uint32_t compute_instance = 0;
  std::string uuid;
  std::string profile;  // "3g.40gb"
  std::uint64_t memory_mb = 0;
};

/// NVLinks of one GPU that end at another GPU, or at a switch that joins all that have such lines.
struct FoundLinks {
  std::uint32_t from = 0;
  std::optional<std::uint32_t> to;  // unset: a switch
  std::uint32_t count = 0;
};

/// What two GPUs share on the way between them, the nearest first.
enum class Way { board, pcie_switch, pcie_switches, host_bridge, numa_node, system };

struct FoundWay {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  Way way = Way::system;
};

/// A GPU that is there by number and does not answer.
struct Lost {
  std::uint32_t index = 0;
  std::string why;
};

/// How a GPU fares now. What is unset is not told by this GPU.
struct Sample {
  std::uint32_t gpu = 0;
  std::optional<std::uint32_t> busy_percent;
  std::optional<std::uint64_t> memory_used_mb;
  std::optional<std::uint64_t> power_mw;
  std::optional<std::uint32_t> celsius;
  std::optional<std::uint64_t> ecc_corrected;  // since the driver was loaded
  std::optional<std::uint64_t> ecc_uncorrected;
  std::optional<std::uint32_t> rows_remapped;
  std::optional<std::uint32_t> rows_pending;  // 1: remapped after the next reset
  std::optional<std::uint32_t> rows_failed;   // 1: no row is left to remap to
};

struct Process {
  std::uint32_t gpu = 0;
  std::uint32_t pid = 0;
  std::optional<std::uint64_t> memory_mb;
  std::optional<std::uint32_t> gpu_instance;  // of a MIG GPU
};

/// An error that the driver reported, as it came.
struct Xid {
  std::uint32_t gpu = 0;
  std::uint64_t code = 0;
};

struct End {};

using Line = std::variant<Header, Cpus, Driver, FoundGpu, FoundInstance, FoundLinks, FoundWay, Lost,
                          Sample, Process, Xid, End>;

/// One line without its newline.
Result<Line> read_line(std::string_view text);
/// The same, with its newline.
std::string write_line(const Line& line);

/// What `berth-nvml list` found, or a topology file describes.
struct Survey {
  std::optional<Cpus> cpus;
  std::string driver;
  std::vector<FoundGpu> gpus;  // by index; indices of lost ones are missing
  std::vector<FoundInstance> instances;
  std::vector<FoundLinks> links;
  std::vector<FoundWay> ways;
  std::vector<Lost> lost;
};

/// The whole text of a list. Lines that begin with '#' are comments. An error names the line.
Result<Survey> read_survey(std::string_view text);
std::string write_survey(const Survey& survey);

std::string_view word_of(Way way);

}  // namespace berth::survey
