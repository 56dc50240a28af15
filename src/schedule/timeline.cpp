#include "schedule/timeline.h"

#include <algorithm>

namespace berth::schedule {

Amount::Amount(const cluster::NodeShare& share, bool whole_node)
    : memory_mb(static_cast<std::int64_t>(share.memory_mb)),
      cores(static_cast<std::int32_t>(share.cores.count())),
      jobs(1),
      exclusive(whole_node ? 1 : 0) {
  const cluster::GresShare* whole = share.find("gpu");
  if (whole != nullptr) gpus = static_cast<std::int32_t>(whole->total());
}

void Amount::add(const Amount& other, std::int32_t times) {
  memory_mb += times * other.memory_mb;
  cores += times * other.cores;
  gpus += times * other.gpus;
  jobs += times * other.jobs;
  exclusive += times * other.exclusive;
}

Amount::Amount(const cluster::Room& free)
    : memory_mb(static_cast<std::int64_t>(free.memory_mb)),
      cores(static_cast<std::int32_t>(free.cores)),
      gpus(static_cast<std::int32_t>(free.gpus)),
      jobs(free.idle > 0 ? 0 : -1) {}

Amount at_least(const cluster::Room& need) {
  Amount out(need);
  if (need.memory_mb == 0) out.memory_mb = std::numeric_limits<std::int64_t>::min();
  constexpr std::int32_t kAny = std::numeric_limits<std::int32_t>::min();
  if (need.cores == 0) out.cores = kAny;
  if (need.gpus == 0) out.gpus = kAny;
  if (need.idle == 0) out.jobs = kAny;
  return out;
}

Balance::Balance(const cluster::Node& node, const cluster::NodeUsage& now)
    : free_(cluster::room_of(node, now, /*closed_too=*/true)) {
  free_.jobs = -static_cast<std::int32_t>(now.jobs);
  free_.exclusive = now.closed ? -1 : 0;
  if (const cluster::Gres* gpus = node.find_gres("gpu")) {
    all_gpus_ = static_cast<std::int32_t>(gpus->total());
  }
}

void Balance::ends(const cluster::NodeShare& share, bool whole_node) {
  Amount amount(share, whole_node);
  // A GPU whose shares are given back may be whole again.
  amount.gpus = std::max(amount.gpus, static_cast<std::int32_t>(share.gpus().count()));
  free_.add(amount, 1);
  free_.gpus = std::min(free_.gpus, all_gpus_);
}

cluster::Room Balance::room() const {
  if (free_.exclusive < 0) return {};
  cluster::Room out;
  out.cores = static_cast<std::uint32_t>(std::max(free_.cores, 0));
  out.memory_mb = static_cast<std::uint64_t>(std::max<std::int64_t>(free_.memory_mb, 0));
  out.gpus = static_cast<std::uint32_t>(std::max(free_.gpus, 0));
  out.idle = free_.jobs >= 0 ? 1 : 0;
  return out;
}

void Timeline::work_out(const cluster::Node& node, const cluster::NodeUsage& usage, Time now,
                        const std::vector<Use>& uses) {
  struct Event {
    Time at;
    const Use* use;
    bool begins;
  };
  std::vector<Event> events;
  events.reserve(2 * uses.size());
  for (const Use& use : uses) {
    if (!use.running) events.push_back({use.span.from, &use, true});
    events.push_back({use.span.until, &use, false});
  }
  std::ranges::sort(events, {}, &Event::at);
  Balance balance(node, usage);  // of those that run
  Amount planned;
  pieces_.clear();
  pieces_.reserve(events.size() + 1);
  pieces_.push_back({now, balance.free()});
  for (const Event& event : events) {
    const Use& use = *event.use;
    if (use.running) {
      balance.ends(*use.share, use.whole_node);
    } else {
      planned.add(Amount(*use.share, use.whole_node), event.begins ? 1 : -1);
    }
    if (event.at > pieces_.back().from) pieces_.push_back({event.at, {}});
    pieces_.back().free = balance.free();
    pieces_.back().free.add(planned, -1);
  }
}

std::size_t Timeline::piece_from(Time at) {
  const auto next = std::ranges::upper_bound(pieces_, at, {}, &Piece::from);
  if (next == pieces_.begin()) return 0;
  const auto here = next - 1;
  const auto index = static_cast<std::size_t>(here - pieces_.begin());
  if (here->from == at) return index;
  const Piece piece{at, here->free};  // a copy: the vector may move
  pieces_.insert(next, piece);
  return index + 1;
}

void Timeline::plan(const Span& span, const Amount& amount, std::int32_t times) {
  const std::size_t first = piece_from(span.from);
  const std::size_t last = piece_from(span.until);
  for (std::size_t i = first; i < last; ++i) pieces_[i].free.add(amount, -times);
}

Time Timeline::earliest(const Amount& least, Time from, Time seconds, Time far) const {
  auto at = std::ranges::upper_bound(pieces_, from, {}, &Piece::from);
  if (at != pieces_.begin()) --at;
  Time start = from;
  bool open = false;  // all since `start` holds
  for (; at != pieces_.end(); ++at) {
    if (!at->free.holds(least)) {
      open = false;
      continue;
    }
    if (!open) start = std::max(from, at->from);
    open = true;
    if (start > far) return start;
    if (at + 1 == pieces_.end() || (at + 1)->from >= start + seconds) return start;
  }
  return 0;
}

Time Timeline::next_change(Time after) const {
  const auto next = std::ranges::upper_bound(pieces_, after, {}, &Piece::from);
  return next == pieces_.end() ? 0 : next->from;
}

}  // namespace berth::schedule
