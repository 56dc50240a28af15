#include "place/runs.h"

#include <algorithm>

namespace berth::place {
namespace {

bool sufficient(const Run& run, const Need& need) {
  if (run.cpus < need.cpus || static_cast<std::int64_t>(run.count) < need.nodes) return false;
  for (std::size_t i = 0; i < need.devices.size(); ++i) {
    if (run.devices[i] < need.devices[i]) return false;
  }
  return true;
}

/// True when a is to be used before b; equal ones keep their order.
bool better(const Run& a, const Run& b, const Need& need) {
  if (a.first_required.has_value() != b.first_required.has_value()) {
    return a.first_required.has_value();
  }
  if (a.order != b.order) return a.order < b.order;
  if (a.reach != b.reach) return a.reach > b.reach;
  const bool a_enough = sufficient(a, need);
  if (a_enough != sufficient(b, need)) return a_enough;
  return a_enough ? a.cpus < b.cpus : a.cpus > b.cpus;
}

}  // namespace

RunTable find_runs(const cluster::Cluster& cluster,
                   const std::vector<cluster::NodeIndex>& candidates,
                   const std::vector<cluster::NodeIndex>& required, bool ignore_weights,
                   const std::function<const Offer&(cluster::NodeIndex)>& offer_of) {
  RunTable table;
  Run run;
  std::optional<cluster::NodeIndex> last;
  const auto close = [&] {
    if (run.count > 0) table.runs.push_back(run);
    run = Run{};
    run.first = table.nodes.size();
  };
  for (cluster::NodeIndex index : candidates) {
    if (last && index != *last + 1) close();  // a node between them is not a candidate
    last = index;
    if (!required.empty() && std::ranges::binary_search(required, index)) {
      if (!run.first_required) run.first_required = index;
      continue;
    }
    const Offer& offer = offer_of(index);
    if (!offer.usable()) {
      close();
      continue;
    }
    const std::uint64_t order = ignore_weights ? 0 : cluster.nodes[index].order();
    const std::uint64_t reach = ignore_weights ? 0 : offer.reach;
    if (run.count > 0 && (run.order != order || run.reach != reach)) close();
    if (run.count == 0) {
      run.order = order;
      run.reach = reach;
      run.devices.assign(offer.devices.size());
    }
    table.nodes.push_back(index);
    ++run.count;
    run.cpus += offer.cpus;
    for (std::size_t i = 0; i < offer.devices.size(); ++i) run.devices[i] += offer.devices[i];
  }
  close();
  return table;
}

std::size_t best_run(const std::vector<Run>& runs, const Need& need) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (better(runs[i], runs[best], need)) best = i;
  }
  return best;
}

}  // namespace berth::place
