// What change_jobs.h promises.
#include "controller/change_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "controller/change_results.h"
#include "wire/job_names.h"
#include "wire/refusal.h"

namespace berth::controller {
namespace {

using Act = Result<void> (*)(job::State&, job::JobId, const Caller&, const wire::ActOnJobs&,
                             job::Time);

Result<void> requeue(job::State& state, job::JobId id, const Caller& caller,
                     const wire::ActOnJobs& ask, job::Time now) {
  const job::Job* job = state.find(id);
  // "Incomplete": what has completed is left alone.
  const bool only_incomplete = ask.text().find("incomplete") != std::string::npos;
  if (only_incomplete && job != nullptr && job->base == job::Base::completed) return {};
  const bool special = ask.text().find("state=s") != std::string::npos;
  return state.requeue(id, caller, ask.action() == "requeuehold", now, special);
}

struct Row {
  std::string_view name;
  Act act;
};
constexpr std::array kActions = {
    Row{"hold", [](job::State& s, job::JobId id, const Caller& c, const wire::ActOnJobs&,
                   job::Time now) { return s.hold(id, c, false, now); }},
    Row{"uhold", [](job::State& s, job::JobId id, const Caller& c, const wire::ActOnJobs&,
                    job::Time now) { return s.hold(id, c, true, now); }},
    Row{"release", [](job::State& s, job::JobId id, const Caller& c, const wire::ActOnJobs&,
                      job::Time now) { return s.release(id, c, now); }},
    Row{"requeue", requeue},
    Row{"requeuehold", requeue},
    Row{"suspend", [](job::State& s, job::JobId id, const Caller& c, const wire::ActOnJobs&,
                      job::Time now) { return s.suspend(id, c, now); }},
    Row{"resume", [](job::State& s, job::JobId id, const Caller& c, const wire::ActOnJobs&,
                     job::Time now) { return s.resume(id, c, now); }},
    Row{"top", [](job::State& s, job::JobId id, const Caller& c, const wire::ActOnJobs&,
                  job::Time now) { return s.top(id, c, now); }},
    Row{"notify", [](job::State& s, job::JobId id, const Caller& c, const wire::ActOnJobs& ask,
                     job::Time now) { return s.notify(id, c, ask.text(), now); }},
};

wire::Results refused(const Error& error) {
  wire::Results results;
  *results.mutable_refusal() = wire::to_refusal(error);
  return results;
}

/// Suspending gives the job's time to others: administrators only, as in Slurm.
bool needs_administrator(std::string_view action) {
  return action == "suspend" || action == "resume";
}

}  // namespace

wire::Results act_on_jobs(job::State& state, const Caller& caller, const wire::ActOnJobs& ask,
                          job::Time now) {
  Act act = nullptr;
  for (const Row& row : kActions) {
    if (row.name == ask.action()) act = row.act;
  }
  if (act == nullptr) {
    return refused(
        fail(Code::unsupported, fmt::format("{} is not an action on jobs", ask.action())).error());
  }
  wire::Results results;
  const auto apply = [&](const std::vector<job::JobId>& records) {
    for_each_record(results, state, records, [&](job::JobId id) -> Result<void> {
      if (needs_administrator(ask.action()) && !caller.privileged) {
        return pass(job::job_error(job::JobFault::not_yours));
      }
      return act(state, id, caller, ask, now);
    });
  };
  std::vector<wire::JobName> names(ask.jobs().begin(), ask.jobs().end());
  // Each goes before all others: the first one named is moved last.
  if (ask.action() == "top") std::ranges::reverse(names);
  for (const wire::JobName& name : names) {
    const std::vector<job::JobId> known = state.named(name);
    if (known.empty()) {
      add_failure(results, wire::shown(name), job::job_error(job::JobFault::no_such_job));
      continue;
    }
    // Elements are split off only for who may act on them.
    const job::Job* first = state.find(known.front());
    if (first != nullptr && !may_touch(caller, first->uid)) {
      add_failure(results, wire::shown(name), job::job_error(job::JobFault::not_yours));
      continue;
    }
    auto records = state.pick(name, now);
    if (!records) {
      add_failure(results, wire::shown(name), records.error());
    } else {
      apply(*records);
    }
  }
  if (!ask.job_name().empty()) {
    std::vector<job::JobId> records;
    for (const auto& [id, job] : state.jobs()) {
      if (job.what->job_name == ask.job_name() && may_touch(caller, job.uid) &&
          !job::ended(job.base)) {
        records.push_back(id);
      }
    }
    if (records.empty()) {
      add_failure(results, ask.job_name(), job::job_error(job::JobFault::no_such_job));
    } else {
      apply(records);
    }
  }
  return results;
}

}  // namespace berth::controller
