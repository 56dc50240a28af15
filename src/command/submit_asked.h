// A command line of sbatch, salloc or srun: read and checked here first, then sent as it was typed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "request/parse.h"
#include "wire/submit.pb.h"

namespace berth::command {

struct Prepared {
  request::Command command = request::Command::sbatch;
  std::vector<std::string> words;
  std::string script;
  request::Surroundings around;
  request::Parsed parsed;

  [[nodiscard]] const request::Request& first() const { return parsed.components.front(); }
  [[nodiscard]] bool has(request::Opt opt) const { return first().given.has(opt); }
  [[nodiscard]] std::string_view name() const { return request::command_name(command); }
  /// -Q.
  [[nodiscard]] bool quiet() const { return has(request::Opt::quiet); }
  /// How often -v was given.
  [[nodiscard]] int verbosity() const;
};

/// Reads the files that the request names and parses. Warnings are printed.
Result<Prepared> prepare(request::Command command, std::span<const std::string> words,
                         std::string script, const request::Environment& environment,
                         bool inside_job);

/// --help, --usage, --version: prints and returns true.
bool answered(const Prepared& prepared);

/// What is sent. `step`: only the variables that a step's request is read by.
wire::Asked asked_of(const Prepared& prepared, bool step);

/// Puts variables where a message keeps them.
void put_variables(google::protobuf::RepeatedPtrField<wire::Variable>& out,
                   const request::Environment& variables);
/// Resource limits to hand on, by --propagate.
std::vector<wire::Limit> limits_of(const request::Request& request);

std::string current_directory();
std::string short_host_name();
mode_t current_umask();

/// The code of srun's, salloc's or sbatch's own errors: SLURM_EXIT_ERROR, else what the error says.
int own_exit_code(const request::Environment& environment, int code);
/// SLURM_EXIT_IMMEDIATE, else 1.
int immediate_exit_code(const request::Environment& environment);

/// A number from a variable; nullopt when it is not set or none.
std::optional<std::uint32_t> number_in(const request::Environment& environment, const char* name);

}  // namespace berth::command
