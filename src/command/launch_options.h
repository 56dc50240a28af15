// What srun sends to the nodes, and what it does itself, by its options.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "command/launch_run.h"
#include "command/submit_asked.h"

namespace berth::command {

/// One of --output, --error and --input.
struct StreamChoice {
  enum class Kind { client, none, task, node_file, own_file };
  Kind kind = Kind::client;
  std::string pattern;
  std::uint32_t rank = 0;
  friend bool operator==(const StreamChoice&, const StreamChoice&) = default;
};
/// Unset and what begins with "all": srun's own stream (a name that begins so is read so by Slurm
/// too); "none"; a rank; a pattern with %t, %n or %N is a file on the node, any other is srun's.
StreamChoice read_stream(const std::optional<std::string>& text, std::uint32_t ntasks);

/// Facts of the granted step that patterns and variables need.
struct StepFacts {
  std::uint32_t job_id = 0;
  std::uint32_t step_id = 0;
  std::uint32_t ntasks = 0;
  std::string user;
  std::string job_name;
  std::string host = "127.0.0.1";  // where tasks find srun
  bool own_job = false;
  // Of slurm.conf, for who does not say
  bool kill_on_bad_exit = false;
  std::uint32_t wait_seconds = 0;
};

/// The program of one component of the step.
wire::Program program_of(const Prepared& prepared, const request::Request& request,
                         const StepFacts& facts, const request::Environment& environment);

/// Everything of RunOptions that follows from the options; opens srun's own files.
Result<RunOptions> run_options_of(const Prepared& prepared, const StepFacts& facts,
                                  const wire::StepGrant& grant,
                                  const request::Environment& environment);

}  // namespace berth::command
