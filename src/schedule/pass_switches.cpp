// Jobs that would rather wait than be spread over many switches: --switches=n@t.
#include <fmt/format.h>

#include "job/switches.h"
#include "place/network_words.h"
#include "schedule/pass.h"

namespace berth::schedule {

using job::Job;

bool Pass::wants_few_switches(const Job& job) const {
  if (!job.what->request.switches) return false;
  const auto any_from = job::any_switches_from(job, state_->policy());
  return !any_from || now_ < *any_from;
}

std::string Pass::short_of_switches(const Job& job, const place::Prepared& prepared) {
  const auto plan = earliest_.now(prepared, seconds_of(job, prepared), work_);
  if (!plan) return {};
  state_->wait_for_switches(job.id, now_);
  const Time left = *job::any_switches_from(job, state_->policy()) - now_;
  return fmt::format(
      "{}, for {} more",
      place::switch_wait_words(state_->cluster(), job.what->request, plan->allocation),
      left >= 120 ? fmt::format("{} minutes", (left + 59) / 60) : fmt::format("{} seconds", left));
}

std::optional<Earliest::Found> Pass::first_start(const Job& job, const place::Prepared& prepared,
                                                 Time not_before, Time seconds) {
  if (!wants_few_switches(job)) return earliest_.later(prepared, seconds, not_before, work_);
  auto few = earliest_.later(prepared, seconds, not_before, work_, true);
  // Its patience counts from when it could start on more.
  auto any_from = job::any_switches_from(job, state_->policy());
  if (!any_from) {
    const auto any = earliest_.later(prepared, seconds, not_before, work_);
    if (!any) return few;
    any_from = any->start + job::switch_patience(job, state_->policy());
  }
  if (few && few->start <= *any_from) return few;
  auto any = earliest_.later(prepared, seconds, std::max(not_before, *any_from), work_);
  return any && (!few || any->start < few->start) ? any : few;
}

}  // namespace berth::schedule
