// Who is shown what of jobs that are not his. Everything that answers questions about jobs asks
// here.
//
//   PrivateData=jobs                            others' jobs are not shown at all
//   SlurmctldParameters=show_command_lines      their command lines are, as in Slurm
//
// Without either others see a job as it stands in the queue: its name, user, state, times, size,
// nodes, directory and output files. Scripts and environments are shown to nobody else, whatever is
// set.
#pragma once

#include <cstdint>

#include "controller/caller.h"

namespace berth::controller {

struct Disclosure {
  bool jobs = true;
  bool command_lines = false;

  [[nodiscard]] bool shows_job(const Caller& caller, std::uint32_t owner) const {
    return jobs || may_touch(caller, owner);
  }
  /// What was typed: Command and SubmitLine, in which there are arguments and the text of --wrap.
  [[nodiscard]] bool shows_command_line(const Caller& caller, std::uint32_t owner) const {
    return command_lines || may_touch(caller, owner);
  }
  /// The text of the script, and variables of the environment.
  [[nodiscard]] static bool shows_script(const Caller& caller, std::uint32_t owner) {
    return may_touch(caller, owner);
  }
};

}  // namespace berth::controller
