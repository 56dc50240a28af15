#include "schedule/timeline.h"

#include <algorithm>

namespace berth::schedule {

Balance::Balance(const cluster::Node& node, const cluster::NodeUsage& now) {
  jobs_ = now.jobs;
  exclusive_ = now.closed ? 1 : 0;
  const cluster::Room room = cluster::room_of(node, now, /*closed_too=*/true);
  cores_ = room.cores;
  memory_mb_ = static_cast<std::int64_t>(room.memory_mb);
  gpus_ = room.gpus;
  if (const cluster::Gres* gpus = node.find_gres("gpu")) {
    all_gpus_ = static_cast<std::int64_t>(gpus->total());
  }
}

void Balance::add(const cluster::NodeShare& share, bool whole_node, std::int64_t sign) {
  cores_ += sign * static_cast<std::int64_t>(share.cores.count());
  memory_mb_ += sign * static_cast<std::int64_t>(share.memory_mb);
  const cluster::GresShare* whole = share.find("gpu");
  std::int64_t gpus = whole == nullptr ? 0 : static_cast<std::int64_t>(whole->total());
  // A GPU whose shares are given back may be whole again.
  if (sign > 0) gpus = std::max(gpus, static_cast<std::int64_t>(share.gpus().count()));
  gpus_ = std::min(gpus_ + sign * gpus, all_gpus_);
  jobs_ -= sign;
  if (whole_node) exclusive_ -= sign;
}

cluster::Room Balance::room() const {
  if (exclusive_ > 0) return {};
  cluster::Room out;
  out.cores = static_cast<std::uint32_t>(std::max<std::int64_t>(cores_, 0));
  out.memory_mb = static_cast<std::uint64_t>(std::max<std::int64_t>(memory_mb_, 0));
  out.gpus = static_cast<std::uint32_t>(std::max<std::int64_t>(gpus_, 0));
  out.idle = jobs_ <= 0 ? 1 : 0;
  return out;
}

Timeline::Timeline(const cluster::Node& node, const cluster::NodeUsage& usage, Time now,
                   const std::vector<Use>& uses) {
  struct Change {
    Time at;
    const Use* use;
    bool begins;
  };
  std::vector<Change> changes;
  changes.reserve(2 * uses.size());
  for (const Use& use : uses) {
    if (!use.running) changes.push_back({use.span.from, &use, true});
    changes.push_back({use.span.until, &use, false});
  }
  std::ranges::sort(changes, {}, &Change::at);
  Balance balance(node, usage);
  pieces_.push_back({now, balance.room()});
  for (std::size_t i = 0; i < changes.size();) {
    const Time at = changes[i].at;
    for (; i < changes.size() && changes[i].at == at; ++i) {
      const Use& use = *changes[i].use;
      if (changes[i].begins) {
        balance.begins(*use.share, use.whole_node);
      } else {
        balance.ends(*use.share, use.whole_node);
      }
    }
    if (at > pieces_.back().from) {
      pieces_.push_back({at, balance.room()});
    } else {
      pieces_.back().room = balance.room();
    }
  }
}

Time Timeline::earliest(const cluster::Room& need, Time from, Time seconds) const {
  Time start = from;
  bool open = false;  // all since `start` holds
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const bool last = i + 1 == pieces_.size();
    if (!last && pieces_[i + 1].from <= from) continue;
    if (!pieces_[i].room.holds(need)) {
      open = false;
      continue;
    }
    if (!open) start = std::max(from, pieces_[i].from);
    open = true;
    if (last || pieces_[i + 1].from >= start + seconds) return start;
  }
  return 0;
}

Time Timeline::next_change(Time after) const {
  const auto next = std::ranges::upper_bound(pieces_, after, {}, &Piece::from);
  return next == pieces_.end() ? 0 : next->from;
}

}  // namespace berth::schedule
