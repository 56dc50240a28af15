// What change_cancel.h promises.
#include "controller/change_cancel.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <set>

#include "controller/change_results.h"
#include "text/number.h"
#include "wire/job_names.h"
#include "wire/refusal.h"

namespace berth::controller {
namespace {

/// A filter of words: empty means no filter.
template <class List>
bool among(const List& list, std::string_view value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

class Filter {
 public:
  Filter(const wire::CancelJobs& ask, const Caller& caller, Users& users)
      : ask_(ask), caller_(caller) {
    for (const std::string& name : ask.users()) {
      if (const auto uid = users.uid_of(name)) {
        uids_.insert(*uid);
      } else if (const auto number = text::parse_number(name, UINT32_MAX - 1)) {
        uids_.insert(static_cast<std::uint32_t>(*number));
      } else {
        unknown_user_ = name;  // and no other is looked up
        break;
      }
    }
    if (ask.only_mine()) uids_.insert(caller.uid);
    names_users_ = !ask.users().empty() || ask.only_mine();
  }

  [[nodiscard]] const std::optional<std::string>& unknown_user() const { return unknown_user_; }

  [[nodiscard]] bool matches(const job::Job& job) const {
    if (names_users_ && !uids_.contains(job.uid)) return false;
    return among(ask_.names(), job.what->job_name) && among(ask_.accounts(), job.what->account) &&
           among(ask_.qos(), job.what->qos) &&
           among(ask_.reservations(), std::string(job.shown_reservation())) &&
           among(ask_.wckeys(), job.what->wckey) && among(ask_.partitions(), job.partition) &&
           among(ask_.states(), job::base_name(job.base)) && on_nodes(job);
  }

  /// Filters alone mean the caller's own jobs, unless they name whose.
  [[nodiscard]] bool is_candidate(const job::Job& job) const {
    if (job::ended(job.base)) return false;
    if (!names_users_ && !may_touch(caller_, job.uid)) return false;
    return matches(job);
  }

 private:
  [[nodiscard]] bool on_nodes(const job::Job& job) const {
    if (ask_.nodes().empty()) return true;
    return std::any_of(job.nodes.begin(), job.nodes.end(),
                       [&](const std::string& node) { return among(ask_.nodes(), node); });
  }

  const wire::CancelJobs& ask_;
  const Caller& caller_;
  std::set<std::uint32_t> uids_;
  bool names_users_ = false;
  std::optional<std::string> unknown_user_;
};

job::Cancel how_to(const wire::CancelJobs& ask, const Caller& caller) {
  job::Cancel how;
  how.caller = caller;
  if (ask.has_signal()) how.signal = ask.signal();
  how.batch_only = ask.batch_only();
  how.full = ask.full();
  how.hurry = ask.hurry();
  // -b without a signal ends the script alone; the job ends with it.
  if (how.batch_only && !how.signal) how.signal = SIGKILL;
  return how;
}

void cancel_named(wire::Results& results, job::State& state, const wire::JobName& name,
                  const job::Cancel& how, const Filter* filter, job::Time now) {
  const std::vector<job::JobId> records = state.named(name);
  if (filter != nullptr && !records.empty() &&
      std::none_of(records.begin(), records.end(), [&](job::JobId id) {
        const job::Job* job = state.find(id);
        return job != nullptr && filter->matches(*job);
      })) {
    return;  // meant to be left out
  }
  if (name.has_step()) {
    if (records.empty()) {
      return add_failure(results, wire::shown(name), job::job_error(job::JobFault::no_such_job));
    }
    for (const job::JobId id : records) {
      if (auto done = state.cancel_step(id, name.step(), how, now); !done) {
        add_failure(results, wire::shown(name), done.error());
      } else {
        add_done(results);
      }
    }
    return;
  }
  if (auto done = state.cancel_named(name, how, now); !done) {
    add_failure(results, wire::shown(name), done.error());
  } else {
    results.set_done(results.done() + static_cast<std::uint32_t>(done->size()));
  }
}

void cancel_all(wire::Results& results, job::State& state, const job::Cancel& how,
                const Filter& filter, job::Time now) {
  std::vector<job::JobId> chosen;
  for (const auto& [id, job] : state.jobs()) {
    // A signal other than the end means nothing to a job that does not run.
    if (how.signal && *how.signal != SIGKILL && !job.running) continue;
    if (filter.is_candidate(job)) chosen.push_back(id);
  }
  for (const job::JobId id : chosen) {
    const job::Job* job = state.find(id);
    if (job == nullptr) continue;  // went with another component
    const std::string name = job->shown();
    if (auto done = state.cancel(id, how, now); done) {
      add_done(results);
    } else if (!is_fault(done.error(), job::JobFault::already_done)) {
      add_failure(results, name, done.error());
    }
  }
}

}  // namespace

wire::Results cancel_jobs(job::State& state, const Caller& caller, const wire::CancelJobs& ask,
                          Users& users, job::Time now) {
  wire::Results results;
  const Filter filter(ask, caller, users);
  if (filter.unknown_user()) {
    *results.mutable_refusal() = wire::to_refusal(
        fail(Code::bad_value, "Invalid user name: " + *filter.unknown_user()).error());
    return results;
  }
  const job::Cancel how = how_to(ask, caller);
  if (ask.jobs().empty() && !ask.filters_given()) {
    *results.mutable_refusal() =
        wire::to_refusal(fail(Code::bad_value, "No job identification provided").error());
    return results;
  }
  if (ask.jobs().empty()) cancel_all(results, state, how, filter, now);
  for (const wire::JobName& name : ask.jobs()) {
    cancel_named(results, state, name, how, ask.filters_given() ? &filter : nullptr, now);
  }
  return results;
}

}  // namespace berth::controller
