// Dependencies of pending jobs: evaluated when a job they name starts or ends.
#include <algorithm>

#include "job/memory.h"

namespace berth::job {
namespace {

bool over(const Job& job) {
  return ended(job.base) && !job.flags.completing;
}

bool started(const Job& job, std::uint32_t minutes, Time now) {
  if (ended(job.base)) return true;
  return job.start_time > 0 && job.base != Base::pending &&
         now >= job.start_time + Time{minutes} * 60;
}

Met verdict(const Clause& clause, const std::vector<const Job*>& targets, Time now) {
  const bool strict = clause.kind == DependencyKind::afterok ||
                      clause.kind == DependencyKind::afternotok ||
                      clause.kind == DependencyKind::aftercorr;
  if (targets.empty()) return strict ? Met::never : Met::yes;
  const bool all_over = std::ranges::all_of(targets, [](const Job* job) { return over(*job); });
  const bool any_bad = std::ranges::any_of(
      targets, [](const Job* job) { return over(*job) && job->base != Base::completed; });
  switch (clause.kind) {
    case DependencyKind::after:
      return std::ranges::all_of(targets,
                                 [&](const Job* job) { return started(*job, clause.minutes, now); })
                 ? Met::yes
                 : Met::no;
    case DependencyKind::afterany:
      return all_over ? Met::yes : Met::no;
    case DependencyKind::afterok:
    case DependencyKind::aftercorr:
      return any_bad ? Met::never : all_over ? Met::yes : Met::no;
    case DependencyKind::afternotok:
      return !all_over ? Met::no : any_bad ? Met::yes : Met::never;
    case DependencyKind::singleton:
      break;
  }
  return Met::no;
}

std::vector<const Job*> targets_of(State::Memory& m, const Clause& clause,
                                   std::optional<std::uint32_t> own_task) {
  std::vector<const Job*> out;
  const bool one_element = clause.task.has_value();
  const auto task = one_element                                ? clause.task
                    : clause.kind == DependencyKind::aftercorr ? own_task
                                                               : std::nullopt;
  for (const JobId id : m.records_of(clause.job)) {
    const Job* job = m.find(id);
    if (task && job->array) {
      const ArrayFacts& array = *job->array;
      if (array.task != task && (array.task || !array.rest.test(*task))) continue;
    }
    out.push_back(job);
  }
  return out;
}

bool alone(const State::Memory& m, const Job& job) {
  return std::ranges::none_of(m.jobs, [&](const auto& entry) {
    const Job& other = entry.second;
    return other.id < job.id && other.uid == job.uid && !over(other) &&
           other.what->job_name == job.what->job_name && other.array_id() != job.array_id();
  });
}

void judge(State::Memory& m, Dependency& dependency, const Job& job,
           std::optional<std::uint32_t> task, Time now) {
  for (Clause& clause : dependency.clauses) {
    if (clause.met != Met::no) continue;
    clause.met = clause.kind == DependencyKind::singleton
                     ? (alone(m, job) ? Met::yes : Met::no)
                     : verdict(clause, targets_of(m, clause, task), now);
  }
}

bool by_element(const Dependency& dependency) {
  return std::ranges::any_of(dependency.clauses, [](const Clause& clause) {
    return clause.kind == DependencyKind::aftercorr;
  });
}

/// Whether what `from` waits for leads to `to`.
bool leads_to(const State::Memory& m, JobId from, JobId to) {
  std::set<JobId> seen;
  std::vector<JobId> next = {from};
  while (!next.empty()) {
    const JobId id = next.back();
    next.pop_back();
    if (id == to) return true;
    const auto at = m.dependencies.find(id);
    if (at == m.dependencies.end() || !seen.insert(id).second) continue;
    for (const Clause& clause : at->second.clauses) next.push_back(clause.job);
  }
  return false;
}

}  // namespace

Result<void> State::Memory::set_dependency(Job& job, std::string_view text, bool check, Time now) {
  auto read = parse_dependency(text);
  if (!read) return pass(std::move(read.error()));
  for (const Clause& clause : read->clauses) {
    const bool circle = clause.kind != DependencyKind::singleton &&
                        (clause.job == job.id || clause.job == job.array_id());
    if (check && circle) return pass(job_error(JobFault::bad_dependency));
    if (check && clause.kind != DependencyKind::singleton && leads_to(*this, clause.job, job.id)) {
      return fail(Code::dependency_problem, "Circular job dependency");
    }
  }
  // A whole array is shown as 12_*, however it was written.
  for (Clause& clause : read->clauses) {
    const Job* target = clause.task || clause.job == 0 ? nullptr : find(clause.job);
    if (target != nullptr && target->array && target->array_id() == clause.job) {
      clause.all_tasks = true;
    }
  }
  drop_dependency(job.id);
  job.dependency.clear();
  if (read->clauses.empty()) return {};
  for (const Clause& clause : read->clauses) {
    if (clause.kind == DependencyKind::singleton) {
      singletons.insert(job.id);
    } else {
      dependents[clause.job].insert(job.id);
    }
  }
  dependencies[job.id] = std::move(*read);
  evaluate(job, now);
  return {};
}

void State::Memory::drop_dependency(JobId id) {
  const auto at = dependencies.find(id);
  if (at == dependencies.end()) return;
  for (const Clause& clause : at->second.clauses) {
    const auto waiting = dependents.find(clause.job);
    if (waiting == dependents.end()) continue;
    waiting->second.erase(id);
    if (waiting->second.empty()) dependents.erase(waiting);
  }
  singletons.erase(id);
  dependencies.erase(at);
}

void State::Memory::evaluate(Job& job, Time now) {
  const auto at = dependencies.find(job.id);
  if (at == dependencies.end() || !job.pending()) return;
  const JobId id = job.id;
  if (job.is_array_rest() && by_element(at->second)) {
    // Each element has its own counterpart: those that may go on leave the rest.
    bool hope = false;
    for (const std::size_t index : job.array->rest.members()) {
      const auto task = static_cast<std::uint32_t>(index);
      Dependency copy = dependencies[id];
      judge(*this, copy, job, task, now);
      hope = hope || copy.met() == Met::no;
      if (copy.met() != Met::yes) continue;
      Job& element = split(job, task);
      drop_dependency(element.id);
      element.dependency.clear();
      requeue_place(element, now);
      arm(element);
      if (element.id == id) return;
    }
    if (!hope) {
      for (Clause& clause : dependencies[id].clauses) clause.met = Met::never;
    }
  } else {
    judge(*this, at->second, job, job.array ? job.array->task : std::nullopt, now);
  }
  Dependency& dependency = dependencies[id];
  const Met met = dependency.met();
  const std::string text = met == Met::yes ? "" : dependency.text();
  if (text != job.dependency) {
    job.dependency = text;
    touch(job);
  }
  if (met == Met::yes) drop_dependency(id);
  if (met == Met::never && (job.what->kill_on_invalid_dependency || policy.kill_invalid_depend)) {
    set_reason(job, "DependencyNeverSatisfied");
    end_pending(job, Base::cancelled, now);
    return;
  }
  requeue_place(job, now);
  arm(job);
}

void State::Memory::dependents_of(const Job& changed, Time now) {
  std::set<JobId> waiting;
  for (const JobId target :
       {changed.id, changed.array_id(), changed.het ? changed.het->leader : changed.id}) {
    const auto at = dependents.find(target);
    if (at != dependents.end()) waiting.insert(at->second.begin(), at->second.end());
  }
  if (over(changed)) {
    for (const JobId id : singletons) {
      const Job* job = find(id);
      if (job->uid == changed.uid && job->what->job_name == changed.what->job_name) {
        waiting.insert(id);
      }
    }
  }
  for (const JobId id : waiting) {
    if (Job* job = find(id)) evaluate(*job, now);
  }
}

}  // namespace berth::job
