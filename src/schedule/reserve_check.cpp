#include "schedule/reserve_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::schedule {
namespace {

using cluster::NodeShare;
using reservation::Flag;
using reservation::Window;

bool have_in_common(const NodeShare& a, const NodeShare& b) {
  if (a.cores.intersects(b.cores)) return true;
  return std::ranges::any_of(a.gres, [&](const cluster::GresShare& gres) {
    const cluster::GresShare* other = b.find(gres.name);
    if (other == nullptr) return false;
    for (std::size_t i = 0; i < gres.units.size() && i < other->units.size(); ++i) {
      if (gres.units[i] > 0 && other->units[i] > 0) return true;
    }
    return false;
  });
}

/// Where one recurs, so many of its occurrences are looked at.
bool meet(const Reservation& one, const Reservation& other, Time now) {
  constexpr int kOccurrences = 200;
  Window at = one.window(now);
  for (int i = 0; i < kOccurrences; ++i) {
    if (other.first_meeting(at, now)) return true;
    if (!one.recurs()) return false;
    at = reservation::next_occurrence(one.flags, at);
  }
  return false;
}

bool may_overlap(const Reservation& one) {
  return one.flags.has(Flag::overlap) || one.flags.has(Flag::maint);
}

}  // namespace

std::unexpected<Error> nodes_busy(std::string hint) {
  return fail(Code::nodes_busy, std::string(slurm_text(Code::nodes_busy)), std::move(hint));
}

NodeShare whole_node(const cluster::Cluster& cluster, NodeIndex index) {
  const cluster::Node& node = cluster.nodes[index];
  NodeShare share;
  share.node = index;
  share.cores = Bits::first_n(node.cores()) - node.reserved_cores;
  share.cpus = static_cast<std::uint32_t>(share.cores.count()) * node.threads_per_core;
  return share;
}

Result<void> check_share(const job::State& state, Time now, const Reservation& reservation,
                         const NodeShare& share) {
  const std::string& name = state.cluster().nodes[share.node].name;
  const bool whole = reservation.allocation.whole_nodes;
  const auto shared = [&](const NodeShare* other, bool other_whole) {
    return other != nullptr && (whole || other_whole || have_in_common(share, *other));
  };
  for (const auto& [other, one] : state.reservations()) {
    if (other == reservation.name || may_overlap(reservation) || may_overlap(one)) continue;
    if (!shared(one.share_of(share.node), one.allocation.whole_nodes)) continue;
    if (meet(reservation, one, now)) {
      return nodes_busy(
          fmt::format("{} is in reservation {}; Flags=OVERLAP shares it", name, other));
    }
  }
  if (reservation.flags.has(Flag::ignore_jobs)) return {};
  for (const JobId id : state.node(share.node).jobs) {
    const job::Job* job = state.find(id);
    if (job == nullptr || !job->running || job->reservation == reservation.name) continue;
    if (end_of(*job, now) <= reservation.window(now).from) continue;
    const auto& held = job->allocation.nodes;
    const auto at = std::ranges::lower_bound(held, share.node, {}, &NodeShare::node);
    if (at == held.end() || at->node != share.node) continue;
    if (!shared(&*at, job->allocation.whole_nodes)) continue;
    return nodes_busy(
        fmt::format("job {} may run on {} beyond its start; Flags=IGNORE_JOBS reserves the node "
                    "all the same",
                    job->shown(), name));
  }
  return {};
}

}  // namespace berth::schedule
