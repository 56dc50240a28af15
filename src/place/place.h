// Where a job goes: request + cluster + what is in use → nodes, cores, devices, memory, and why.
// The rules are Slurm's (select/cons_tres, CR_Core_Memory); the same functions serve the
// controller, `berth explain`, the simulator and the tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/cluster.h"
#include "cluster/usage.h"
#include "request/counts.h"
#include "request/request.h"

namespace berth::place {

enum class Verdict {
  now,      // starts at once
  later,    // fits the cluster, but not what is free now
  pending,  // accepted, but a partition limit keeps it from running
  never,    // refused
};

/// Why nodes were not used, counted while placing; and the nearest miss.
struct Reasons {
  std::map<std::string, std::uint32_t> nodes_by_cause;  // "not enough GPUs of type a100" → 6
  std::string nearest_miss;                             // "closest: gpu5 has 2 tesla_v100, asked 3"
};

struct JobPlan {
  Verdict verdict = Verdict::never;
  cluster::Allocation allocation;  // when verdict is now
  std::string pending_reason;      // squeue's word: Resources, PartitionTimeLimit, …
  Error error;                     // when verdict is never
  Reasons reasons;
  std::vector<Message> warnings;
  request::Counts counts;
  std::string partition;                              // the partition that was used
  std::optional<std::uint32_t> time_limit_minutes;    // unset = unlimited
  std::optional<std::uint32_t> shortened_to_minutes;  // --time-min: to start earlier
  std::optional<request::Memory> memory;              // the request, or the default that applied
  std::string reservation;                            // it runs in this one; "" = none
};

/// How much is said about a job that has to wait: counting causes looks at every node again, which
/// a scheduler that only wants the verdict does not need.
enum class Detail { full, verdict };

/// Plans one component of a job. Never changes `usage`.
JobPlan place_job(const cluster::Cluster& cluster, const cluster::Usage& usage,
                  const request::Request& request, Detail detail = Detail::full);

/// The lines a command prints for a refusal by the controller, e.g. for srun
/// "error: Unable to allocate resources: <text>".
Error allocation_error(request::Command command, Code code, std::string hint = {},
                       std::string extra_line = {});

}  // namespace berth::place
