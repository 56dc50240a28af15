// Resource limits and niceness that travel from where the job was submitted. Both are a user's
// word: they are set with the user's rights, so that nobody gets what he could not have set
// himself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/basic.pb.h"

namespace berth::step {

/// RLIMIT_NOFILE for "NOFILE"; nullopt for a name that is none.
std::optional<int> resource_of(std::string_view name);
/// Sets the soft limits of this process, up to its hard ones; those of root may grow. Returns the
/// lines to print for demanded limits that could not be set. For a process that is the user's.
std::vector<std::string> set_limits(const google::protobuf::RepeatedPtrField<wire::Limit>& limits);
/// Gives back the soft limit of descriptors that a daemon raised for itself. 0 = leave it.
void restore_open_files(std::uint64_t soft);

/// The niceness of a task: `policy` is PropagatePrioProcess, `asked` the niceness of the command
/// that the task comes from, `own` that of the supervisor.
int niceness_of_task(std::uint32_t policy, int asked, int own, bool of_root);
/// Gives it to this process, which is the user's. Returns the lines to print where less was given.
std::vector<std::string> set_niceness(std::uint32_t policy, int asked);

}  // namespace berth::step
