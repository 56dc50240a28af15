#include "schedule/earliest.h"

#include <algorithm>

#include "schedule/candidates.h"

namespace berth::schedule {
namespace {

using place::JobPlan;
using place::Prepared;

/// One search ends after so many placements, or so many nodes looked at: a job that is still
/// without a start then has none in this pass.
constexpr std::size_t kMostPlacements = 64;
constexpr std::size_t kMostLooks = 200000;
constexpr std::size_t kSpare = 3;
constexpr std::size_t kSpareInNetwork = 2048;  // whole switches should be among them

}  // namespace

Earliest::Earliest(const job::State& state, Calendar& calendar, Time now)
    : state_(&state), calendar_(&calendar), now_(now), overlay_(state.cluster().nodes.size()) {}

const std::vector<Opening>& Earliest::openings() {
  if (openings_ == nullptr) openings_ = &calendar_->openings();
  return *openings_;
}

void Earliest::started(const cluster::Allocation& allocation) {
  constexpr std::size_t kMostChanged = 1000;
  if (openings_ == nullptr) return;
  for (const cluster::NodeShare& share : allocation.nodes) changed_.push_back(share.node);
  if (changed_.size() < kMostChanged) return;
  openings_ = nullptr;
  changed_.clear();
  soonest_.clear();
}

Soonest& Earliest::soonest(const NeedKind& kind) {
  const std::vector<Opening>& all = openings();
  if (round_ != calendar_->round()) soonest_.clear();
  round_ = calendar_->round();
  const std::vector<NodeIndex>& regained = calendar_->regained();
  const auto known = soonest_.find(kind);
  if (known != soonest_.end()) {
    Row& row = known->second;
    for (; row.regained < regained.size(); ++row.regained) {
      row.nodes.again(regained[row.regained], now_ + 1);
    }
    return row.nodes;
  }
  const std::size_t nodes = state_->cluster().nodes.size();
  Row row{Soonest(kind, all, nodes), regained.size()};
  const cluster::Room room = kind.room();
  const cluster::RoomTree& rooms = state_->usage().rooms();
  for (std::size_t at = rooms.next(0, room); at != cluster::RoomTree::npos;
       at = rooms.next(at + 1, room)) {
    row.nodes.again(static_cast<NodeIndex>(at), now_ + 1);
  }
  // The openings do not know of these jobs' ends.
  for (const NodeIndex node : changed_) row.nodes.again(node, now_ + 1);
  return soonest_.emplace(kind, std::move(row)).first->second.nodes;
}

bool Earliest::room_now(const Prepared& job, Work& work) const {
  const cluster::RoomTree& rooms = state_->usage().rooms();
  std::uint32_t missing = job.min_nodes();
  for (std::size_t at = rooms.next(0, job.floor()); at != cluster::RoomTree::npos;
       at = rooms.next(at + 1, job.floor())) {
    ++work.looked_at;
    if (job.may_use(static_cast<NodeIndex>(at)) && --missing == 0) return true;
  }
  return false;
}

Time Earliest::wake_of(std::span<const NodeIndex> nodes) const {
  if (state_->wake_seconds() == 0) return 0;
  Time most = 0;
  for (const NodeIndex node : nodes) {
    most = std::max<Time>(most, state_->cluster().nodes[node].wake_seconds);
  }
  return most;
}

Time Earliest::wake_of(const cluster::Allocation& allocation) const {
  std::vector<NodeIndex> nodes;
  for (const cluster::NodeShare& share : allocation.nodes) nodes.push_back(share.node);
  return wake_of(nodes);
}

std::optional<JobPlan> Earliest::now(const Prepared& job, Time seconds, Work& work,
                                     bool few_switches) {
  const Time wake = state_->wake_seconds();
  if (wake == 0) return look_now(job, seconds, false, work, few_switches);
  // Who has to switch nodes on holds all of its own longer, and may not be in anybody's way then.
  if (auto plan = look_now(job, seconds + wake, false, work, few_switches)) return plan;
  const bool in_the_way = plans_in_the_way_;
  auto plan = look_now(job, seconds, true, work, few_switches);
  plans_in_the_way_ = plans_in_the_way_ || in_the_way;
  return plan;
}

std::optional<JobPlan> Earliest::look_now(const Prepared& job, Time seconds, bool only_awake,
                                          Work& work, bool few_switches) {
  const Span span{now_, now_ + seconds};
  const cluster::RoomTree& rooms = state_->usage().rooms();
  std::vector<NodeIndex> nodes;
  overlay_.clear();
  plans_in_the_way_ = false;
  kept_out_.clear();
  constexpr std::size_t kMostKeptOut = 1000;
  constexpr std::size_t kAFew = 16;
  std::size_t offered = 0;  // of the nodes gathered
  const auto offer = [&]() -> std::optional<JobPlan> {
    if (!job.takes_the_first() || nodes.size() < offered + kAFew) return std::nullopt;
    const std::span<const NodeIndex> few(nodes.begin() + static_cast<std::ptrdiff_t>(offered),
                                         nodes.end());
    offered = nodes.size();
    ++work.placed;
    return job.now(cluster::UsageView(state_->usage(), overlay_), few, /*near_only=*/true);
  };
  for (std::size_t at = rooms.next(0, job.floor()); at != cluster::RoomTree::npos;
       at = rooms.next(at + 1, job.floor())) {
    ++work.looked_at;
    const auto node = static_cast<NodeIndex>(at);
    if (!job.may_use(node) || !calendar_->allows(node)) continue;
    if (only_awake && state_->cluster().nodes[node].wake_seconds > 0) continue;
    const bool planned = calendar_->planned_on(node, span);
    const bool reserved = calendar_->reserved_on(node);
    if (planned || reserved) {
      plans_in_the_way_ = plans_in_the_way_ || planned;
      calendar_->usage_over(node, span, nullptr, usage_);
      const bool fits = cluster::room_of(state_->cluster().nodes[node], usage_).holds(job.floor());
      if (reserved && kept_out_.size() < kMostKeptOut) kept_out_.push_back(node);
      if (!fits) continue;
      overlay_.put(node) = usage_;
    }
    nodes.push_back(node);
    if (auto plan = offer()) return plan;
  }
  if (nodes.size() < job.min_nodes()) return std::nullopt;
  ++work.placed;
  return job.now(cluster::UsageView(state_->usage(), overlay_), nodes, false, few_switches);
}

std::optional<JobPlan> Earliest::place_at(const Prepared& job, const Span& span,
                                          std::span<const NodeIndex> nodes, Work& work,
                                          bool few_switches) {
  overlay_.clear();
  for (const NodeIndex node : nodes) {
    calendar_->usage_over(node, span, nullptr, overlay_.put(node));
  }
  work.looked_at += nodes.size();
  ++work.placed;
  return job.now(cluster::UsageView(state_->usage(), overlay_), nodes, false, few_switches);
}

std::optional<Earliest::Found> Earliest::later(const Prepared& job, Time seconds, Time not_before,
                                               Work& work, bool few_switches) {
  const cluster::Room& floor = job.floor();
  const Amount least = at_least(floor);
  const std::size_t placed_before = work.placed;
  const std::size_t looked_before = work.looked_at;
  const Time first = std::max(not_before, now_ + 1);
  Candidates waiting(job.min_nodes());
  const auto wait_from = [&](NodeIndex node, Time from) {
    ++work.looked_at;
    const Time at = calendar_->timeline(node).earliest(least, from, seconds, waiting.bound());
    if (at > 0 && (waiting.is_far(at) || job.may_use(node))) waiting.add(at, node);
  };
  const auto usable = [&](NodeIndex node) { return job.may_use(node); };
  // Where all its nodes are named there is nothing to look for.
  const bool only_required = !job.required().empty() && job.required().size() >= job.min_nodes();
  Soonest* others = nullptr;
  if (only_required) {
    for (const NodeIndex node : job.required()) {
      if (calendar_->offers(node)) wait_from(node, first);
    }
  } else {
    others = &soonest(kind_of(floor, seconds, calendar_->inside()));
  }
  const Soonest::Search search(others);
  std::vector<NodeIndex> ready;
  while (work.placed - placed_before < kMostPlacements &&
         work.looked_at - looked_before < kMostLooks) {
    waiting.settle(usable);
    // All that may be ready by the moment at which the next node is.
    while (others != nullptr) {
      const Time at = others->next(*calendar_);
      if (at == Soonest::kNever) break;
      if (!waiting.none_near() && at > std::max(waiting.next(), first)) break;
      wait_from(others->take(), std::max(at, first));
    }
    if (waiting.none_near()) return std::nullopt;
    const Time moment = waiting.next();
    const Span span{moment, moment + seconds};
    waiting.take(moment, ready);
    if (ready.size() < job.min_nodes()) continue;
    std::ranges::sort(ready);
    ready.erase(std::ranges::unique(ready).begin(), ready.end());  // one may have come again
    // Who was ready may be so no longer: something is planned there.
    std::erase_if(ready, [&](NodeIndex node) {
      ++work.looked_at;
      if (calendar_->timeline(node).earliest(least, moment, seconds, moment) == moment)
        return false;
      wait_from(node, moment);
      return true;
    });
    if (ready.size() >= job.min_nodes() && std::ranges::includes(ready, job.required())) {
      // Some of many will do, mostly.
      const bool alike = !job.asks_network() || job.single_node();
      const std::size_t some = job.min_nodes() + (alike ? kSpare : kSpareInNetwork);
      if (ready.size() > some && job.required().empty()) {
        const std::span<const NodeIndex> few(ready.begin(),
                                             ready.begin() + static_cast<std::ptrdiff_t>(some));
        if (auto plan = place_at(job, span, few, work, few_switches)) {
          return Found{moment, std::move(*plan)};
        }
      }
      if (auto plan = place_at(job, span, ready, work, few_switches)) {
        return Found{moment, std::move(*plan)};
      }
    }
    // In numbers they would do, in cores and sockets they do not: again when something changes
    // there.
    if (ready.size() >= job.min_nodes()) {
      for (const NodeIndex node : ready) {
        const Time next = calendar_->timeline(node).next_change(moment);
        if (next > 0) wait_from(node, next);
      }
      if (job.single_node()) ready.clear();
    }
  }
  return std::nullopt;
}

}  // namespace berth::schedule
