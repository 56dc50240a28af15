#include "schedule/calendar.h"

#include <algorithm>
#include <utility>

namespace berth::schedule {
namespace {

using cluster::NodeShare;
using cluster::NodeUsage;

using Use = Timeline::Use;

/// Adds one use to what is taken. Devices and cores that several uses have one after the other are
/// taken all the same: nobody moves while it runs.
void add_use(const cluster::Node& node, const Use& use, NodeUsage& out) {
  if (!use.lends_cores) {
    out.cores |= use.share->cores;
    out.bind_cores(*use.share);
  }
  ++out.jobs;
  out.closed = out.closed || (use.whole_node && !use.lends_cores);
  for (const cluster::GresShare& gres : use.share->gres) {
    const cluster::Gres* here = node.find_gres(gres.name);
    if (here == nullptr) continue;
    std::vector<std::uint64_t>& taken = out.gres[static_cast<std::size_t>(here - node.gres.data())];
    for (std::size_t i = 0; i < gres.units.size() && i < taken.size(); ++i) {
      taken[i] = std::min(taken[i] + gres.units[i], here->devices[i].units);
    }
  }
}

std::uint64_t memory_at(const std::vector<Use>& uses, Time moment) {
  std::uint64_t sum = 0;
  for (const Use& use : uses) {
    if (use.span.from <= moment && moment < use.span.until) sum += use.share->memory_mb;
  }
  return sum;
}

/// The most memory that is used at one moment: it grows only when one begins.
std::uint64_t most_memory(const std::vector<Use>& uses, Time from) {
  std::uint64_t most = memory_at(uses, from);
  for (const Use& use : uses) {
    if (use.span.from > from) most = std::max(most, memory_at(uses, use.span.from));
  }
  return most;
}

}  // namespace

void Calendar::begin(Time now) {
  now_ = now;
  for (const NodeIndex node : with_timeline_) timelines_[node].forget();
  with_timeline_.clear();
  seen_inside_.clear();
  new_round();
  go_on();
}

void Calendar::new_round() {
  ++round_;
  regained_.clear();
}

void Calendar::go_on() {
  if (reserved_.follow(*state_)) {
    seen_inside_.clear();
    new_round();
  }
  for (const NodeIndex node : with_running_) running_[node].reset();
  with_running_.clear();
}

void Calendar::started(const cluster::Allocation& allocation) {
  for (const NodeShare& share : allocation.nodes) {
    changed(share.node);
    running_[share.node].reset();
  }
}

void Calendar::add(Planned planned) {
  const auto at = plans_.emplace(planned.job, std::move(planned));
  for (const NodeShare& share : at->second.allocation.nodes) {
    by_node_[share.node].push_back({&at->second, &share, at->second.span});
    replanned(at->second, share, 1);
  }
}

void Calendar::replanned(const Planned& planned, const NodeShare& share, std::int32_t times) {
  if (!seen_inside_.empty()) seen_inside_.erase(share.node);
  Timeline& timeline = timelines_[share.node];
  if (!timeline.known()) return;
  timeline.plan(planned.span, Amount(share, planned.allocation.whole_nodes), times);
}

void Calendar::remove(JobId job) {
  const auto [first, last] = plans_.equal_range(job);
  for (auto at = first; at != last; ++at) {
    for (const NodeShare& share : at->second.allocation.nodes) {
      std::erase_if(by_node_[share.node],
                    [&](const Entry& entry) { return entry.planned == &at->second; });
      replanned(at->second, share, -1);
      regained_.push_back(share.node);
    }
  }
  plans_.erase(first, last);
}

std::vector<Planned> Calendar::take(JobId job) {
  std::vector<Planned> out;
  const auto [first, last] = plans_.equal_range(job);
  for (auto at = first; at != last; ++at) out.push_back(at->second);
  if (!out.empty()) remove(job);
  return out;
}

std::multimap<JobId, Planned> Calendar::take_plans() {
  std::multimap<JobId, Planned> out = std::move(plans_);
  plans_ = std::multimap<JobId, Planned>();
  for (const auto& [id, planned] : out) {
    for (const NodeShare& share : planned.allocation.nodes) {
      by_node_[share.node].clear();
      changed(share.node);
    }
  }
  return out;
}

bool Calendar::is_free(const Planned& planned) {
  const Reservation* inside = state_->find_reservation(planned.reservation);
  if (inside == nullptr && !planned.reservation.empty()) return false;
  const Inside look(*this, inside);
  return std::ranges::all_of(planned.allocation.nodes, [&](const NodeShare& share) {
    const cluster::Node& node = state_->cluster().nodes[share.node];
    if (!node.usable) return false;
    return cluster::is_free(node, usage_over(share.node, planned.span), share,
                            planned.allocation.whole_nodes,
                            state_->cluster().settings.memory_is_consumed);
  });
}

bool Calendar::planned_on(NodeIndex node, const Span& span) const {
  return std::ranges::any_of(by_node_[node],
                             [&](const Entry& entry) { return entry.span.meets(span); });
}

Time Calendar::next_planned_start(NodeIndex node, Time from) const {
  Time next = 0;
  for (const Entry& entry : by_node_[node]) {
    if (entry.span.until <= from) continue;
    const Time start = std::max(entry.span.from, from);
    if (next == 0 || start < next) next = start;
  }
  if (reserved_on(node)) {
    const Time taken = reserved_.next_taken(node, inside_, from, now_);
    if (taken > 0 && (next == 0 || taken < next)) next = taken;
  }
  return next;
}

const std::vector<Use>& Calendar::running_on(NodeIndex index) const {
  std::optional<std::vector<Use>>& known = running_[index];
  if (known) return *known;
  with_running_.push_back(index);
  return known.emplace(running_uses(*state_, index, now_));
}

std::vector<Use> Calendar::uses(NodeIndex index) const {
  const std::vector<Use>& running = running_on(index);
  std::vector<Use> out;
  out.reserve(running.size() + by_node_[index].size());
  out.assign(running.begin(), running.end());
  for (const Entry& entry : by_node_[index]) out.push_back(entry.use());
  return out;
}

/// Cores that a reservation keeps and a job in it has are taken once: so it is counted by number.
Timeline Calendar::exact_timeline(NodeIndex node) const {
  std::vector<Time> moments = {now_};
  for (const Use& use : uses(node)) {
    moments.push_back(use.span.from);
    moments.push_back(use.span.until);
  }
  reserved_.add_changes(node, inside_, now_, moments);
  std::ranges::sort(moments);
  moments.erase(std::ranges::unique(moments).begin(), moments.end());
  std::vector<Timeline::Piece> pieces;
  for (const Time at : moments) {
    if (at < now_) continue;
    pieces.push_back({at, Amount(cluster::room_of(state_->cluster().nodes[node],
                                                  usage_over(node, {at, at + 1})))});
  }
  return Timeline(std::move(pieces));
}

const Timeline& Calendar::timeline(NodeIndex node) {
  if (reserved_on(node)) {
    auto& here = seen_inside_[node];
    const auto known = here.find(inside_);
    if (known != here.end()) return known->second;
    return here.emplace(inside_, exact_timeline(node)).first->second;
  }
  Timeline& timeline = timelines_[node];
  if (!timeline.known()) {
    timeline.work_out(state_->cluster().nodes[node], state_->usage().at(node), now_, uses(node));
    with_timeline_.push_back(node);
  }
  return timeline;
}

void Calendar::usage_over(NodeIndex index, const Span& span, const Gone* gone,
                          NodeUsage& out) const {
  const cluster::Node& node = state_->cluster().nodes[index];
  const cluster::Usage& usage = state_->usage();
  std::vector<Use>& meeting = meeting_;
  meeting.clear();
  for (const Use& use : running_on(index)) {
    if (!use.span.meets(span) || (gone != nullptr && gone->jobs.contains(use.job))) continue;
    meeting.push_back(use);
  }
  for (const Entry& entry : by_node_[index]) {
    if (entry.span.meets(span)) meeting.push_back(entry.use());
  }
  if (gone != nullptr) {
    for (Use& use : meeting) {
      use.lends_cores = use.lends_cores || (use.running && gone->suspended.contains(use.job));
    }
  }
  if (reserved_on(index)) reserved_.add_meeting(index, inside_, span, now_, meeting);
  // What is used now is taken as it is; later, only what runs on.
  const bool starts_now = span.from <= now_ && gone == nullptr;
  out = starts_now ? usage.at(index) : usage.pristine(usage.class_of(index));
  for (const Use& use : meeting) {
    if (!starts_now || !use.running) add_use(node, use, out);
  }
  out.memory_mb = std::max(out.memory_mb, most_memory(meeting, span.from));
  cluster::refresh_blocked(node, out);
}

}  // namespace berth::schedule
