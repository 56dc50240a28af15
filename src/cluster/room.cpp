#include "cluster/room.h"

#include <bit>

namespace berth::cluster {

RoomTree::RoomTree(std::vector<Room> rooms)
    : size_(rooms.size()), leaves_(std::bit_ceil(std::max<std::size_t>(rooms.size(), 1))) {
  tree_.resize(2 * leaves_);
  std::ranges::copy(rooms, tree_.begin() + static_cast<std::ptrdiff_t>(leaves_));
  for (std::size_t i = leaves_ - 1; i > 0; --i) {
    tree_[i] = tree_[2 * i];
    tree_[i].raise_to(tree_[2 * i + 1]);
  }
}

void RoomTree::set(std::size_t node, const Room& room) {
  std::size_t i = leaves_ + node;
  if (tree_[i] == room) return;
  tree_[i] = room;
  for (i /= 2; i > 0; i /= 2) {
    Room both = tree_[2 * i];
    both.raise_to(tree_[2 * i + 1]);
    if (tree_[i] == both) return;
    tree_[i] = both;
  }
}

std::size_t RoomTree::next(std::size_t from, const Room& need) const {
  if (from >= size_) return npos;
  std::size_t i = leaves_ + from;
  while (true) {
    if (tree_[i].holds(need)) {
      if (i >= leaves_) return i - leaves_ < size_ ? i - leaves_ : npos;
      i *= 2;  // the maxima may come from different nodes: look closer, left side first
      continue;
    }
    while (i % 2 == 1) {  // all up to here is looked at: the next one to the right
      i /= 2;
      if (i <= 1) return npos;
    }
    ++i;
  }
}

}  // namespace berth::cluster
