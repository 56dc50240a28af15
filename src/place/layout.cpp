#include "place/layout.h"

#include <algorithm>
#include <numeric>

namespace berth::place {
namespace {

using Counts = std::vector<std::uint32_t>;

/// One task a node and pass while the node has room; when nobody has, everybody has.
Counts deal_in_passes(std::uint32_t tasks, std::span<const std::uint32_t> room) {
  Counts counts(room.size(), 0);
  bool limited = true;
  for (std::uint32_t pass = 0; tasks > 0; ++pass) {
    bool more_room = false;
    for (std::size_t i = 0; i < room.size() && tasks > 0; ++i) {
      if (limited && pass >= room[i]) continue;
      ++counts[i];
      --tasks;
      more_room |= limited && pass + 1 < room[i];
    }
    if (!more_room) limited = false;
  }
  return counts;
}

Counts pack(std::uint32_t tasks, std::span<const std::uint32_t> room) {
  Counts counts(room.size(), 0);
  for (std::size_t i = 0; i < room.size() && tasks > 0; ++i) {
    if (room[i] == 0) continue;
    counts[i] = 1;
    --tasks;
  }
  for (std::size_t i = 0; i < room.size(); ++i) {
    const std::uint32_t more = std::min(tasks, room[i] - counts[i]);
    counts[i] += more;
    tasks -= more;
  }
  for (std::size_t i = 0; tasks > 0; i = (i + 1) % room.size()) {
    ++counts[i];
    --tasks;
  }
  return counts;
}

Counts deal_planes(std::uint32_t tasks, std::span<const std::uint32_t> room, std::uint32_t size) {
  Counts counts(room.size(), 0);
  for (std::size_t i = 0; i < room.size() && tasks > 0; ++i) {
    counts[i] = 1;
    --tasks;
  }
  bool limited = true;
  std::uint32_t share = size - 1;  // the first round completes the planes begun above
  while (tasks > 0) {
    bool placed = share == 0;
    for (std::size_t i = 0; i < room.size() && tasks > 0; ++i) {
      std::uint32_t more = std::min(share, tasks);
      if (limited) more = std::min(more, room[i] - std::min(room[i], counts[i]));
      counts[i] += more;
      tasks -= more;
      placed |= more > 0;
    }
    if (!placed) limited = false;
    share = size;
  }
  return counts;
}

Layout number_by_node(const Counts& counts) {
  Layout layout(counts.size());
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    layout[i].resize(counts[i]);
    std::iota(layout[i].begin(), layout[i].end(), rank);
    rank += counts[i];
  }
  return layout;
}

/// Blocks of `size` ranks in turn; a node that has its count is passed over.
Layout number_in_turns(const Counts& counts, std::uint32_t size) {
  Layout layout(counts.size());
  const auto total = std::accumulate(counts.begin(), counts.end(), std::uint32_t{0});
  std::uint32_t rank = 0;
  while (rank < total) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      for (std::uint32_t k = 0; k < size && layout[i].size() < counts[i]; ++k) {
        layout[i].push_back(rank++);
      }
    }
  }
  return layout;
}

Layout cyclic(std::uint32_t tasks, std::span<const std::uint32_t> room) {
  const auto total = std::accumulate(room.begin(), room.end(), std::uint64_t{0});
  Counts raised(room.begin(), room.end());
  if (tasks > total) {
    const auto more = static_cast<std::uint32_t>((tasks - total + room.size() - 1) / room.size());
    for (auto& limit : raised) limit += more;
  }
  return number_in_turns(deal_in_passes(tasks, raised), 1);
}

Layout arbitrary(const std::vector<std::size_t>& positions, std::size_t nodes) {
  Layout layout(nodes);
  for (std::size_t rank = 0; rank < positions.size(); ++rank) {
    layout[positions[rank]].push_back(static_cast<std::uint32_t>(rank));
  }
  return layout;
}

}  // namespace

Layout lay_out(const LayoutAsk& ask, std::span<const std::uint32_t> room) {
  if (room.empty()) return {};
  switch (ask.method) {
    case request::NodeDist::block:
      return number_by_node(ask.pack ? pack(ask.tasks, room) : deal_in_passes(ask.tasks, room));
    case request::NodeDist::cyclic:
      return cyclic(ask.tasks, room);
    case request::NodeDist::plane: {
      const std::uint32_t size = std::max(ask.plane_size, 1U);
      return number_in_turns(deal_planes(ask.tasks, room, size), size);
    }
    case request::NodeDist::arbitrary:
      return arbitrary(ask.positions, room.size());
  }
  return {};
}

std::vector<std::uint32_t> counts_of(const Layout& layout) {
  std::vector<std::uint32_t> counts;
  counts.reserve(layout.size());
  for (const auto& ranks : layout) counts.push_back(static_cast<std::uint32_t>(ranks.size()));
  return counts;
}

}  // namespace berth::place
