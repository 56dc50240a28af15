// What jobs.h promises.
#include "node/jobs.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "node/gpu_shares.h"
#include "node/scripts.h"
#include "wire/refusal.h"
#include "wire/step_ids.h"

namespace berth::node {
namespace {

/// How far a job came: BeginJob without the batch program, and what was added to it.
struct JobRecord {
  std::optional<wire::BeginJob> begin;
  bool begun = false;
  std::optional<wire::EndJob> end;
  std::optional<wire::JobGone> gone;
};

JobRecord read_job_record(const std::string& path) {
  JobRecord record;
  for (const auto& [kind, payload] : step::read_record(path)) {
    if (kind == wire::Kind::BeginJob) record.begin = wire::decode<wire::BeginJob>(payload);
    if (kind == wire::Kind::JobBegun) record.begun = true;
    if (kind == wire::Kind::EndJob) record.end = wire::decode<wire::EndJob>(payload);
    if (kind == wire::Kind::JobGone) record.gone = wire::decode<wire::JobGone>(payload);
  }
  return record;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> job_files(const std::string& path) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  DIR* folder = ::opendir(path.c_str());
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

}  // namespace

Jobs::Job* Jobs::find(const NodeJob& at) {
  const auto found = jobs_.find(at);
  return found == jobs_.end() ? nullptr : &found->second;
}

std::string Jobs::file_of(const NodeJob& at) const {
  return fmt::format("{}/{}/job.{}.{}", here_.spool, at.node, at.job, at.attempt);
}

void Jobs::drop_files(const NodeJob& at) {
  ::unlink(file_of(at).c_str());
  here_.fence.forget({.node = at.node, .job = at.job, .attempt = at.attempt, .step = {}});
}

void Jobs::adopt(const std::string& node, const std::vector<StepKey>& unstarted) {
  for (const auto& [id, attempt] : job_files(here_.spool + '/' + node)) {
    const NodeJob at{node, id, attempt};
    const JobRecord record = read_job_record(file_of(at));
    const auto& begin = record.begin;
    const NodeStep batch{node, {id, attempt, wire::kBatchStep}};
    const bool batch_missing = begin && begin->has_batch() && !steps_.known(batch);
    const bool never_ran = std::ranges::find(unstarted, batch.key) != unstarted.end();
    if (!record.end && steps_.running(node, id, attempt).empty() &&
        (!begin || !record.begun || never_ran || batch_missing)) {
      here_.log.info("job {} of node {} had not begun: the controller may begin it again", id,
                     node);
      drop_files(at);
      continue;
    }
    Job& job = jobs_[at];
    job.at = at;
    if (begin) job.begin = *begin;
    job.begin.set_node(node);
    job.begin.set_job_id(id);
    job.begin.set_attempt(attempt);
    job.begun.set_node(node);
    job.begun.set_job_id(id);
    job.begun.set_attempt(attempt);
    job.phase = Phase::ready;
    if (record.gone) {
      job.phase = Phase::gone;
      job.ending = true;
      job.gone = *record.gone;
    } else if (record.end) {
      job.end = *record.end;
      job.ending = true;
      here_.loop.post([this, at] {
        if (Job* found = find(at)) advance_end(*found);
      });
    }
  }
}

void Jobs::lost_with_the_machine(const NodeJob& at) {
  Job& job = jobs_[at];
  job.lost = true;
  if (!job.at.node.empty()) return;
  job.at = at;
  job.begun.set_node(at.node);
  job.begun.set_job_id(at.job);
  job.begun.set_attempt(at.attempt);
  job.phase = Phase::ready;
}

void Jobs::begin(const wire::BeginJob& message) {
  const NodeJob at{message.node(), message.job_id(), message.attempt()};
  if (Job* known = find(at)) {
    if (known->phase == Phase::gone) return tell_.gone(known->gone);
    if (known->phase == Phase::ready || known->phase == Phase::failed) tell_.begun(known->begun);
    return;
  }
  // An order from before a requeue that came late.
  const auto later = jobs_.lower_bound({at.node, at.job, at.attempt});
  if (later != jobs_.end() && later->first.node == at.node && later->first.job == at.job) return;

  Job& job = jobs_[at];
  job.at = at;
  job.begin = message;
  job.begun.set_node(at.node);
  job.begun.set_job_id(at.job);
  job.begun.set_attempt(at.attempt);
  wire::BeginJob record = message;
  if (record.has_batch()) record.mutable_batch()->clear_program();
  const std::string first = wire::framed(record);
  bool stored = step::append_record(file_of(at), first, true);
  if (!stored && errno == ENOENT) {
    ::mkdir((here_.spool + '/' + at.node).c_str(), 0755);
    stored = step::append_record(file_of(at), first, true);
  }
  if (!stored) {
    const auto error =
        fail(Code::io, fmt::format("{}: {}", file_of(at), std::strerror(errno))).error();
    return tell_begun(job, &error, false);
  }
  here_.crash.reached("node.job_recorded");
  here_.fence.begin(
      {.node = at.node, .job = at.job, .attempt = at.attempt, .step = {}},
      [this, &loop = here_.loop, at](std::string why_not) {
        loop.post([this, at, why_not = std::move(why_not)] {
          Job* known = find(at);
          if (known == nullptr || known->phase != Phase::storing) return;
          if (why_not.empty()) return run_prolog(*known);
          const auto error =
              fail(Code::io, fmt::format("the node cannot store the start of a job: {}", why_not))
                  .error();
          tell_begun(*known, &error, false);
        });
      });
  // Without a prolog the batch step may be recorded in the same sync: its record comes later in the
  // same file.
  if (here_.config.prolog().empty() && job.begin.has_batch()) run_prolog(job);
}

void Jobs::run_prolog(Job& job) {
  job.phase = Phase::prolog;
  if (here_.config.prolog().empty()) return prolog_done(job.at, {});
  ScriptRun run;
  run.programs.assign(here_.config.prolog().begin(), here_.config.prolog().end());
  run.environment =
      script_environment(job.begin.prolog_environment(), job.at.node, "prolog_slurmd");
  run.limit = std::chrono::seconds(here_.config.prolog_timeout_seconds());
  job.stop_script = run_scripts(
      here_.loop, here_.children, std::move(run), [this, at = job.at](std::string trouble) {
        here_.loop.post([this, at, trouble = std::move(trouble)] { prolog_done(at, trouble); });
      });
}

void Jobs::prolog_done(const NodeJob& at, const std::string& trouble) {
  Job* job = find(at);
  if (job == nullptr || job->phase != Phase::prolog) return;
  job->stop_script = {};
  if (job->ending) {
    job->phase = Phase::ready;
    return advance_end(*job);
  }
  if (!trouble.empty()) {
    here_.log.error("prolog of job {} on {}: {}", at.job, at.node, trouble);
    const auto error = fail(Code::io, "Prolog error: " + trouble).error();
    return tell_begun(*job, &error, true);
  }
  job->phase = Phase::ready;
  step::append_record(file_of(at), wire::framed(wire::JobBegun()));
  here_.crash.reached("node.prolog_done");
  if (job->begin.has_batch()) {
    start_batch(*job);
  } else {
    tell_begun(*job, nullptr, false);
  }
  tell_.changed(at);
}

void Jobs::start_batch(Job& job) {
  const NodeStep at{job.at.node, {job.at.job, job.at.attempt, wire::kBatchStep}};
  const wire::Launch launch = std::move(*job.begin.mutable_batch());
  job.begin.mutable_batch()->clear_program();
  *job.begin.mutable_batch()->mutable_ticket() = launch.ticket();
  steps_.start(at, launch.ticket().spec(), launch.program(), std::nullopt,
               [this, at = job.at](Result<void> started) {
                 Job* begun = find(at);
                 if (begun == nullptr) return;
                 tell_begun(*begun, started ? nullptr : &started.error(), false);
               });
}

void Jobs::tell_begun(Job& job, const Error* refusal, bool prolog_failed) {
  if (refusal != nullptr) {
    job.phase = Phase::failed;
    *job.begun.mutable_refusal() = wire::to_refusal(*refusal);
    job.begun.set_prolog_failed(prolog_failed);
  }
  tell_.begun(job.begun);
  tell_.changed(job.at);
  if (job.ending) advance_end(job);
}

void Jobs::end(const wire::EndJob& message) {
  const NodeJob at{message.node(), message.job_id(), message.attempt()};
  Job* job = find(at);
  if (job == nullptr) {
    // Never seen, or forgotten already: nothing of it is here.
    wire::JobGone gone;
    gone.set_node(at.node);
    gone.set_job_id(at.job);
    gone.set_attempt(at.attempt);
    return tell_.gone(gone);
  }
  if (job->phase == Phase::gone) return tell_.gone(job->gone);
  if (!job->ending) step::append_record(file_of(at), wire::framed(message));
  job->ending = true;
  job->end = message;
  // The script first: its sruns are to hear of the end before their steps are over.
  auto running = steps_.running(at.node, at.job, at.attempt);
  std::ranges::stable_partition(
      running, [](const NodeStep& step) { return step.key.step == wire::kBatchStep; });
  for (const NodeStep& step : running) steps_.end(step, message.cause(), message.now());
  if (job->phase == Phase::prolog && job->stop_script) return job->stop_script();
  tell_.changed(at);
  advance_end(*job);
}

void Jobs::step_ended(const NodeStep& at) {
  Job* job = find({at.node, at.key.job, at.key.attempt});
  if (job != nullptr && job->ending) advance_end(*job);
}

void Jobs::advance_end(Job& job) {
  if (job.phase == Phase::storing || job.phase == Phase::prolog || job.phase == Phase::epilog ||
      job.phase == Phase::gone) {
    return;
  }
  if (!steps_.running(job.at.node, job.at.job, job.at.attempt).empty()) {
    if (job.phase != Phase::failed) job.phase = Phase::ending;
    return;
  }
  job.phase = Phase::epilog;
  if (here_.config.epilog().empty()) return epilog_done(job.at, {});
  ScriptRun run;
  run.programs.assign(here_.config.epilog().begin(), here_.config.epilog().end());
  run.environment = script_environment(job.end.epilog_environment(), job.at.node, "epilog_slurmd");
  run.limit = std::chrono::seconds(here_.config.epilog_timeout_seconds());
  run_scripts(here_.loop, here_.children, std::move(run), [this, at = job.at](std::string trouble) {
    here_.loop.post([this, at, trouble = std::move(trouble)] { epilog_done(at, trouble); });
  });
}

void Jobs::epilog_done(const NodeJob& at, const std::string& trouble) {
  Job* job = find(at);
  if (job == nullptr || job->phase != Phase::epilog) return;
  job->gone.set_node(at.node);
  job->gone.set_job_id(at.job);
  job->gone.set_attempt(at.attempt);
  for (const std::uint32_t pid : steps_.stuck(at.node, at.job, at.attempt)) job->gone.add_pids(pid);
  if (job->gone.pids_size() > 0) {
    job->gone.set_trouble("Kill task failed");
  } else if (!trouble.empty()) {
    here_.log.error("epilog of job {} on {}: {}", at.job, at.node, trouble);
    job->gone.set_trouble("Epilog error");
  }
  tell_.ended(at);  // it still has its GPUs
  job->phase = Phase::gone;
  step::append_record(file_of(at), wire::framed(job->gone));
  here_.crash.reached("node.job_gone");
  tell_.gone(job->gone);
}

void Jobs::forget(const NodeJob& at) {
  Job* job = find(at);
  if (job != nullptr && job->phase != Phase::gone) return;
  steps_.forget_job(at.node, at.job, at.attempt);
  if (job == nullptr) return;
  jobs_.erase(at);
  drop_files(at);
}

Jobs::Readiness Jobs::readiness(const NodeJob& at) const {
  const auto found = jobs_.find(at);
  if (found == jobs_.end()) return Readiness::unknown;
  const Job& job = found->second;
  if (job.ending || job.lost || job.phase == Phase::failed) return Readiness::over;
  return job.phase == Phase::ready ? Readiness::ready : Readiness::beginning;
}

std::vector<Jobs::Holder> Jobs::with_gpus() const {
  std::vector<Holder> found;
  for (const auto& [at, job] : jobs_) {
    if (job.phase == Phase::gone) continue;
    const wire::NodeShare& share = job.begin.share();
    Holder holder{at, gpus_in(share), gpu_parts_in(share), job.begin.user()};
    if (holder.gpus.any()) found.push_back(std::move(holder));
  }
  return found;
}

std::vector<wire::HeldJob> Jobs::held(const std::string& node) const {
  std::vector<wire::HeldJob> found;
  for (auto it = jobs_.lower_bound({node, 0, 0}); it != jobs_.end() && it->first.node == node;
       ++it) {
    wire::HeldJob held;
    held.set_job_id(it->first.job);
    held.set_attempt(it->first.attempt);
    held.set_ending(it->second.ending);
    found.push_back(held);
  }
  return found;
}

void Jobs::repeat() {
  for (const auto& [at, job] : jobs_) {
    if (job.phase == Phase::gone) {
      tell_.gone(job.gone);
    } else if (job.phase == Phase::ready || job.phase == Phase::failed) {
      tell_.begun(job.begun);
    }
  }
}

}  // namespace berth::node
