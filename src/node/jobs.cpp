// What jobs.h promises.
#include "node/jobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "node/gpu_shares.h"
#include "step/launch_failure.h"
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
  std::vector<std::uint32_t> used_steps;  // whose tickets are used, and which are forgotten
};

JobRecord read_job_record(const JobHost::Frames& frames) {
  JobRecord record;
  for (const auto& [kind, payload] : frames) {
    if (kind == wire::Kind::BeginJob) record.begin = wire::decode<wire::BeginJob>(payload);
    if (kind == wire::Kind::JobBegun) record.begun = true;
    if (kind == wire::Kind::EndJob) record.end = wire::decode<wire::EndJob>(payload);
    if (kind == wire::Kind::JobGone) record.gone = wire::decode<wire::JobGone>(payload);
    if (kind != wire::Kind::Forget) continue;
    if (const auto used = wire::decode<wire::Forget>(payload); used && used->has_step_id()) {
      record.used_steps.push_back(used->step_id());
    }
  }
  return record;
}

/// For an epilog that the controller does not ask for: what it said of the job at the start.
google::protobuf::RepeatedPtrField<wire::Variable> epilog_environment_of(
    const wire::BeginJob& begin) {
  google::protobuf::RepeatedPtrField<wire::Variable> out;
  const auto add = [&](const std::string& name, const std::string& value) {
    wire::Variable& one = *out.Add();
    one.set_name(name);
    one.set_value(value);
  };
  for (const wire::Variable& given : begin.prolog_environment()) {
    if (given.name() != "SLURM_SCRIPT_CONTEXT") *out.Add() = given;
  }
  if (!out.empty()) return out;
  for (const char* name : {"SLURM_JOB_ID", "SLURM_JOBID"}) {
    add(name, std::to_string(begin.job_id()));
  }
  add("SLURM_JOB_UID", std::to_string(begin.uid()));
  add("SLURM_JOB_USER", begin.user());
  return out;
}

}  // namespace

Jobs::Job* Jobs::find(const NodeJob& at) {
  const auto found = jobs_.find(at);
  return found == jobs_.end() ? nullptr : &found->second;
}

void Jobs::adopt(const std::string& node, const std::vector<StepKey>& unstarted) {
  for (const auto& [id, attempt] : host_.recorded(node)) {
    const NodeJob at{node, id, attempt};
    const JobRecord record = read_job_record(host_.record_of(at));
    const auto& begin = record.begin;
    const NodeStep batch{node, {id, attempt, wire::kBatchStep}};
    const bool batch_missing = begin && begin->has_batch() && !host_.step_known(batch);
    const bool never_ran = std::ranges::find(unstarted, batch.key) != unstarted.end();
    const Job* known = find(at);
    const bool lost = known != nullptr && known->lost;
    if (!lost && !record.end && host_.steps_running(at).empty() &&
        (!begin || !record.begun || never_ran || batch_missing)) {
      host_.log_info(fmt::format(
          "job {} of node {} had not begun: the controller may begin it again", id, node));
      host_.forget_record(at);
      continue;
    }
    for (const std::uint32_t step : record.used_steps) {
      host_.ticket_used({node, {id, attempt, step}});
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
      host_.later([this, at] {
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
  store(job);
}

void Jobs::store(Job& job) {
  const NodeJob at = job.at;
  wire::BeginJob record = job.begin;
  if (record.has_batch()) record.mutable_batch()->clear_program();
  if (auto stored = host_.begin_record(at, wire::framed(record)); !stored) {
    return store_failed(job, std::move(stored.error()));
  }
  host_.reached(JobMoment::recorded);
  host_.store_attempt(at, [this, at](const std::string& why_not) {
    Job* known = find(at);
    if (known == nullptr || known->phase != Phase::storing) return;
    if (why_not.empty()) return run_prolog(*known);
    store_failed(*known, step::launch_failure(
                             step::LaunchPart::spool,
                             fmt::format("the node cannot store the start of a job: {}", why_not))
                             .error());
  });
  // Without a prolog the batch step may be recorded in the same sync: its record comes later in the
  // same file.
  if (!host_.has_prolog() && job.begin.has_batch()) run_prolog(job);
}

void Jobs::store_failed(Job& job, Error why) {
  host_.log_error(
      fmt::format("job {} cannot begin on {}: {}", job.at.job, job.at.node, why.what()));
  if (job.ending) return tell_begun(job, &why, false);
  if (std::exchange(job.failed_before, true)) {
    why = step::failed_twice(std::move(why));
    return tell_begun(job, &why, false);
  }
  host_.after(step::kTryAgainAfter, [this, at = job.at] {
    if (Job* known = find(at); known != nullptr && known->phase == Phase::storing) store(*known);
  });
}

void Jobs::run_prolog(Job& job) {
  job.phase = Phase::prolog;
  if (!host_.has_prolog()) return prolog_done(job.at, {});
  job.stop_script = host_.run_prolog(
      job.begin, [this, at = job.at](const std::string& trouble) { prolog_done(at, trouble); });
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
    host_.log_error(fmt::format("prolog of job {} on {}: {}", at.job, at.node, trouble));
    const auto error = fail(Code::io, "Prolog error: " + trouble).error();
    return tell_begun(*job, &error, true);
  }
  job->phase = Phase::ready;
  host_.add_to_record(at, wire::framed(wire::JobBegun()));
  host_.reached(JobMoment::prolog_done);
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
  host_.start_batch_step(at, launch, [this, at = job.at](Result<void> started) {
    Job* begun = find(at);
    // It may have been ended meanwhile.
    if (begun == nullptr || begun->phase != Phase::ready) return;
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
  if (!job->ending) host_.add_to_record(at, wire::framed(message));
  job->ending = true;
  job->end = message;
  // The script first: its sruns are to hear of the end before their steps are over.
  auto running = host_.steps_running(at);
  std::ranges::stable_partition(
      running, [](const NodeStep& step) { return step.key.step == wire::kBatchStep; });
  for (const NodeStep& step : running) host_.end_step(step, message.cause(), message.now());
  host_.end_receivers(at);
  if (job->phase == Phase::prolog && job->stop_script) return job->stop_script();
  tell_.changed(at);
  advance_end(*job);
}

std::optional<Lease::Moment> Jobs::lease_end(const Job& job, const Lease& lease) {
  const bool over = job.lost || job.lease_over || job.phase == Phase::failed ||
                    job.phase == Phase::epilog || job.phase == Phase::gone;
  if (over) return std::nullopt;
  return lease.end_of(std::chrono::seconds(job.begin.lease_seconds()));
}

std::optional<Lease::Moment> Jobs::next_lease_end(const Lease& lease) const {
  std::optional<Lease::Moment> first;
  for (const auto& [at, job] : jobs_) {
    const auto end = lease_end(job, lease);
    if (end && (!first || *end < *first)) first = end;
  }
  return first;
}

bool Jobs::end_leases(const Lease& lease, Lease::Moment now) {
  std::vector<NodeJob> over;
  for (const auto& [at, job] : jobs_) {
    if (const auto end = lease_end(job, lease); end && *end <= now) over.push_back(at);
  }
  for (const NodeJob& at : over) {
    Job& job = jobs_.at(at);
    job.lease_over = true;
    host_.log_error(fmt::format(
        "job {} on {} is ended: the controller has not answered for as long as the job's lease ({} "
        "s) allows, and may start it elsewhere",
        at.job, at.node, job.begin.lease_seconds()));
    wire::EndJob end = job.end;
    end.set_node(at.node);
    end.set_job_id(at.job);
    end.set_attempt(at.attempt);
    end.set_now(true);
    if (!job.ending) {
      end.set_cause("NODE FAILURE");
      *end.mutable_epilog_environment() = epilog_environment_of(job.begin);
    }
    this->end(end);
  }
  return !over.empty();
}

void Jobs::went_on(const NodeJob& at) {
  Job* job = find(at);
  if (job != nullptr && job->ending) advance_end(*job);
}

void Jobs::advance_end(Job& job) {
  if (job.phase == Phase::storing || job.phase == Phase::prolog || job.phase == Phase::epilog ||
      job.phase == Phase::gone) {
    return;
  }
  if (!host_.steps_running(job.at).empty() || host_.receives(job.at)) {
    if (job.phase != Phase::failed) job.phase = Phase::ending;
    return;
  }
  job.phase = Phase::epilog;
  if (!host_.has_epilog()) return epilog_done(job.at, {});
  host_.run_epilog(job.at.node, job.end,
                   [this, at = job.at](const std::string& trouble) { epilog_done(at, trouble); });
}

void Jobs::epilog_done(const NodeJob& at, const std::string& trouble) {
  Job* job = find(at);
  if (job == nullptr || job->phase != Phase::epilog) return;
  job->gone.set_node(at.node);
  job->gone.set_job_id(at.job);
  job->gone.set_attempt(at.attempt);
  if (!trouble.empty()) {
    host_.log_error(fmt::format("epilog of job {} on {}: {}", at.job, at.node, trouble));
    job->gone.set_trouble("Epilog error");
  }
  tell_.ended(at);  // it still has its GPUs
  job->phase = Phase::gone;
  host_.add_to_record(at, wire::framed(job->gone));
  host_.reached(JobMoment::gone);
  tell_.gone(job->gone);
}

void Jobs::forget(const NodeJob& at) {
  Job* job = find(at);
  if (job != nullptr && job->phase != Phase::gone) return;
  host_.forget_steps(at);
  if (job == nullptr) return;
  jobs_.erase(at);
  host_.forget_record(at);
}

Jobs::Readiness Jobs::readiness(const NodeJob& at) const {
  const auto found = jobs_.find(at);
  if (found == jobs_.end()) return Readiness::unknown;
  const Job& job = found->second;
  if (job.ending || job.lost || job.phase == Phase::failed) return Readiness::over;
  return job.phase == Phase::ready ? Readiness::ready : Readiness::beginning;
}

const wire::BeginJob* Jobs::begun_with(const NodeJob& at) const {
  const auto found = jobs_.find(at);
  return found == jobs_.end() ? nullptr : &found->second.begin;
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
    held.set_lost(it->second.lost);
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
