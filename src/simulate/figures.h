// What a simulation measured: values that the text, the JSON and the page are made of.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace berth::simulate {

/// Of numbers: the median is the smallest that half of them do not exceed, p95 likewise.
struct Spread {
  std::uint64_t count = 0;
  double mean = 0;
  double median = 0;
  double p95 = 0;
  double max = 0;
};

/// Jobs that asked for about as many GPUs.
struct SizeClass {
  std::string label;  // "1", "3-4"
  Spread wait;        // seconds
  Spread slowdown;
};

/// Means over one stretch of time.
struct Point {
  std::int64_t at = 0;  // seconds since the first submission
  double cpu = 0;       // part of all CPUs that is allocated
  double gpu = 0;
  double waiting = 0;  // jobs
  double running = 0;
  double stranded = 0;  // part of all GPUs that is free and of no use; see fragmentation.h
};

struct Outcome {
  std::string label;
  std::uint64_t nodes = 0, cpus = 0, gpus = 0;
  std::vector<std::string> notes;

  std::uint64_t jobs = 0;  // of the trace
  std::uint64_t started = 0;
  std::uint64_t backfilled = 0;
  std::uint64_t completed = 0;
  std::uint64_t timed_out = 0;
  std::uint64_t otherwise = 0;  // ended in another way
  std::uint64_t restarts = 0;
  std::uint64_t preemptions = 0;  // times a job gave way to another
  std::uint64_t refused = 0;
  std::vector<std::string> refused_first;
  std::uint64_t never_started = 0;                     // still waiting when nothing more happens
  std::map<std::string, std::uint64_t> never_reasons;  // squeue's word → jobs

  std::int64_t arrivals = 0;                  // seconds from the first submission to the last
  std::int64_t makespan = 0;                  // seconds from the first submission to the last end
  double cpu = 0, gpu = 0;                    // allocated on average until the last end
  double cpu_arrivals = 0, gpu_arrivals = 0;  // and until the last submission
  double stranded = 0;                        // of all GPUs, on average
  double stranded_of_free = 0;                // of those that are free
  double waiting = 0;                         // jobs on average
  std::uint64_t most_waiting = 0;

  Spread wait;
  Spread slowdown;
  std::vector<SizeClass> sizes;
  /// Part of the jobs that waited at most so many seconds.
  std::vector<std::pair<std::int64_t, double>> wait_curve;
  std::int64_t width = 1;  // seconds from one point to the next
  std::vector<Point> points;

  std::uint64_t passes = 0;      // turns in which the scheduler had something to look at
  std::uint64_t placements = 0;  // times a job was tried on the cluster
};

/// Outcomes of one or two configurations on the same trace.
struct Report {
  std::string trace;
  std::string format;
  std::uint64_t lines = 0;
  std::uint64_t skipped = 0;
  std::vector<std::string> skipped_first;
  std::vector<std::string> notes;
  std::vector<Outcome> runs;
};

/// Sorts `values`.
Spread spread_of(std::vector<double>& values);

}  // namespace berth::simulate
