// Processes that not even SIGKILL ends, because they hang in the kernel: how they are told of, and
// UnkillableStepProgram.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace berth::node {

struct Surroundings;

/// "4711 dd (D, in folio_wait_bit); 4712 …", not many of them.
std::string described(const std::vector<pid_t>& pids);

struct Unkillable {
  std::string node;
  std::uint32_t job = 0;
  std::string step;  // its name
  std::vector<pid_t> pids;
};
/// Runs UnkillableStepProgram, if there is one.
void run_unkillable_program(Surroundings& here, const Unkillable& left);

}  // namespace berth::node
