// Rules about the files and directories that a job names.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lint/rule.h"
#include "text/pattern.h"

namespace berth::lint {
namespace {

using request::Opt;
using request::Request;

/// Calls fn(option, file name) for --output and --error.
template <class Fn>
void each_output(const Request& request, Fn&& fn) {
  if (request.output) fn(Opt::output, *request.output);
  if (request.error) fn(Opt::error, *request.error);
}

bool has_letter(std::string_view pattern, std::string_view letters) {
  if (pattern.find('\\') != std::string_view::npos) return false;  // substitution is off
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    std::size_t at = i + 1;
    while (at < pattern.size() && pattern[at] >= '0' && pattern[at] <= '9') ++at;
    if (at < pattern.size() && letters.find(pattern[at]) != std::string_view::npos) return true;
    i = at;
  }
  return false;
}

void find_missing_directory(const Facts& facts, Report& report) {
  if (!facts.input.directory_exists) return;
  for (const Job& job : facts.jobs) {
    if (job.request->command != request::Command::sbatch) continue;
    each_output(*job.request, [&](Opt opt, const std::string& name) {
      const std::size_t slash = name.rfind('/');
      if (slash == std::string::npos || slash == 0) return;
      const std::string written = name.substr(0, slash);
      if (written.find('%') != std::string::npos) return;  // known only when the job runs
      const bool relative = !name.starts_with('/') && job.request->chdir;
      const std::string directory = relative ? *job.request->chdir + "/" + written : written;
      if (facts.input.directory_exists(directory)) return;
      report.add(line_of(*job.request, opt),
                 fmt::format("{} does not exist. berth creates it, and so does Slurm 26.11; older "
                             "Slurm ends the job at once, without any output.",
                             written),
                 "mkdir -p " + written);
    });
  }
}

void find_shared_output(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    if (!job.request->array || job.request->array_size.value_or(0) < 2) continue;
    each_output(*job.request, [&](Opt opt, const std::string& name) {
      if (name.starts_with("/dev/") || !text::same_for_all_elements(name)) return;
      const std::size_t dot = name.rfind('.');
      const bool extension = dot != std::string::npos && name.find('/', dot) == std::string::npos;
      const std::string better =
          extension ? name.substr(0, dot) + "_%a" + name.substr(dot) : name + "_%a";
      report.add(line_of(*job.request, opt),
                 fmt::format("All {} elements of the array write to {}, and each one empties it "
                             "first.",
                             *job.request->array_size, name),
                 facts.as_directive(fmt::format("--{}={}", long_name(opt), better)));
    });
  }
}

void find_task_pattern(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    if (job.request->command != request::Command::sbatch) continue;
    each_output(*job.request, [&](Opt opt, const std::string& name) {
      if (!has_letter(name, "tns")) return;
      report.add(line_of(*job.request, opt),
                 fmt::format("--{}={}: the batch script is one process, so %t and %n are always 0 "
                             "here, and %s is no number.",
                             long_name(opt), name),
                 fmt::format("srun --{}={} …", long_name(opt), name));
    });
  }
}

void find_array_pattern(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    if (job.request->command != request::Command::sbatch || job.request->array) continue;
    each_output(*job.request, [&](Opt opt, const std::string& name) {
      if (!has_letter(name, "aA")) return;
      std::string better = name;
      if (const std::size_t at = better.find("%A_%a"); at != std::string::npos) {
        better.replace(at, 5, "%j");
      } else {
        for (const std::string_view each : {"%A", "%a"}) {
          if (const std::size_t found = better.find(each); found != std::string::npos) {
            better.replace(found, 2, "%j");
          }
        }
      }
      report.add(line_of(*job.request, opt),
                 fmt::format("--{}={}: without --array, Slurm puts 4294967294 for %a.",
                             long_name(opt), name),
                 facts.as_directive(fmt::format("--{}={}", long_name(opt), better)));
    });
  }
}

void find_missing_chdir(const Facts& facts, Report& report) {
  if (!facts.input.directory_exists) return;
  for (const Job& job : facts.jobs) {
    if (!job.request->chdir || facts.input.directory_exists(*job.request->chdir)) continue;
    const bool batch = job.request->command == request::Command::sbatch;
    report.add(batch ? Level::error : Level::warning, line_of(*job.request, Opt::chdir),
               fmt::format(
                   "{} does not exist: {}.", *job.request->chdir,
                   batch ? "the job fails before its first line" : "the tasks run in /tmp instead"),
               "mkdir -p " + *job.request->chdir);
  }
}

void find_local_output(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    if (job.request->command != request::Command::sbatch) continue;
    each_output(*job.request, [&](Opt opt, const std::string& name) {
      if (!name.starts_with("/tmp/") && !name.starts_with("/var/tmp/")) return;
      report.add(line_of(*job.request, opt),
                 fmt::format("{} is on the disk of the node that runs the job, not here.", name),
                 facts.as_directive(fmt::format("--{}=%x-%j.out", long_name(opt))));
    });
  }
}

constexpr std::array<Entry, 6> kFilesRules = {{
    {{"B701", Level::note, "The directory of the output does not exist",
      "berth creates it when the job starts, as Slurm does from 26.11 on. Under an older Slurm the "
      "job dies without a trace.",
      "#SBATCH --output=logs/%j.out", "mkdir -p logs"},
     find_missing_directory},
    {{"B702", Level::warning, "All elements of an array write to one file",
      "Elements run at the same time, and each truncates the file when it starts.",
      "#SBATCH --array=1-10\n#SBATCH --output=run.out",
      "#SBATCH --array=1-10\n#SBATCH --output=run_%a.out"},
     find_shared_output},
    {{"B703", Level::note, "%t in the output of a batch script",
      "Ranks exist only inside srun: %t and %n are 0 in the name of a batch script's output.",
      "#SBATCH --output=rank%t.out", "srun --output=rank%t.out ./app"},
     find_task_pattern},
    {{"B704", Level::warning, "%a without an array",
      "%a is the index of an array element. Elsewhere Slurm writes 4294967294 for it.",
      "#SBATCH --output=run_%A_%a.out", "#SBATCH --output=run_%j.out"},
     find_array_pattern},
    {{"B705", Level::error, "The working directory does not exist",
      "A batch job with a missing --chdir fails before its first line; srun goes to /tmp with a "
      "message.",
      "#SBATCH --chdir=/no/such/place", ""},
     find_missing_chdir},
    {{"B706", Level::note, "The output is on the node's own disk",
      "/tmp is not shared: the file is on the first node of the job, and may be deleted with it.",
      "#SBATCH --output=/tmp/run.out", "#SBATCH --output=run.out"},
     find_local_output},
}};

}  // namespace

std::span<const Entry> file_rules() {
  return kFilesRules;
}

}  // namespace berth::lint
