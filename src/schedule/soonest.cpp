#include "schedule/soonest.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace berth::schedule {
namespace {

constexpr Time kTaken = -1;

}  // namespace

NeedKind kind_of(const cluster::Room& need, Time seconds, const Reservation* inside) {
  NeedKind out;
  // There are to be few kinds: what nodes are mostly waited for as it is, or rounded down.
  out.gpus = need.gpus;
  out.cores = need.gpus > 0 ? 0 : std::bit_floor(need.cores);
  out.idle = need.idle;
  // A power of four.
  const int width = std::bit_width(static_cast<std::uint64_t>(std::max<Time>(seconds, 1)));
  out.seconds = Time{1} << ((width - 1) & ~1);
  out.inside = inside;
  return out;
}

Soonest::Soonest(const NeedKind& kind, std::span<const Opening> openings, std::size_t nodes)
    : room_(kind.room()),
      least_(at_least(room_)),
      seconds_(kind.seconds),
      openings_(openings),
      from_(nodes) {}

void Soonest::push(const From& from) {
  from_[from.second] = from.first;
  heap_.push_back(from);
  std::ranges::push_heap(heap_, std::greater<>());
}

Soonest::From Soonest::pop() {
  std::ranges::pop_heap(heap_, std::greater<>());
  const From out = heap_.back();
  heap_.pop_back();
  return out;
}

void Soonest::again(NodeIndex node, Time from) {
  if (from_[node] != from) push({from, node});
}

void Soonest::open_up() {
  while (opened_ < openings_.size() &&
         (heap_.empty() || openings_[opened_].at <= heap_.front().first)) {
    const Opening& one = openings_[opened_++];
    if (from_[one.node] == 0 && one.room.holds(room_)) push({one.at, one.node});
  }
}

Time Soonest::next(Calendar& calendar) {
  while (true) {
    open_up();
    if (heap_.empty()) return kNever;
    const auto [from, node] = heap_.front();
    if (from_[node] != from) {  // told anew since
      pop();
      continue;
    }
    const Time at =
        calendar.offers(node) ? calendar.timeline(node).earliest(least_, from, seconds_) : 0;
    if (at == from) return from;
    pop();
    if (at > from) {
      push({at, node});
    } else {
      from_[node] = kNever;
    }
  }
}

NodeIndex Soonest::take() {
  const From out = pop();
  // An older entry may say the same by chance; it is not to tell the node again.
  from_[out.second] = kTaken;
  taken_.push_back(out);
  return out.second;
}

void Soonest::put_back() {
  for (const From& from : taken_) {
    if (from_[from.second] == kTaken) push(from);
  }
  taken_.clear();
}

}  // namespace berth::schedule
