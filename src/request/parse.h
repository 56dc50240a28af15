// From words to a Request: getopt_long semantics, input environment variables, #SBATCH lines,
// precedence, and the conflicts that Slurm's client commands report themselves.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "request/request.h"

namespace berth::request {

/// What the parser may ask of its surroundings; pure code does not open files.
struct Surroundings {
  Environment environment;  // the caller's variables
  bool inside_job = false;  // SLURM_JOB_ID (or --jobid) makes srun a step
  bool is_root = false;
  bool stored = false;  // it was accepted before: how large it is is not asked again
  std::size_t max_script = std::size_t{4} << 20;  // slurm.conf SchedulerParameters=max_script_size
  bool judges_nice = true;  // false: the controller knows who may go below 0, and says so
  bool multiple_sharing_gres = false;  // slurm.conf SelectTypeParameters, for one-task-per-sharing
  std::string cluster_name;            // slurm.conf ClusterName: --clusters may name it
  std::vector<std::string> mpi_types = {"none", "pmi2", "pmix"};
  /// Content of a file named by -w/-F (a name with '/'), SLURM_HOSTFILE; nullopt = not readable.
  std::map<std::string, std::string> files;  // name → content, filled by the caller beforehand
};

struct Parsed {
  /// One, or several for a heterogeneous job or step. `srun --het-group=0,1` gives one component
  /// for each group, each with its own group in het_groups and that group's variables.
  std::vector<Request> components;
  std::vector<Message> warnings;  // printed and gone on
};

/// `words` are the arguments after the command name. For sbatch, `script` is the text of the batch
/// script ("" with --wrap); the script's own name is found with first_argument().
///
/// --help, --usage and --version end parsing: the only component then has nothing but them in
/// `given`. An Error with exit code 0 is an answer (--hint=help, --mpi=list): print and stop.
/// For a request that makes a job, the counts have been derived once (counts.h) and accepted.
Result<Parsed> parse(Command command, std::span<const std::string> words, std::string_view script,
                     const Surroundings& around);

/// The position in `words` of the first non-option (the script or the command), or words.size().
/// Needed to read the script before parse(); errors are left for parse() to report.
std::size_t first_argument(Command command, std::span<const std::string> words);

/// File names that will be wanted in Surroundings::files: by parse() those of -w, -F and
/// SLURM_HOSTFILE, by the planner the configuration of --multi-prog.
std::vector<std::string> files_wanted(Command command, std::span<const std::string> words,
                                      std::string_view script, const Environment& environment);

/// The name of the job: --job-name, else the base name of the script or command, "wrap",
/// "sbatch" (script from standard input) or "interactive" (salloc).
std::string job_name_of(const Request& request);

/// One #SBATCH line as found in a script, with the words on it.
struct Directive {
  int line = 0;
  std::vector<std::string> words;
};

}  // namespace berth::request
