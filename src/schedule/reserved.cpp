#include "schedule/reserved.h"

#include <algorithm>

namespace berth::schedule {
namespace {

using reservation::Window;

/// A node that cannot be had at all.
const cluster::NodeShare kNothing;

/// So many occurrences are looked at in advance; what comes later is found when it is asked for.
constexpr int kOccurrences = 16;

cluster::NodeShare rest_of(const cluster::Node& node, const cluster::NodeShare& share) {
  cluster::NodeShare out;
  out.node = share.node;
  out.cores = Bits::first_n(node.cores()) - share.cores;
  for (const cluster::Gres& gres : node.gres) {
    const cluster::GresShare* has = share.find(gres.name);
    if (has == nullptr) continue;  // what it does not reserve is for all
    cluster::GresShare rest;
    rest.name = gres.name;
    for (std::size_t i = 0; i < gres.devices.size(); ++i) {
      const std::uint64_t kept = i < has->units.size() ? has->units[i] : 0;
      rest.units.push_back(gres.devices[i].units - std::min(kept, gres.devices[i].units));
    }
    out.gres.push_back(std::move(rest));
  }
  return out;
}

}  // namespace

bool Reserved::follow(const job::State& state) {
  if (round_ == state.reservation_round()) return false;
  round_ = state.reservation_round();
  by_node_.clear();
  others_.clear();
  for (const auto& [name, one] : state.reservations()) {
    if (by_node_.empty()) by_node_.resize(state.cluster().nodes.size());
    for (const cluster::NodeShare& share : one.allocation.nodes) {
      by_node_[share.node].push_back(&one);
      if (one.allocation.whole_nodes) continue;
      others_.emplace(std::pair(name, share.node),
                      rest_of(state.cluster().nodes[share.node], share));
    }
  }
  return true;
}

const std::vector<const Reservation*>& Reserved::on(NodeIndex node) const {
  static const std::vector<const Reservation*> none;
  return by_node_.empty() ? none : by_node_[node];
}

void Reserved::add_meeting(NodeIndex node, const Reservation* inside, const Span& span, Time now,
                           std::vector<Timeline::Use>& out) const {
  const Window asked{span.from, span.until};
  const auto take = [&](const cluster::NodeShare* share, bool whole) {
    out.push_back({.span = span, .share = share, .whole_node = whole});
  };
  for (const Reservation* one : on(node)) {
    if (!reservation::keeps_out(*one, inside, node)) continue;
    // One moment says nothing about who asks: plans in the future keep clear of it.
    const Time length = asked.until - asked.from;
    if (inside == nullptr && length > 1 && length <= one->max_start_delay) continue;
    if (one->first_meeting(asked, now)) take(one->share_of(node), one->allocation.whole_nodes);
  }
  if (inside == nullptr) return;
  if (!allows(node, inside)) return take(&kNothing, true);
  if (bound_in_time(inside)) {
    const auto window = inside->first_meeting(asked, now);
    if (!window || asked.from < window->from || asked.until > window->until) {
      return take(&kNothing, true);
    }
  }
  if (inside->on_any_node()) return;
  const auto rest = others_.find({inside->name, node});
  if (rest != others_.end()) take(&rest->second, false);
}

void Reserved::add_changes(NodeIndex node, const Reservation* inside, Time now,
                           std::vector<Time>& out) const {
  const auto add = [&](const Reservation& one) {
    Window at = one.window(now);
    for (int i = 0; i < kOccurrences; ++i) {
      out.push_back(at.from);
      out.push_back(at.until);
      if (!one.recurs()) return;
      at = reservation::next_occurrence(one.flags, at);
    }
  };
  for (const Reservation* one : on(node)) add(*one);
  if (inside != nullptr && inside->share_of(node) == nullptr) add(*inside);
}

Time Reserved::next_taken(NodeIndex node, const Reservation* inside, Time from, Time now) const {
  Time next = 0;
  const auto note = [&](Time at) {
    if (at >= from && (next == 0 || at < next)) next = at;
  };
  constexpr Time kFar = Time{1} << 40U;
  for (const Reservation* one : on(node)) {
    if (!reservation::keeps_out(*one, inside, node)) continue;
    if (const auto at = one->first_meeting({from, kFar}, now)) note(std::max(at->from, from));
  }
  if (bound_in_time(inside)) {
    if (const auto at = inside->first_meeting({from, from + 1}, now)) note(at->until);
  }
  return next;
}

}  // namespace berth::schedule
