// What a trace says, whatever its format: jobs with a time, a length and a request. Traces are
// foreign bytes: lines that cannot be used are counted and the first of them named; nothing is
// dropped silently.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::simulate {

inline constexpr std::size_t kMostJobs = 20'000'000;
inline constexpr std::size_t kMostLineBytes = std::size_t{64} << 10;
inline constexpr std::int64_t kMostSeconds = 1'000'000'000'000;
inline constexpr std::uint64_t kMostCount = 100'000'000;  // nodes, CPUs, GPUs of one job

/// What a job asks for. Equal ones are kept once (Trace::asks).
struct Ask {
  std::uint32_t nodes = 0;  // 0 = as many as it takes
  std::uint32_t tasks = 1;
  std::uint32_t cpus_per_task = 1;
  std::uint64_t memory_per_node_mb = 0;  // 0 = not said
  std::uint64_t memory_per_cpu_mb = 0;   // 0 = not said
  std::uint32_t gpus = 0;                // of the whole job
  std::uint32_t gpu_milli = 0;           // instead: thousandths of one GPU
  std::vector<std::string> models;       // any of these; empty = any
  std::string partition;
  friend auto operator<=>(const Ask&, const Ask&) = default;

  [[nodiscard]] std::uint32_t cpus() const { return tasks * cpus_per_task; }
  /// Whole GPUs it takes, a share counted as one.
  [[nodiscard]] std::uint32_t devices() const { return gpu_milli > 0 ? 1 : gpus; }
};

struct TraceJob {
  std::int64_t submit = 0;          // seconds; where they begin does not matter
  std::int64_t runtime = 0;         // seconds it would run if nothing ended it
  std::uint32_t limit_minutes = 0;  // 0 = not said
  std::uint32_t ask = 0;            // position in Trace::asks
  std::uint32_t user = 0;           // any number: equal for equal users
  std::uint32_t line = 0;           // where it was read
  std::uint32_t priority = 0;       // 0 = not said
};

enum class Format { swf, sacct, openb };
std::string_view format_name(Format format);
std::optional<Format> format_of(std::string_view name);

class Trace {
 public:
  std::vector<TraceJob> jobs;  // by time of submission, then by line
  std::vector<Ask> asks;
  std::string name;         // of the file, or how it was made
  std::string format;       // "swf", "sacct", "openb", "synthetic"
  std::uint64_t lines = 0;  // that are jobs or would be: not headers, comments, steps
  std::uint64_t skipped = 0;
  std::vector<std::string> skipped_first;  // "file:12: …"
  std::vector<std::string> notes;          // what was taken how

  static constexpr std::size_t kNamed = 5;
  void skip(std::uint64_t line, std::string_view why);
  /// The position of an equal one.
  std::uint32_t intern(Ask ask);
  void sort();

 private:
  std::map<Ask, std::uint32_t> known_;
};

/// The format by what the text looks like.
std::optional<Format> detect(std::string_view text);

/// Reads a whole file. The error is for a file that is not what it is said to be; lines that cannot
/// be used are in the Trace.
Result<Trace> read_trace(std::string_view text, std::string_view name,
                         std::optional<Format> format = {});

Result<Trace> read_swf(std::string_view text, std::string_view name);
Result<Trace> read_sacct(std::string_view text, std::string_view name);
Result<Trace> read_openb(std::string_view text, std::string_view name);

}  // namespace berth::simulate
