// The groups of what runs in a job, a step or a receiver of a file: killing what is in them, and
// removing them with what they stood in.
#pragma once

#include <cstdint>
#include <string>

namespace berth::node {

struct Surroundings;

struct GroupsOf {
  std::string cgroup;  // of cgroup v2; "" = none
  std::uint32_t uid = 0;
  std::uint32_t job = 0;
  std::string name;  // Fencing::name_of
};

/// For those whose supervisor is gone, or that are not to run. False while one is left.
bool drop_groups(Surroundings& here, const GroupsOf& groups);
/// What the groups stood in, when they are gone.
void tidy_groups(Surroundings& here, const GroupsOf& groups);

}  // namespace berth::node
