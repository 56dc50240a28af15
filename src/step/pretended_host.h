// On a pretended node: what runs there finds the other nodes by name, and is told its node's name
// when it asks for the machine's.
#pragma once

#include <string>

namespace berth::step {

/// Descriptors that the agent left: the namespace with the names; without root also the user
/// namespace it belongs to.
inline constexpr int kNamesDescriptor = 6;
inline constexpr int kUsersDescriptor = 7;

/// False: the names are not known here, and the machine's name stays.
bool become_pretended_host(const std::string& node, bool own_users);

}  // namespace berth::step
