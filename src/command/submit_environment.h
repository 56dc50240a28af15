// Which variables a job or a step gets: --export, --export-file, --get-user-env.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "request/request.h"

namespace berth::command {

/// --export, read.
struct ExportChoice {
  bool all = false;                                      // ALL, or nothing was said
  bool nothing = false;                                  // NIL: not even the login environment
  std::vector<std::pair<std::string, std::string>> set;  // NAME=value
  std::vector<std::string> named;                        // NAME
};
/// Commas separate; a comma inside '…' or "…" belongs to the value.
ExportChoice read_export(std::string_view text);

/// The caller's variables as the job gets them; SLURM_* always pass.
request::Environment exported(const request::Environment& mine, const ExportChoice& choice);

/// The text of --export-file: NAME=value entries that end with a zero byte.
Result<request::Environment> read_export_file(const std::string& path);

/// What a login shell of the user would begin with: asks the shell itself, and falls back on
/// HOME, USER, LOGNAME, SHELL and PATH when it does not answer.
request::Environment login_environment(const request::Environment& mine);

struct JobEnvironment {
  request::Environment variables;   // the job's, and those that only the request reads
  std::vector<std::string> hidden;  // names of the latter
};
/// The variables sbatch sends: what the job gets by its options, and the input variables of sbatch
/// itself, which the controller reads the request by.
Result<JobEnvironment> job_environment(const request::Environment& mine,
                                       const request::Request& request);

/// The variables srun's tasks get, before those that srun and the step set. A choice without ALL
/// leaves out PATH as well, as recorded (docs/conformance.md).
request::Environment step_environment(const request::Environment& mine,
                                      const request::Request& request);

/// What to tell who starts a program by its bare name in tasks that have no PATH; "" otherwise.
std::string advice_without_path(const request::Environment& tasks, const request::Request& request);

}  // namespace berth::command
