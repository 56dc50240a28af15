#include "schedule/horizon.h"

#include <algorithm>
#include <optional>

namespace berth::schedule {

std::vector<Opening> openings(const job::State& state, Time now) {
  const cluster::Cluster& cluster = state.cluster();
  struct End {
    Time at;
    const job::Job* job;
  };
  std::vector<End> ends;
  ends.reserve(state.holding().size());
  for (const JobId id : state.holding()) {
    const job::Job* job = state.find(id);
    if (job->running && !job->running->released) ends.push_back({end_of(*job, now), job});
  }
  std::ranges::sort(ends, [](const End& a, const End& b) {
    return a.at != b.at ? a.at < b.at : a.job->id < b.job->id;
  });
  std::vector<std::optional<Balance>> nodes(cluster.nodes.size());
  std::vector<Opening> out;
  out.reserve(ends.size());
  for (const End& end : ends) {
    for (const cluster::NodeShare& share : end.job->allocation.nodes) {
      if (!cluster.nodes[share.node].usable) continue;
      std::optional<Balance>& node = nodes[share.node];
      if (!node) node.emplace(cluster.nodes[share.node], state.usage().at(share.node));
      node->ends(share, end.job->allocation.whole_nodes);
      out.push_back({end.at, share.node, node->room()});
    }
  }
  return out;
}

}  // namespace berth::schedule
