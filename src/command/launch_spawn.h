// MPI_Comm_spawn: an srun is asked by a task of its step for another step of the same job, and
// starts another srun for that, which shares the job's resources with everything there. The new one
// reads what to run from a file without a name and says through a pipe that it runs; the end of the
// pipe is its end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "command/launch_signals.h"
#include "command/submit_asked.h"
#include "request/request.h"
#include "wire/step.pb.h"

namespace berth::command {

/// What every srun that this one starts is given.
struct SpawnTemplate {
  std::vector<std::string> options;
  request::Environment environment;
};
/// Streams, PMI and whatever else tasks inherit from those that spawn them.
SpawnTemplate spawn_template(const request::Request& request, std::uint32_t job_id,
                             const request::Environment& environment);

/// The words after `srun`: the template's, then what this request needs. `nodes`: of the step that
/// asks. An error: what is asked for cannot be had.
Result<std::vector<std::string>> spawn_words(const SpawnTemplate& fixed,
                                             const wire::SpawnTasks& tasks, std::size_t nodes);

struct SpawnedSrun {
  pid_t pid = -1;
  Fd says;  // its answer, then its end
};
Result<SpawnedSrun> start_srun(const std::vector<std::string>& words, const SpawnTemplate& fixed,
                               const wire::SpawnTasks& tasks, const SignalFd& signals);

/// In the srun that was started so.
struct SpawnOrder {
  wire::SpawnTasks tasks;
  Fd answer;
};
/// Takes the order that the environment names, and the variable that names it; none for any other
/// srun.
Result<std::optional<SpawnOrder>> take_spawn_order(request::Environment& environment);
/// Puts the programs of all ranks, and that they were spawned.
void put_spawned(wire::Program& program, const wire::SpawnTasks& tasks);

}  // namespace berth::command
