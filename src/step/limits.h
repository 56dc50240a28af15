// Resource limits that travel from where the job was submitted.
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
/// Sets the soft limits of this process; hard limits are raised only where allowed. Returns the
/// lines to print for demanded limits that could not be set.
std::vector<std::string> set_limits(const google::protobuf::RepeatedPtrField<wire::Limit>& limits);
/// Gives back the soft limit of descriptors that a daemon raised for itself. 0 = leave it.
void restore_open_files(std::uint64_t soft);

}  // namespace berth::step
