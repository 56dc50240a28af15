#include "job/forecast.h"

#include <algorithm>

#include "place/place.h"

namespace berth::job {

std::vector<std::pair<Time, const Job*>> expected_ends(const Holders& holders, Time now) {
  std::vector<std::pair<Time, const Job*>> ends;
  for (const JobId id : holders.holding) {
    const Job& job = holders.jobs.at(id);
    if (!job.running || job.running->released) continue;
    if (job.flags.completing) {
      ends.emplace_back(now, &job);
    } else {
      // A job without a limit is taken to end a year after its start.
      const Time limit = job.limit_at().value_or(job.start_time + Time{365} * 24 * 3600);
      ends.emplace_back(std::max(limit, now), &job);
    }
  }
  std::ranges::sort(ends, {}, [](const auto& end) { return std::pair(end.first, end.second->id); });
  return ends;
}

Forecast earliest_start(const cluster::Cluster& cluster, const cluster::Usage& usage,
                        const Holders& holders, const request::Request& request, Time now) {
  const auto ends = expected_ends(holders, now);
  const auto try_after = [&](std::size_t count) {
    cluster::Usage free = usage;
    for (std::size_t i = 0; i < count; ++i) free.release(ends[i].second->allocation);
    return place::place_job(cluster, free, request, place::Detail::verdict);
  };
  // What fits after some ends fits after more of them: the first is found by halving.
  std::size_t low = 0;
  std::size_t high = ends.size();
  place::JobPlan best = try_after(high);
  if (best.verdict != place::Verdict::now) return {};
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    place::JobPlan plan = try_after(middle);
    if (plan.verdict == place::Verdict::now) {
      high = middle;
      best = std::move(plan);
    } else {
      low = middle + 1;
    }
  }
  Forecast out;
  out.start = high == 0 ? now : ends[high - 1].first;
  out.allocation = std::move(best.allocation);
  return out;
}

}  // namespace berth::job
