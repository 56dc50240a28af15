// What machine_job_host.h promises.
#include "node/machine_job_host.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "node/scripts.h"
#include "step/launch_failure.h"

namespace berth::node {
namespace {

Begun begun_of(const NodeJob& at) {
  return {.node = at.node, .job = at.job, .attempt = at.attempt, .step = {}};
}

}  // namespace

std::string MachineJobHost::file_of(const NodeJob& at) const {
  return fmt::format("{}/{}/{}", here_.spool, at.node, job_record_name(at.job, at.attempt));
}

JobHost::Done MachineJobHost::posted(Done done) {
  return [&loop = here_.loop, done = std::move(done)](std::string trouble) mutable {
    loop.post([done = std::move(done), trouble = std::move(trouble)]() mutable {
      done(std::move(trouble));
    });
  };
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> MachineJobHost::recorded(
    const std::string& node) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  DIR* folder = ::opendir((here_.spool + '/' + node).c_str());
  if (folder == nullptr) return found;
  while (const dirent* entry = ::readdir(folder)) {
    unsigned job = 0;
    unsigned attempt = 0;
    int used = 0;
    if (std::sscanf(entry->d_name, "job.%u.%u%n", &job, &attempt, &used) == 2 &&
        entry->d_name[used] == '\0') {
      found.emplace_back(job, attempt);
    }
  }
  ::closedir(folder);
  return found;
}

JobHost::Frames MachineJobHost::record_of(const NodeJob& at) {
  return step::read_record(file_of(at));
}

Result<void> MachineJobHost::begin_record(const NodeJob& at, const std::string& frame) {
  bool stored = step::append_record(file_of(at), frame, true);
  if (!stored && errno == ENOENT) {
    ::mkdir((here_.spool + '/' + at.node).c_str(), 0755);
    stored = step::append_record(file_of(at), frame, true);
  }
  if (stored) return {};
  return launch_failure(step::LaunchPart::spool, file_of(at), errno);
}

void MachineJobHost::add_to_record(const NodeJob& at, const std::string& frame) {
  step::append_record(file_of(at), frame);
}

void MachineJobHost::forget_record(const NodeJob& at) {
  ::unlink(file_of(at).c_str());
  here_.fence.forget(begun_of(at));
}

void MachineJobHost::store_attempt(const NodeJob& at, Done done) {
  here_.fence.begin(begun_of(at), posted(std::move(done)));
}

bool MachineJobHost::has_prolog() const {
  return !here_.config.prolog().empty();
}

bool MachineJobHost::has_epilog() const {
  return !here_.config.epilog().empty();
}

std::function<void()> MachineJobHost::run_prolog(const wire::BeginJob& job, Done done) {
  ScriptRun run;
  run.programs.assign(here_.config.prolog().begin(), here_.config.prolog().end());
  run.environment = script_environment(job.prolog_environment(), job.node(), "prolog_slurmd",
                                       here_.config.conf_path());
  run.limit = std::chrono::seconds(here_.config.prolog_timeout_seconds());
  return run_scripts(here_.loop, here_.children, std::move(run), posted(std::move(done)));
}

void MachineJobHost::run_epilog(const std::string& node, const wire::EndJob& end, Done done) {
  ScriptRun run;
  run.programs.assign(here_.config.epilog().begin(), here_.config.epilog().end());
  run.environment =
      script_environment(end.epilog_environment(), node, "epilog_slurmd", here_.config.conf_path());
  run.limit = std::chrono::seconds(here_.config.epilog_timeout_seconds());
  run_scripts(here_.loop, here_.children, std::move(run), posted(std::move(done)));
}

bool MachineJobHost::step_known(const NodeStep& at) const {
  return steps_.known(at);
}

std::vector<NodeStep> MachineJobHost::steps_running(const NodeJob& job) const {
  return steps_.running(job.node, job.job, job.attempt);
}

void MachineJobHost::ticket_used(const NodeStep& at) {
  steps_.refused_before(at);
}

void MachineJobHost::start_batch_step(const NodeStep& at, const wire::Launch& launch,
                                      std::move_only_function<void(Result<void>)> started) {
  steps_.start(at, launch.ticket().spec(), launch.program(), std::nullopt, std::move(started));
}

void MachineJobHost::end_step(const NodeStep& at, const std::string& cause, bool now) {
  steps_.end(at, cause, now);
}

void MachineJobHost::forget_steps(const NodeJob& job) {
  steps_.forget_job(job.node, job.job, job.attempt);
}

void MachineJobHost::later(std::move_only_function<void()> what) {
  here_.loop.post(std::move(what));
}

void MachineJobHost::after(std::chrono::seconds wait, std::move_only_function<void()> what) {
  here_.loop.after(wait, std::move(what));
}

void MachineJobHost::reached(JobMoment moment) {
  switch (moment) {
    case JobMoment::recorded:
      return here_.crash.reached("node.job_recorded");
    case JobMoment::prolog_done:
      return here_.crash.reached("node.prolog_done");
    case JobMoment::gone:
      return here_.crash.reached("node.job_gone");
  }
}

void MachineJobHost::log_info(const std::string& line) {
  here_.log.info("{}", line);
}

void MachineJobHost::log_error(const std::string& line) {
  here_.log.error("{}", line);
}

}  // namespace berth::node
