// Starting daemons, waiting for them, and finding what they left.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth::command {

/// The path of a program beside this one; an error names the place when it is not there.
Result<std::string> program_beside(std::string_view name);

/// Starts a program in a session of its own, with `log` as its output and none of this program's
/// descriptors. SLURM_* variables of the caller are not passed on.
Result<pid_t> start_daemon(const std::vector<std::string>& words, const std::string& log);

/// Ended children are reaped: wait(2) status of one that ended, unset while it runs.
std::optional<int> ended(pid_t child);

/// The last lines of a file.
std::vector<std::string> tail(const std::string& path, std::size_t lines);

/// Asks every few milliseconds, at longer and longer intervals; false when time is up.
bool wait_until(std::chrono::milliseconds longest, const std::function<bool()>& done);

bool alive(pid_t pid);

/// SIGTERM, and SIGKILL when that does not help in time. False when it still lives.
bool end_process(pid_t pid, std::chrono::milliseconds patience);

/// Supervisors of this cluster (they hold a file in its spool open) and the processes that its jobs
/// started (their environment names its slurm.conf and a node).
std::vector<pid_t> left_processes(const std::string& spool, const std::string& conf);

}  // namespace berth::command
