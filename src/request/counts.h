// The numbers that follow from the options before any node is looked at: tasks, nodes, CPUs, GPUs.
// What one option implies for another lives here and nowhere else.
#pragma once

#include "request/request.h"

namespace berth::request {

/// Counts of devices beyond this can never be met; the cap keeps products of counts inside 64 bits.
inline constexpr std::uint64_t kMostDevices = UINT32_MAX;

struct Counts {
  std::optional<std::uint32_t> tasks;              // T: known task count of the job
  bool tasks_explicit = false;                     // -n was given
  std::optional<std::uint32_t> ntasks_per_node;    // Tn, given or implied by GPU options
  std::optional<std::uint32_t> ntasks_per_socket;  // Ts
  std::optional<std::uint32_t> sockets_per_node;
  std::uint32_t min_nodes = 1;
  std::optional<std::uint32_t> max_nodes;  // unset = unlimited
  bool max_nodes_implied = false;          // from -n, not from -N
  std::uint32_t desired_nodes = 1;
  std::vector<std::uint32_t> sizes;            // -N size list, ascending
  std::optional<std::uint32_t> cpus_per_task;  // c, given or implied
  // Each count is at most kMostDevices; the request has what was written.
  std::vector<GresAsk> per_job;  // Gj, including tasks × per-task
  std::vector<GresAsk> per_node;
  std::vector<GresAsk> per_socket;
  std::vector<GresAsk> per_task;
  std::optional<GpuBind> gpu_bind;  // given, or implied by per-task GPUs / ntasks-per-gpu
  std::vector<Message> warnings;    // "can't run T processes on N nodes, …"
};

/// Checks the combinations of spec gpu.md §4 and placement-jobs.md §1 and fills in what they imply.
/// Refusals are worded as the client commands word them.
Result<Counts> derive_counts(const Request& request);

/// Sum of counts of one resource name over all types.
std::uint64_t total_of(const std::vector<GresAsk>& asks, std::string_view name);

}  // namespace berth::request
