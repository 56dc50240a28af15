// From when the leases of jobs count on this machine: written by the agent in its spool whenever
// the controller has answered, read by supervisors when a lease would be over. So a supervisor can
// keep to its job's lease without its agent.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/boot_clock.h"
#include "base/result.h"

namespace berth::step {

/// So long before a lease is over what runs under it is killed: SIGKILL takes its time to work, and
/// clocks do not go at quite the same speed.
std::chrono::seconds lease_margin(std::chrono::seconds lease);

/// What a supervisor, or what receives a file, does whose agent may be dead or hang. nullopt: the
/// lease is over, half a margin after the agent should have acted, and what runs under it has to
/// end; else when to look again. `from`: as the file says; `began`: the step, which counts where
/// there is no file.
std::optional<BootTime> look_at_lease(std::optional<BootTime> from, BootTime began,
                                      std::chrono::seconds lease, BootTime now);

inline constexpr const char* kLeaseFile = "lease";
/// spool/lease for spool/<node>/step.…
std::string lease_file_of(const std::string& record);

/// nullopt: there is none, or it is of another boot, or cannot be read.
std::optional<BootTime> read_lease_file(const std::string& path);
/// Always in the same place of the same file, so that a full disk does not end jobs.
Result<void> write_lease_file(const std::string& path, BootTime from);

}  // namespace berth::step
