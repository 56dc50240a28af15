#include "schedule/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "schedule/changes.h"
#include "schedule/reserved_words.h"
#include "schedule/why_preempt.h"
#include "text/hostlist.h"

namespace berth::schedule {
namespace {

using job::Job;
using job::State;

constexpr std::size_t kShownHolders = 5;

/// What keeps a job out of the queue, and what to do about it.
std::vector<std::string> facts_outside(const Job& job) {
  const std::string id = job.shown();
  if (job.reason == "JobHeldUser" || job.reason == "JobHeldAdmin") {
    return {job.held_by_admin ? "an administrator holds it"
                              : fmt::format("it is held: scontrol release {}", id)};
  }
  if (job.reason == "DependencyNeverSatisfied") {
    return {
        fmt::format("it waits for {}, which can never come true: scancel {}, or scontrol update "
                    "JobId={} Dependency=",
                    job.dependency, id, id)};
  }
  if (job.reason == "Dependency") return {"it waits for other jobs: " + job.dependency};
  if (job.reason == "BeginTime") return {"its begin time has not come (EligibleTime)"};
  return {};
}

std::string plural(std::uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string holding_words(const State& state, const cluster::NodeShare& share) {
  std::string out;
  const cluster::GresShare* gpus = share.find("gpu");
  if (gpus != nullptr) out = plural(gpus->total(), "GPU") + ", ";
  return out +
         fmt::format("{} on {}", plural(share.cpus, "CPU"), state.cluster().nodes[share.node].name);
}

void find_holders(const State& state, const std::set<NodeIndex>& nodes, Time until, Time now,
                  Why& out) {
  std::set<JobId> seen;
  for (const NodeIndex node : nodes) {
    for (const JobId id : state.node(node).jobs) {
      const Job* job = state.find(id);
      if (job == nullptr || !job->running || !seen.insert(id).second) continue;
      const Time ends = end_of(*job, now);
      if (until > 0 && ends > until) continue;  // runs on beside it
      Holder holder{id, job->uid, ends, job->limit_at().has_value() || job->flags.completing, {}};
      for (const cluster::NodeShare& share : job->allocation.nodes) {
        if (!nodes.contains(share.node)) continue;
        if (!holder.holds.empty()) holder.holds += "; ";
        holder.holds += holding_words(state, share);
      }
      out.holders.push_back(std::move(holder));
    }
  }
  std::ranges::sort(out.holders, [](const Holder& a, const Holder& b) {
    return a.ends != b.ends ? a.ends < b.ends : a.job < b.job;
  });
  if (out.holders.size() > kShownHolders) {
    out.more_holders = out.holders.size() - kShownHolders;
    out.holders.resize(kShownHolders);
  }
}

/// The nodes it is going to have, or all it might have.
std::set<NodeIndex> nodes_of_interest(const State& state, const Calendar& calendar, const Job& job,
                                      const place::Prepared& prepared) {
  std::set<NodeIndex> out;
  const auto [first, last] = calendar.plans().equal_range(job.id);
  for (auto at = first; at != last; ++at) {
    for (const cluster::NodeShare& share : at->second.allocation.nodes) out.insert(share.node);
  }
  if (!out.empty()) return out;
  for (NodeIndex i = 0; i < state.cluster().nodes.size(); ++i) {
    if (prepared.may_use(i) && state.cluster().nodes[i].usable) out.insert(i);
  }
  return out;
}

std::string basis_of(const Why& why, const Calendar& calendar, const Job& job) {
  if (why.planned_start == 0) {
    return calendar.has(job.id) ? "its start lies beyond the window that is planned (bf_window)"
                                : "no start is planned for it yet";
  }
  return fmt::format(
      "the time limits of running jobs, and the plans of {} before it; jobs that end "
      "early bring it forward",
      plural(why.position > 0 ? why.position - 1 : 0, "job"));
}

/// Reservations of others that come before it would be over, on nodes it could have.
std::vector<std::string> reserved_facts(const State& state, const place::Prepared& prepared,
                                        const Job& job, Time now) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> out;
  const Time seconds = seconds_of(job, prepared);
  const auto& own = state.view(job.view).names;
  for (const auto& [name, one] : state.reservations()) {
    if (out.size() == kShown) break;
    if (std::ranges::find(own, name) != own.end()) continue;
    if (!one.first_meeting({now, now + seconds}, now)) continue;
    const bool here = std::ranges::any_of(
        one.allocation.nodes, [&](const auto& share) { return prepared.may_use(share.node); });
    if (!here) continue;
    std::string words = reserved_words(state.cluster(), one, now);
    if (words != job.reason_text) out.push_back(std::move(words));
  }
  return out;
}

/// What a job in the queue, or one that would stand there, waits for. Its plan is in the calendar.
void explain_wait(State& state, Knowledge& knowledge, const Job& job, const job::QueueKey& key,
                  Time now, Why& out) {
  out.position = 1 + static_cast<std::size_t>(
                         std::distance(state.queue().begin(), state.queue().lower_bound(key)));
  const Shape& shape = knowledge.shapes.of(state, job);
  const place::JobPlan plan = shape.prepared.plan(state.usage(), place::Detail::full);
  out.nodes_by_cause = plan.reasons.nodes_by_cause;
  if (!plan.reasons.nearest_miss.empty() &&
      !job.reason_text.starts_with(plan.reasons.nearest_miss)) {
    out.facts.push_back(plan.reasons.nearest_miss);
  }
  const std::vector<std::string> reserved = reserved_facts(state, shape.prepared, job, now);
  out.facts.insert(out.facts.end(), reserved.begin(), reserved.end());
  if (plan.verdict == place::Verdict::now && reserved.empty() && !is_reserved_reason(out.reason)) {
    out.facts.emplace_back("what it needs is free, but it is kept for jobs before this one");
  }
  out.basis = basis_of(out, knowledge.calendar, job);
  if (plan.verdict != place::Verdict::now && plan.verdict != place::Verdict::later) return;
  const auto nodes = nodes_of_interest(state, knowledge.calendar, job, shape.prepared);
  find_holders(state, nodes, out.planned_start, now, out);
  for (std::string& fact : facts_of_preempting(state, job, shape.prepared, now)) {
    out.facts.push_back(std::move(fact));
  }
  out.changes = changes_that_start(state, knowledge, job, now);
}

/// While it lives, only those before a job have their places in the calendar.
class OnlyThoseBefore {
 public:
  OnlyThoseBefore(const State& state, Calendar& calendar, const job::QueueKey& key)
      : calendar_(calendar) {
    std::set<JobId> behind;
    for (const auto& [id, planned] : calendar.plans()) {
      const auto at = state.key_of(id);
      if (!at || key < *at) behind.insert(id);
    }
    for (const JobId id : behind) {
      for (Planned& planned : calendar.take(id)) taken_.push_back(std::move(planned));
    }
  }
  ~OnlyThoseBefore() {
    for (Planned& planned : taken_) calendar_.add(std::move(planned));
  }
  OnlyThoseBefore(const OnlyThoseBefore&) = delete;
  OnlyThoseBefore& operator=(const OnlyThoseBefore&) = delete;

 private:
  Calendar& calendar_;
  std::vector<Planned> taken_;
};

}  // namespace

Why why(State& state, Knowledge& knowledge, const Job& job, Time now) {
  Why out;
  out.reason = job.reason;
  out.waiting = state.queue().size();
  if (!job.reason_text.empty()) out.facts.push_back(job.reason_text);
  for (std::string& fact : facts_of_giving_way(state, job, now)) {
    out.facts.push_back(std::move(fact));
  }
  const auto key = state.key_of(job.id);
  if (!key) {
    for (std::string& fact : facts_outside(job)) out.facts.push_back(std::move(fact));
    return out;
  }
  out.planned_start = job.planned_start;
  out.planned_nodes = job.planned_nodes;
  explain_wait(state, knowledge, job, *key, now, out);
  return out;
}

Foreseen foresee(State& state, Knowledge& knowledge, const Job& trial, Time now) {
  Foreseen out;
  const Shape& shape = knowledge.shapes.of(state, trial);
  const place::Prepared& prepared = shape.prepared;
  const job::QueueKey key = state.key_for(trial);
  const OnlyThoseBefore others(state, knowledge.calendar, key);
  const Time seconds = seconds_of(trial, prepared);
  Earliest earliest(state, knowledge.calendar, now);
  Work work;
  out.why.waiting = state.queue().size() + 1;
  std::optional<place::JobPlan> plan;
  for (const Reservation* place : places_of(state, trial)) {
    if (!prepared.runnable() || out.start == now) break;
    const Calendar::Inside look(knowledge.calendar, place);
    if (trial.begin_time <= now) {
      if (auto here = earliest.now(prepared, seconds, work)) {
        plan = std::move(here);
        out.start = now;
        out.why.reason = "None";
        break;
      }
    }
    auto found = earliest.later(prepared, seconds, trial.begin_time, work);
    if (!found || (plan && out.start <= found->start)) continue;
    out.start = found->start;
    plan = std::move(found->plan);
  }
  if (plan) {
    out.partition = plan->partition;
    std::vector<std::string> names;
    for (const cluster::NodeShare& share : plan->allocation.nodes) {
      names.push_back(state.cluster().nodes[share.node].name);
      out.cpus += share.cpus;
    }
    out.why.planned_start = out.start;
    out.why.planned_nodes = out.nodes = text::compress_hostlist(names);
    if (out.start == now) return out;
    knowledge.calendar.add(
        {trial.id, {out.start, out.start + seconds}, plan->allocation, plan->reservation});
  } else {
    plan = prepared.plan(state.usage(), place::Detail::verdict);
  }
  if (trial.begin_time > now) {
    out.why.reason = "BeginTime";
  } else if (!plan->pending_reason.empty()) {
    out.why.reason = plan->pending_reason;
  } else if (!prepared.now({state.usage(), false})) {
    out.why.reason = "Resources";
  } else {
    const auto reserved = reservations_meeting(knowledge.calendar.reserved(), earliest.kept_out(),
                                               {now, now + seconds}, now);
    out.why.reason = reserved.empty() ? "Priority" : reserved_reason(reserved);
  }
  explain_wait(state, knowledge, trial, key, now, out.why);
  knowledge.calendar.remove(trial.id);
  return out;
}

}  // namespace berth::schedule
