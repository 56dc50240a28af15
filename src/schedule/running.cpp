#include "schedule/running.h"

#include <algorithm>

namespace berth::schedule {

Time end_of(const job::Job& job, Time now) {
  // One that is suspended ends later by as much as it stands still.
  const Time still = job.base == job::Base::suspended ? now - job.suspend_time : 0;
  return std::max(job.over_by() + still, now + 1);
}

std::vector<Timeline::Use> running_uses(const job::State& state, NodeIndex node, Time now) {
  std::vector<Timeline::Use> out;
  for (const JobId id : state.node(node).jobs) {
    const job::Job* job = state.find(id);
    if (job == nullptr) continue;
    const auto& shares = job->allocation.nodes;
    const auto share = std::ranges::lower_bound(shares, node, {}, &cluster::NodeShare::node);
    if (share == shares.end() || share->node != node) continue;
    out.push_back(
        {{0, end_of(*job, now)}, &*share, job->allocation.whole_nodes, true, id, job->parked()});
  }
  return out;
}

}  // namespace berth::schedule
