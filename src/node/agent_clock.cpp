// The agent and the time of its controller: tickets are judged by it, and what this machine's own
// clock differs by is told.
#include <cstdlib>
#include <limits>

#include "node/agent.h"

namespace berth::node {

std::int64_t Agent::ticket_time() const {
  // Who knows no time has no key either: there is nothing to allow.
  return controller_clock_.even_seconds(boot_now())
      .value_or(std::numeric_limits<std::int64_t>::max());
}

void Agent::time_told(std::uint64_t question, const ControllerClock::Told& told) {
  controller_clock_.answered(question, told, boot_now());
  const std::int64_t ahead = controller_clock_.ahead(machine_time_.wall(), boot_now());
  const bool was_off = std::exchange(clock_ahead_, ahead) != 0;
  if (ahead != 0 && !was_off) {
    log_.error("the clock of this machine is {} s {} the cluster's; nothing is decided by it",
               std::abs(ahead), ahead > 0 ? "ahead of" : "behind");
  } else if (ahead == 0 && was_off) {
    log_.info("the clock of this machine is right again");
  }
}

}  // namespace berth::node
