// A submission becomes one job, the components of a heterogeneous job, or an array.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "job/memory.h"
#include "place/network_words.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::job {
namespace {

using Parts = std::vector<std::shared_ptr<const Submission>>;
using request::Opt;

Error refusal(request::Command command, Code code, std::string_view text, std::string hint = {}) {
  const std::string_view prefix =
      command == request::Command::sbatch ? "Batch job submission failed: "
      : command == request::Command::srun ? "Unable to allocate resources: "
                                          : "Job submit/allocate failed: ";
  return fail(code, fmt::format("{}{}", prefix, text), std::move(hint)).error();
}

std::unique_ptr<ArrayFacts> array_of(const Submission& what, JobId id) {
  const request::Request& request = what.request;
  if (!request.array) return nullptr;
  auto facts = std::make_unique<ArrayFacts>();
  facts->job_id = id;
  facts->rest = request.array_indices;
  facts->min = static_cast<std::uint32_t>(facts->rest.next());
  facts->max = static_cast<std::uint32_t>(facts->rest.last());
  facts->count = static_cast<std::uint32_t>(facts->rest.count());
  const std::string_view text = *request.array;
  if (const auto percent = text.find('%'); percent != text.npos) {
    const auto limit = text::parse_number(text.substr(percent + 1), UINT32_MAX);
    facts->throttle = static_cast<std::uint32_t>(limit.value_or(0));
  }
  if (const auto colon = text.find(':'); colon != text.npos) {
    const std::string_view step =
        text.substr(colon + 1, text.find_first_of(",%", colon) - colon - 1);
    facts->step = static_cast<std::uint32_t>(text::parse_number(step, UINT32_MAX).value_or(1));
  }
  return facts;
}

/// --time-min, --deadline: what can be known to be in vain.
std::optional<Error> in_vain(const Submission& what, Time now) {
  const request::Command command = what.request.command;
  const auto limit = what.request.time_limit ? *what.request.time_limit : std::nullopt;
  if (limit && what.request.time_min && *what.request.time_min > *limit) {
    return refusal(command, Code::invalid_time_limit, slurm_text(Code::invalid_time_limit),
                   "--time-min is above --time");
  }
  const auto deadline = what.text(Opt::deadline);
  const Time until = deadline.empty() ? 0 : parse_when(deadline, now).value_or(0);
  const Time least = Time{what.request.time_min.value_or(limit.value_or(0))} * 60;
  if (until != 0 && until < now + least) {
    return refusal(command, Code::invalid_time_limit, slurm_text(Code::invalid_time_limit),
                   fmt::format("--deadline={} comes before the job can be over", deadline));
  }
  return std::nullopt;
}

/// What is not done as it was asked for, because the caller may not have it.
void say_ignored(const Submission& what, const Caller& caller, std::vector<Message>& out) {
  if (what.nice_ignored) {
    out.push_back({Severity::error, "Nice value must be non-negative, value ignored"});
  }
  if (!caller.privileged && what.request.given.has(Opt::priority) && what.priority != 0U) {
    out.push_back(
        {Severity::error, "Only operators and administrators can set a priority, value ignored"});
  }
}

/// Builds the records of one submission.
class Builder {
 public:
  Builder(State::Memory& m, const wire::SubmitJob& ask, std::uint64_t blob, const Caller& caller,
          Time now)
      : m_(m), ask_(ask), blob_(blob), caller_(caller), now_(now) {}

  Job& make(std::shared_ptr<const Submission> what, JobId id) {
    return m_.jobs.emplace(id, build(std::move(what), id)).first->second;
  }

  Job build(std::shared_ptr<const Submission> what, JobId id) {
    Job job;
    job.id = id;
    job.asked_blob = blob_;
    job.uid = caller_.uid;
    job.gid = caller_.gid;
    job.token = ask_.token();
    job.batch = what->request.command == request::Command::sbatch;
    job.interactive = ask_.interactive();
    job.detached = ask_.detached();
    job.submit_time = now_;
    job.nice = what->nice;
    job.requeue = what->requeue.value_or(m_.policy.job_requeue);
    job.comment = what->comment;
    job.partition = partition_text(m_.cluster, *what);
    job.array = array_of(*what, id);
    job.sluid = m_.next_sluid(now_);
    job.what = std::move(what);
    set_priority(job);
    set_times(job);
    set_limit(job);
    return job;
  }

 private:
  void set_priority(Job& job) {
    const Submission& what = *job.what;
    if (!m_.policy.priority.multifactor) {
      job.priority = priority_of(m_.natural_priority(), what.nice);
    }
    if (what.priority && caller_.privileged) {
      job.priority = *what.priority;
      job.priority_fixed = true;
    } else {
      m_.set_priority(job, now_);
    }
    if (what.hold || what.priority == 0U) {
      job.held = true;
      job.priority = 0;
      job.reason = "JobHeldUser";
    }
  }
  void set_times(Job& job) const {
    if (const auto text = job.what->text(Opt::begin); !text.empty()) {
      job.begin_time = parse_when(text, now_).value_or(0);
      job.begin_is_length = text::when_is_length(text);
    }
    if (const auto text = job.what->text(Opt::deadline); !text.empty()) {
      job.deadline = parse_when(text, now_).value_or(0);
      job.deadline_is_length = text::when_is_length(text);
    }
  }
  void set_limit(Job& job) const {
    if (job.what->request.gpu_idle_seconds) {
      job.gpu_idle_decided = true;
      job.gpu_idle_seconds = *job.what->request.gpu_idle_seconds;
    }
    if (!job.what->request.time_limit) return;
    job.time_limit_decided = true;
    job.time_limit_minutes = *job.what->request.time_limit;
  }

  State::Memory& m_;
  const wire::SubmitJob& ask_;
  std::uint64_t blob_;
  Caller caller_;
  Time now_;
};

/// What Slurm leaves of a request that no node could ever satisfy.
void leave_failed(State::Memory& m, Builder& builder, const std::shared_ptr<const Submission>& what,
                  Time now) {
  const JobId id = m.take_id();
  Job& job = builder.make(what, id);
  m.tokens.erase(job.token);
  job.token.clear();
  job.held = false;
  job.base = Base::failed;
  job.reason = "BadConstraints";
  job.exit_status = 1;  // "0:1"
  job.start_time = job.end_time = now;
  m.add_to_group(job);
  m.arm(job);
  m.touch(job);
}

bool leaves_record(const Error& error) {
  return error.code == Code::node_config_unavailable || error.code == Code::nodes_busy;
}

std::optional<Error> place_all(State::Memory& m, const Parts& parts, bool full,
                               std::vector<place::JobPlan>& plans, std::size_t& failed) {
  // Components of a heterogeneous job do not share what is free.
  std::optional<cluster::Usage> left;
  if (parts.size() > 1) left = *m.usage;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    plans.push_back(place::place_job(m.cluster, left ? *left : *m.usage, parts[i]->request,
                                     full ? place::Detail::full : place::Detail::verdict));
    if (plans.back().verdict == place::Verdict::never) {
      failed = i;
      return plans.back().error;
    }
    if (left && plans.back().verdict == place::Verdict::now) left->take(plans.back().allocation);
  }
  return std::nullopt;
}

/// Why so many more jobs of a caller are not taken. The last tenth of MaxJobCount is for users who
/// have few jobs, so that one user's queue is not the end of all submissions.
std::optional<std::string> no_room(const State::Memory& m, std::size_t more, const Caller& caller) {
  const std::size_t most = m.policy.max_job_count;
  const std::size_t all = m.jobs.size() + more;
  if (all > most) return fmt::format("MaxJobCount={} jobs are in memory", most);
  const std::size_t few = std::max<std::size_t>(1, most / 100);
  const std::size_t own = m.jobs.of_user(caller.uid) + more;
  if (caller.privileged || all <= most - most / 10 || own <= few) return std::nullopt;
  return fmt::format(
      "{} jobs are in memory, and the last tenth of MaxJobCount={} is for users with at most {}; "
      "{} are yours",
      m.jobs.size(), most, few, own - more);
}

}  // namespace

Result<Submitted> State::submit(const wire::SubmitJob& ask, std::uint64_t asked_blob,
                                const Caller& caller, Time now) {
  Memory& m = *m_;
  Submitted out;
  if (const auto known = m.tokens.find(ask.token());
      !ask.token().empty() && known != m.tokens.end()) {
    const Job* job = m.find(known->second);
    if (job != nullptr && job->uid == caller.uid) {
      out.id = job->id;
      out.again = true;
      if (job->het) out.components = m.records_of(job->het->leader);
      return out;
    }
  }
  std::vector<Message> warnings;  // printed by the command, which reads the same words
  auto parts = m.read(ask.asked(), {}, caller, warnings);
  if (!parts) return pass(std::move(parts.error()));
  const Submission& first = *parts->front();
  const request::Command command = first.request.command;
  for (const auto& part : *parts) {
    const reservation::User who{caller.uid, caller.gid, part->account, part->qos,
                                caller.privileged};
    if (auto may = m.check_access(*part, partition_text(m.cluster, *part), who); !may) {
      return pass(refusal(command, may.error().code, may.error().what(), may.error().hint));
    }
    if (auto error = in_vain(*part, now)) return pass(std::move(*error));
    say_ignored(*part, caller, out.warnings);
  }
  if (const auto full = no_room(m, parts->size(), caller)) {
    return pass(refusal(command, Code::limit,
                        "Slurm temporarily unable to accept job, sleeping and retrying", *full));
  }
  Builder builder(m, ask, asked_blob, caller, now);
  const bool immediate = first.immediate_seconds && *first.immediate_seconds <= 1;
  // Indices of arrays are checked with the names; they are not part of the shape.
  const bool known_shape =
      parts->size() == 1 && !first.request.array && m.placeable.contains(first.shape);
  std::vector<place::JobPlan> plans;
  if (!known_shape || ask.test_only() || immediate) {
    std::size_t failed = 0;
    auto error = place_all(m, *parts, ask.interactive() || ask.test_only(), plans, failed);
    if (!error && immediate && std::ranges::any_of(plans, [](const auto& p) {
          return p.verdict != place::Verdict::now;
        })) {
      error = place::allocation_error(command, Code::nodes_busy);
      // salloc words this one as srun does.
      error->messages.back().text =
          fmt::format("Unable to allocate resources: {}", slurm_text(Code::nodes_busy));
    }
    if (error) {
      if (leaves_record(*error) && !ask.test_only()) {
        leave_failed(m, builder, (*parts)[failed], now);
      }
      return pass(std::move(*error));
    }
    for (const auto& part : *parts) m.placeable.emplace(part->shape, true);
  }
  if (first.request.dependency) {
    auto read = parse_dependency(*first.request.dependency);
    if (read) {
      for (const Clause& clause : read->clauses) {
        const bool strict = clause.kind == DependencyKind::afterok ||
                            clause.kind == DependencyKind::afternotok ||
                            clause.kind == DependencyKind::aftercorr;
        if (strict && m.records_of(clause.job).empty()) {
          read = fail(Code::dependency_problem, "", fmt::format("there is no job {}", clause.job));
          break;
        }
      }
    }
    if (!read) {
      return pass(refusal(command, Code::dependency_problem, slurm_text(Code::dependency_problem),
                          read.error().hint));
    }
  }
  for (const auto& part : *parts) {
    if (const auto counts = request::derive_counts(part->request)) {
      out.warnings.insert(out.warnings.end(), counts->warnings.begin(), counts->warnings.end());
    }
    for (Message& warning : place::network_warnings(m.cluster, part->request)) {
      out.warnings.push_back(std::move(warning));
    }
    auto idle = m.check_gpu_idle(*part, partition_text(m.cluster, *part));
    if (!idle) {
      return pass(
          refusal(command, idle.error().code, idle.error().what(), std::move(idle.error().hint)));
    }
    out.warnings.insert(out.warnings.end(), idle->begin(), idle->end());
  }
  if (ask.test_only()) {
    out.id = m.take_id();
    for (const auto& part : *parts) {
      out.trial.push_back(builder.build(part, out.id));
      m.set_view(out.trial.back());
    }
    return out;
  }
  std::vector<Job*> made;
  for (const auto& part : *parts) made.push_back(&builder.make(part, m.take_id()));
  out.id = made.front()->id;
  for (std::size_t i = 0; i < made.size(); ++i) {
    Job& job = *made[i];
    if (made.size() > 1) {
      job.het = std::make_unique<HetFacts>(
          HetFacts{out.id, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(made.size())});
      job.submit_time = made.front()->submit_time;
      out.components.push_back(job.id);
    }
    if (!ask.token().empty() && i == 0) m.tokens.emplace(ask.token(), job.id);
    m.add_to_group(job);
    if (i < plans.size() && plans[i].verdict != place::Verdict::now && !job.held) {
      const std::string& reason = plans[i].pending_reason;
      job.reason = reason.empty()                   ? "None"
                   : reason == "PartitionNodeLimit" ? "PartitionConfig"
                                                    : reason;
      job.reason_text = plans[i].reasons.nearest_miss;
    }
    if (job.what->request.dependency) {
      if (auto set = m.set_dependency(job, *job.what->request.dependency, false, now); !set) {
        return pass(std::move(set.error()));
      }
    }
    m.requeue_place(job, now);
    m.arm(job);
    m.touch(job);
  }
  return out;
}

Job& State::Memory::split(Job& rest, std::uint32_t task) {
  if (!rest.array || rest.array->rest.count() <= 1) {
    if (rest.array) {
      rest.array->task = task;
      rest.array->rest = {};
    }
    leave_queue(rest.id);
    touch(rest);
    return rest;
  }
  Job element;
  element.id = take_id();
  element.what = rest.what;
  element.asked_blob = rest.asked_blob;
  element.overrides = rest.overrides;
  element.uid = rest.uid;
  element.gid = rest.gid;
  element.batch = rest.batch;
  element.reason = rest.reason;
  element.priority = rest.priority;
  element.priority_fixed = rest.priority_fixed;
  element.nice = rest.nice;
  element.priority_base = rest.priority_base;
  element.accrue_since = rest.accrue_since;
  element.accrued = rest.accrued;
  element.waits = rest.waits;
  element.held = rest.held;
  element.held_by_admin = rest.held_by_admin;
  element.requeue = rest.requeue;
  element.submit_time = rest.submit_time;
  element.begin_time = rest.begin_time;
  element.begin_is_length = rest.begin_is_length;
  element.eligible_time = rest.eligible_time;
  element.deadline = rest.deadline;
  element.deadline_is_length = rest.deadline_is_length;
  element.partition = rest.partition;
  element.view = rest.view;
  element.reservation_gone = rest.reservation_gone;
  element.time_limit_decided = rest.time_limit_decided;
  element.time_limit_minutes = rest.time_limit_minutes;
  element.gpu_idle_decided = rest.gpu_idle_decided;
  element.gpu_idle_by_admin = rest.gpu_idle_by_admin;
  element.gpu_idle_seconds = rest.gpu_idle_seconds;
  element.comment = rest.comment;
  element.admin_comment = rest.admin_comment;
  element.sluid = next_sluid(rest.submit_time);
  // A million indices are not copied for each element.
  Bits indices = std::exchange(rest.array->rest, {});
  indices.reset(task);
  element.array = std::make_unique<ArrayFacts>(*rest.array);
  element.array->task = task;
  rest.array->rest = std::move(indices);
  touch(rest);
  Job& kept = jobs.emplace(element.id, std::move(element)).first->second;
  add_to_group(kept);
  if (const auto at = dependencies.find(rest.id); at != dependencies.end()) {
    kept.dependency = rest.dependency;
    dependencies[kept.id] = at->second;
    for (const Clause& clause : at->second.clauses) {
      if (clause.kind == DependencyKind::singleton) {
        singletons.insert(kept.id);
      } else {
        dependents[clause.job].insert(kept.id);
      }
    }
  }
  touch(kept);
  return kept;
}

}  // namespace berth::job
