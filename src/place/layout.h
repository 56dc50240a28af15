// How many tasks of a step each node gets, and which ranks they have: block, pack, cyclic, plane
// and arbitrary over nodes of known room. Pure counting: no node, core or device is looked at here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "request/request.h"

namespace berth::place {

struct LayoutAsk {
  std::uint32_t tasks = 1;
  request::NodeDist method = request::NodeDist::block;
  bool pack = false;                   // block only: fill a node before the next
  std::uint32_t plane_size = 1;        // plane only, at least 1
  std::vector<std::size_t> positions;  // arbitrary only: the node position of each rank
};

/// The ranks of each node, ascending; as many entries as nodes.
using Layout = std::vector<std::vector<std::uint32_t>>;

/// `room[i]` is how many tasks node i takes before the others must be full too. When the tasks
/// exceed all room together they go on being dealt out: who may not overcommit checks beforehand.
Layout lay_out(const LayoutAsk& ask, std::span<const std::uint32_t> room);

/// Task counts of a layout.
std::vector<std::uint32_t> counts_of(const Layout& layout);

}  // namespace berth::place
