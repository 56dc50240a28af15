// A rehearsal: a controller, nodes and users in one process, with a network, a clock and disks in
// memory, and everything that goes wrong drawn from a seed. The same seed gives the same schedule.
// docs/design/simulation.md says what is real in it and what is pretended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rehearsal/controller_host.h"
#include "rehearsal/witness.h"

namespace berth::rehearsal {

/// The slurm.conf of all rehearsals.
std::string slurm_conf();

struct Outcome {
  std::optional<std::string> fault;  // the first promise that was broken
  Counts counts;
  std::uint64_t digest = 0;  // of the schedule
};

/// `schedule`: prints all that happens.
Outcome rehearse(Site& site, std::uint64_t seed, bool schedule = false);

}  // namespace berth::rehearsal
