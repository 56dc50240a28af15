#include "schedule/why_preempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace berth::schedule {
namespace {

using job::Job;
using job::PreemptMode;
using job::State;

constexpr std::size_t kNamed = 5;

std::string duration(Time seconds) {
  seconds = std::max<Time>(seconds, 0);
  return fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

/// "jobs 3, 4 and 12 more".
std::string named(const State& state, const std::vector<JobId>& jobs) {
  std::string out = jobs.size() == 1 ? "job " : "jobs ";
  for (std::size_t i = 0; i < std::min(jobs.size(), kNamed); ++i) {
    const Job* job = state.find(jobs[i]);
    out += fmt::format("{}{}", i == 0 ? "" : ", ",
                       job == nullptr ? std::to_string(jobs[i]) : job->shown());
  }
  if (jobs.size() > kNamed) out += fmt::format(" and {} more", jobs.size() - kNamed);
  return out;
}

std::string_view words_of(Stays why) {
  switch (why) {
    case Stays::no:
      return "would give way (PriorityTier is lower)";
    case Stays::ends:
      return "end already";
    case Stays::mode_off:
      return "do not give way: PreemptMode=OFF";
    case Stays::tier:
      return "do not give way: PriorityTier is not lower";
    case Stays::priority:
      return "do not give way: their priority is not lower (PreemptMode=PRIORITY)";
    case Stays::exempt:
      return "do not give way yet: PreemptExemptTime";
    case Stays::exempt_priority:
      return "do not give way: min_exempt_priority";
    case Stays::other_user:
      return "do not give way: with --exclusive=user nothing is taken from other users";
  }
  return "";
}

}  // namespace

std::vector<std::string> facts_of_giving_way(const State& state, const Job& job, Time now) {
  if (!job.preempted) return {};
  const Job* by = state.find(job.preempted->by);
  const std::string other = by == nullptr ? std::to_string(job.preempted->by) : by->shown();
  const std::string ago = duration(now - job.preempted->at);
  if (job.parked()) {
    return {
        fmt::format("job {} has its CPUs since {} ago; it goes on when they are free", other, ago)};
  }
  if (job.running && !job.flags.completing) {
    return {fmt::format("it gives way to job {} and ends in {} (GraceTime)", other,
                        duration(job.preempted->until - now))};
  }
  return {fmt::format("it gave way to job {} {} ago (PreemptMode={})", other, ago,
                      job::preempt_word(job.preempted->how))};
}

std::vector<std::string> facts_of_preempting(const State& state, const Job& job,
                                             const place::Prepared& prepared, Time now) {
  if (!state.policy().preempt.by_tier) return {};
  if (const std::set<JobId>* going = state.giving_way_to(job.id)) {
    Time last = now;
    for (const JobId id : *going) {
      if (const Job* other = state.find(id)) last = std::max(last, end_of(*other, now));
    }
    return {fmt::format("{} give{} way to it: it starts when they are gone, in {} or later",
                        named(state, {going->begin(), going->end()}), going->size() == 1 ? "s" : "",
                        duration(last - now))};
  }
  const auto tiers = tiers_of(state, job);
  if (tiers.empty()) return {};
  std::map<Stays, std::vector<JobId>> by_reason;
  std::set<JobId> seen;
  Time soonest = 0;
  for (NodeIndex node = 0; node < state.cluster().nodes.size(); ++node) {
    if (!prepared.may_use(node)) continue;
    for (const JobId id : state.node(node).jobs) {
      const Job* other = state.find(id);
      if (other == nullptr || !seen.insert(id).second) continue;
      const Stays why = stays(state, {&job, tiers.front().first}, *other, now);
      by_reason[why].push_back(id);
      if (why != Stays::exempt) continue;
      const Time until = exempt_until(state, *other);
      soonest = soonest == 0 ? until : std::min(soonest, until);
    }
  }
  std::vector<std::string> out;
  for (auto& [why, jobs] : by_reason) {
    if (why == Stays::ends) continue;
    std::ranges::sort(jobs);
    std::string words(words_of(why));
    if (jobs.size() == 1 && words.starts_with("do not")) words.replace(0, 2, "does");
    if (why == Stays::exempt) words += fmt::format(", over in {}", duration(soonest - now));
    if (why == Stays::no) words += "; that is not enough for it to start";
    out.push_back(fmt::format("{} {}", named(state, jobs), words));
  }
  return out;
}

}  // namespace berth::schedule
