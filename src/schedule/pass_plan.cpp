// The places in the future that a walk gives to jobs that wait.
#include <algorithm>

#include "schedule/pass.h"
#include "text/hostlist.h"

namespace berth::schedule {

using job::Job;
using place::JobPlan;

bool Pass::may_plan(const Job& job) const {
  if (plans_left_ == 0 || known_->calendar.has(job.id)) return false;
  if (now_ - job.submit_time < options_.min_age_to_plan) return false;
  if (job.priority < options_.min_priority_to_plan) return false;
  return options_.planned_in_partition == 0 ||
         std::ranges::any_of(partitions(job), [&](const std::string& name) {
           const auto at = waiting_in_.find(name);
           return at == waiting_in_.end() || at->second < options_.planned_in_partition;
         });
}

void Pass::plan(const Job& job, const GroupKey& group, Known& known) {
  if (known.planless || !may_plan(job)) return;
  const place::Prepared& prepared = known_->shapes.of(*state_, job).prepared;
  Time seconds = seconds_of(job, prepared);
  auto found = later_in_one(job, prepared, seconds, groups_[group].not_before);
  if (const Time wake = found ? earliest_.wake_of(found->plan.allocation) : 0; wake > 0) {
    seconds += wake;
    found = later_in_one(job, prepared, seconds, groups_[group].not_before);
  }
  known_->planned_waits[job.id] = known;
  if (keep_old(job, found ? found->start : now_ + 2 * kYear)) return;
  if (!found) {
    known.planless = true;
    state_->set_planned(job.id, 0, {});
    never_now(known_->shapes.of(*state_, job), known);
    if (!known.plannable) tell(job, known);
    return;
  }
  known.not_before = found->start;
  --plans_left_;
  keep(job, found->start, seconds, found->plan);
  show(job);
}

bool Pass::keep_old(const Job& job, Time unless_before) {
  const auto [first, last] = old_.equal_range(job.id);
  if (first == last || first->second.span.from > unless_before) return false;
  if (!may_be_in(job, first->second.reservation)) return false;
  if (first->second.shape != job.what->shape) return false;  // scontrol update
  // The time limit may be another since.
  const place::Prepared& prepared = known_->shapes.of(*state_, job).prepared;
  const Span& span = first->second.span;
  const Time wake = earliest_.wake_of(first->second.allocation);
  if (!job.het && span.until - span.from != seconds_of(job, prepared) + wake) return false;
  for (auto at = first; at != last; ++at) {
    if (at->second.span.from <= now_ || !known_->calendar.is_free(at->second)) {
      known_->calendar.remove(job.id);
      return false;
    }
    known_->calendar.add(at->second);
  }
  --plans_left_;
  show(job);
  return true;
}

void Pass::keep(const Job& job, Time start, Time seconds, const JobPlan& plan) {
  known_->calendar.add({job.id,
                        {start, start + seconds},
                        plan.allocation,
                        plan.reservation,
                        plan.partition,
                        job.what->shape});
}

void Pass::show(const Job& job) {
  std::set<std::string> names;
  Time start = 0;
  const auto [first, last] = known_->calendar.plans().equal_range(job.id);
  for (auto at = first; at != last; ++at) {
    start = at->second.span.from;
    for (const cluster::NodeShare& share : at->second.allocation.nodes) {
      names.insert(state_->cluster().nodes[share.node].name);
    }
  }
  const bool near = start > 0 && start <= now_ + Time{options_.backfill_window_minutes} * 60;
  state_->set_planned(
      job.id, near ? start : 0,
      near ? text::compress_hostlist(std::vector<std::string>(names.begin(), names.end()))
           : std::string());
}

/// All components at the same moment: the latest of their starts, until all of them agree.
void Pass::plan_het(const Job& job) {
  constexpr int kMostMoments = 16;
  const std::vector<const Job*> parts = components(job);
  const Reservation* reserved = places_of(*state_, job).front();
  const Calendar::Inside look(known_->calendar, reserved);
  Time moment = now_;
  for (int i = 0; i < kMostMoments; ++i) {
    known_->calendar.remove(job.id);
    bool agreed = true;
    for (const Job* part : parts) {
      const place::Prepared& prepared = known_->shapes.of(*state_, *part).prepared;
      const Time seconds = seconds_of(*part, prepared);
      auto found =
          prepared.runnable() ? earliest_.later(prepared, seconds, moment, work_) : std::nullopt;
      if (!found) {
        known_->calendar.remove(job.id);
        state_->set_planned(job.id, 0, {});
        return;
      }
      agreed = agreed && (found->start == moment || known_->calendar.plans().count(job.id) == 0);
      moment = found->start;
      if (reserved != nullptr) found->plan.reservation = reserved->name;
      keep(job, found->start, seconds, found->plan);
      if (!agreed) break;
    }
    if (!agreed) continue;
    --plans_left_;
    show(job);
    return;
  }
  known_->calendar.remove(job.id);
}

bool Pass::licensed(const Job& job) {
  if (job.what->licenses.empty()) return true;
  const Time seconds = seconds_of(job, known_->shapes.of(*state_, job).prepared);
  return licenses_.free_from(job, now_, seconds) == now_;
}

void Pass::wait_for_licenses(const Job& job) {
  constexpr int kMostMoments = 16;
  state_->set_reason(job.id, "Licenses", licenses_.lack(job), now_);
  if (kind_ != Kind::plan && known_->calendar.has(job.id)) return;
  give_up(job.id);
  const place::Prepared& prepared = known_->shapes.of(*state_, job).prepared;
  const Time seconds = seconds_of(job, prepared);
  // Nobody has them: a reservation keeps them, and when they will be had is not known here.
  const bool reserved = licenses_.free_from(job, now_, seconds) == now_;
  const bool plannable = prepared.runnable() && !job.het && !reserved && may_plan(job);
  Time moment = now_ + 1;
  for (int i = 0; i < kMostMoments && plannable; ++i) {
    const Time free = licenses_.free_from(job, moment, seconds);
    auto found = free == 0 ? std::nullopt : later_in_one(job, prepared, seconds, free);
    if (!found) break;
    moment = found->start;
    if (licenses_.free_from(job, moment, seconds) != moment) continue;
    --plans_left_;
    keep(job, moment, seconds, found->plan);
    show(job);
    return;
  }
  state_->set_planned(job.id, 0, {});
}

}  // namespace berth::schedule
