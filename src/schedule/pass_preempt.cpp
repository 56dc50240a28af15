// A job that waits takes its place from others that give way; and those that were suspended for
// others go on.
#include <algorithm>

#include "schedule/pass.h"

namespace berth::schedule {

using job::Job;
using place::JobPlan;

namespace {
constexpr Time kSoon = 2;  // seconds
}

/// Somebody behind this one has a place: what it may take is known when plans are made anew.
bool Pass::plans_behind(const Job& job) const {
  if (kind_ == Kind::plan) return false;
  const auto key = state_->key_of(job.id);
  return key && std::ranges::any_of(known_->calendar.plans(), [&](const auto& plan) {
           const auto other = state_->key_of(plan.first);
           return other && *key < *other;
         });
}

Pass::Outcome Pass::takes_a_place(const Job& job, Known& known, bool tried) {
  if (job.het) return Outcome::passed_over;
  if (state_->giving_way_to(job.id) != nullptr) {
    keep_claim(job);
    return Outcome::waits;
  }
  // Nothing has changed for it since it was asked.
  if (!tried) known.nobody_gives_way = true;
  const bool own_question = job.what->request.exclusive == request::Exclusive::user;
  if ((known.nobody_gives_way && !own_question) || must_queue(job)) return Outcome::passed_over;
  const place::Prepared& prepared = known_->shapes.of(*state_, job).prepared;
  if (!prepared.runnable()) return Outcome::passed_over;
  if (plans_behind(job)) {
    wants_plans_ = true;
    return Outcome::passed_over;
  }
  std::vector<Planned> own = known_->calendar.take(job.id);
  const auto found = who_gives_way(job, prepared, {});
  if (found && !found->jobs.empty()) return take_place(job, prepared, *found);
  known.nobody_gives_way = !found;
  for (Planned& planned : own) known_->calendar.add(std::move(planned));
  return Outcome::passed_over;
}

/// In the reservations it may be in, one after the other, or outside of all.
std::optional<GivingWay> Pass::who_gives_way(const Job& job, const place::Prepared& prepared,
                                             const std::vector<JobId>& must_go) {
  if (!preemption_) preemption_.emplace(*state_, known_->calendar, now_);
  for (const Reservation* place : places_of(*state_, job)) {
    const Calendar::Inside look(known_->calendar, place);
    auto found = preemption_->find(job, prepared, seconds_of(job, prepared), must_go, work_);
    if (preemption_->look_again() > now_) state_->look_again(preemption_->look_again());
    if (!found) continue;
    if (place != nullptr) found->plan.reservation = place->name;
    return found;
  }
  return std::nullopt;
}

Pass::Outcome Pass::take_place(const Job& job, const place::Prepared& prepared,
                               const GivingWay& found) {
  for (const JobId id : found.jobs) {
    std::vector<const Job*> parts{state_->find(id)};
    if (parts.front()->het) parts = components(*parts.front());
    if (!state_->preempt(id, job.id, now_)) continue;
    ++figures_.preempted;
    for (const Job* part : parts) {
      known_->calendar.started(part->allocation);
      earliest_.started(part->allocation);
      note_parked(part->id);
    }
  }
  const Time seconds = seconds_of(job, prepared);
  if (state_->giving_way_to(job.id) == nullptr) {  // suspended: what they lend is there
    const Calendar::Inside look(known_->calendar, state_->find_reservation(found.plan.reservation));
    std::vector<NodeIndex> nodes;
    for (const cluster::NodeShare& share : found.plan.allocation.nodes) nodes.push_back(share.node);
    std::vector<JobPlan> plans;
    if (auto plan = earliest_.now_on(nodes, prepared, seconds, work_)) {
      plan->reservation = found.plan.reservation;
      plans.push_back(std::move(*plan));
      if (start(job, std::move(plans))) return Outcome::started;
    }
  }
  keep(job, found.start, seconds, found.plan);
  known_->claims.insert(job.id);
  show(job);
  return Outcome::waits;
}

bool Pass::takes_licenses(const Job& job) {
  if (!state_->policy().preempt.reclaim_licenses || job.het || must_queue(job)) return false;
  if (state_->giving_way_to(job.id) != nullptr) {
    keep_claim(job);
    return true;
  }
  const place::Prepared& prepared = known_->shapes.of(*state_, job).prepared;
  if (!prepared.runnable()) return false;
  if (plans_behind(job)) {
    wants_plans_ = true;
    return false;
  }
  if (!preemption_) preemption_.emplace(*state_, known_->calendar, now_);
  const std::vector<JobId> holders = preemption_->holders_of_licenses(job);
  if (holders.empty()) return false;
  const auto found = who_gives_way(job, prepared, holders);
  return found && take_place(job, prepared, *found) == Outcome::waits;
}

/// Its place stays its own while those that had it end.
void Pass::keep_claim(const Job& job) {
  known_->claims.insert(job.id);
  if (known_->calendar.has(job.id)) return;
  const place::Prepared& prepared = known_->shapes.of(*state_, job).prepared;
  const Time seconds = seconds_of(job, prepared);
  Time start = now_ + 1;
  for (const JobId id : *state_->giving_way_to(job.id)) {
    if (const Job* other = state_->find(id)) start = std::max(start, end_of(*other, now_));
  }
  const auto old = old_.find(job.id);
  if (old != old_.end()) {
    Planned again{job.id,
                  {start, start + seconds},
                  old->second.allocation,
                  old->second.reservation,
                  old->second.partition,
                  old->second.shape};
    if (known_->calendar.is_free(again)) {
      known_->calendar.add(std::move(again));
      show(job);
      return;
    }
  }
  if (auto later = later_in_one(job, prepared, seconds, 0)) {
    keep(job, later->start, seconds, later->plan);
    show(job);
  }
}

void Pass::gather_parked() {
  for (const JobId id : state_->parked()) note_parked(id);
}

/// Its turn is still to come: who takes the place of others is of a higher tier.
void Pass::note_parked(JobId id) {
  const Job* job = state_->find(id);
  if (job == nullptr || !job->parked() || job->flags.completing) return;
  parked_.emplace_back(state_->tier_of(job->partition), id);
  std::stable_sort(parked_.begin() + static_cast<std::ptrdiff_t>(resumed_), parked_.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
}

/// Suspended jobs of this tier or a higher one come before those that wait: they go on, or their
/// cores are kept from those.
void Pass::resume_down_to(std::uint32_t tier) {
  std::vector<std::pair<JobId, cluster::Allocation>> stay;
  for (; resumed_ < parked_.size() && parked_[resumed_].first >= tier; ++resumed_) {
    const JobId id = parked_[resumed_].second;
    const Job* job = state_->find(id);
    if (job == nullptr || !job->parked() || job->flags.completing) continue;
    cluster::Allocation cores;
    for (const cluster::NodeShare& share : job->allocation.nodes) {
      cluster::NodeShare& one = cores.nodes.emplace_back();
      one.node = share.node;
      one.cores = share.cores;
    }
    // One that comes before it may be about to have them.
    if (known_->calendar.is_free({id, {now_, now_ + kSoon}, cores}) && state_->unpark(id, now_)) {
      known_->calendar.started(cores);
      earliest_.started(cores);
    } else {
      stay.emplace_back(id, std::move(cores));
    }
  }
  for (auto& [id, cores] : stay) {
    const Time left = std::max<Time>(end_of(*state_->find(id), now_) - now_, kSoon);
    known_->calendar.add({id, {now_, now_ + left}, std::move(cores)});
    kept_cores_.push_back(id);
  }
}

void Pass::give_cores_up() {
  for (const JobId id : kept_cores_) known_->calendar.remove(id);
  kept_cores_.clear();
}

}  // namespace berth::schedule
