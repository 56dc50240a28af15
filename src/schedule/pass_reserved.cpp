// A walk among reservations: where a job may look for a place, and what it is told when one of them
// is why it waits.
#include <fmt/format.h>

#include <algorithm>

#include "schedule/pass.h"
#include "schedule/reserved_words.h"

namespace berth::schedule {

using job::Job;
using place::JobPlan;

std::vector<const Reservation*> places_of(const job::State& state, const Job& job) {
  if (job.view == 0) return {nullptr};
  const job::View& view = state.view(job.view);
  std::vector<const Reservation*> out;
  for (const std::string& name : view.names) {
    if (const Reservation* one = state.find_reservation(name)) out.push_back(one);
  }
  if (!view.only || out.empty()) out.push_back(nullptr);
  return out;
}

bool Pass::may_be_in(const Job& job, const std::string& reservation) const {
  const job::View& view = state_->view(job.view);
  if (reservation.empty()) return !view.only;
  return std::ranges::find(view.names, reservation) != view.names.end();
}

std::optional<JobPlan> Pass::start_in(const Reservation* place, const Job& job,
                                      const place::Prepared& prepared,
                                      const std::vector<Planned>& own, bool& in_the_way) {
  const Calendar::Inside look(known_->calendar, place);
  auto plan = as_promised(job, prepared, own);
  if (!plan) {
    plan = earliest_.now(prepared, seconds_of(job, prepared), work_, wants_few_switches(job));
    const bool plans = earliest_.plans_in_the_way();
    in_the_way = in_the_way || (!plan && plans);
    if (!plan && (plans || earliest_.reservations_in_the_way())) plan = shortened(job, prepared);
  }
  if (plan && place != nullptr) plan->reservation = place->name;
  return plan;
}

std::optional<JobPlan> Pass::start_in_one(const Job& job, const place::Prepared& prepared,
                                          const std::vector<Planned>& own, bool& in_the_way) {
  if (job.view == 0) return start_in(nullptr, job, prepared, own, in_the_way);
  for (const Reservation* place : places_of(*state_, job)) {
    if (auto plan = start_in(place, job, prepared, own, in_the_way)) return plan;
  }
  return std::nullopt;
}

std::optional<Earliest::Found> Pass::later_in_one(const Job& job, const place::Prepared& prepared,
                                                  Time seconds, Time not_before) {
  if (job.view == 0) return first_start(job, prepared, seconds, not_before);
  std::optional<Earliest::Found> best;
  for (const Reservation* place : places_of(*state_, job)) {
    const Calendar::Inside look(known_->calendar, place);
    auto found = first_start(job, prepared, seconds, not_before);
    if (!found || (best && best->start <= found->start)) continue;
    if (place != nullptr) found->plan.reservation = place->name;
    best = std::move(found);
  }
  return best;
}

bool Pass::reservation_is_why(const Job& job, const place::Prepared& prepared, Known& known) {
  if (state_->reservations().empty() || must_queue(job)) return false;
  const Time seconds = seconds_of(job, prepared);
  if (job.view != 0 && state_->view(job.view).only) {
    const auto wait = own_reservation_wait(places_of(*state_, job), seconds, now_);
    if (!wait) return false;
    known.word = "Reservation";
    known.text = wait->words;
    known.plannable = wait->comes;
    return true;
  }
  // After the last look, at nodes that are in no reservation of its own.
  if (!earliest_.reservations_in_the_way()) return false;
  const std::vector<const Reservation*> in_the_way = reservations_meeting(
      known_->calendar.reserved(), earliest_.kept_out(), {now_, now_ + seconds}, now_);
  if (in_the_way.empty()) return false;
  if (each_one_) ++work_.placed;
  // Without them it would start: they are why. In a long queue, numbers are enough to say so.
  if (each_one_ ? !prepared.now({state_->usage(), false}) : !earliest_.room_now(prepared, work_)) {
    return false;
  }
  known.word = reserved_reason(in_the_way);
  known.text = reserved_words(state_->cluster(), *in_the_way.front(), now_);
  return true;
}

}  // namespace berth::schedule
