// How much is free on each node, in four numbers, kept in a tree of maxima over the node index:
// "which nodes could hold this?" costs about the number of nodes that could, not the number of
// nodes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace berth::cluster {

/// What is free on a node, or the least that a job needs of one. A node whose room does not hold
/// the need cannot take the job; one whose room does may still refuse it (sockets, device types,
/// …).
struct Room {
  std::uint64_t memory_mb = 0;
  std::uint32_t cores = 0;
  std::uint32_t gpus = 0;  // whole GPUs
  std::uint32_t idle = 0;  // 1: nothing runs there

  [[nodiscard]] bool holds(const Room& need) const {
    return cores >= need.cores && gpus >= need.gpus && memory_mb >= need.memory_mb &&
           idle >= need.idle;
  }
  void raise_to(const Room& other) {
    memory_mb = std::max(memory_mb, other.memory_mb);
    cores = std::max(cores, other.cores);
    gpus = std::max(gpus, other.gpus);
    idle = std::max(idle, other.idle);
  }
  void lower_to(const Room& other) {
    memory_mb = std::min(memory_mb, other.memory_mb);
    cores = std::min(cores, other.cores);
    gpus = std::min(gpus, other.gpus);
    idle = std::min(idle, other.idle);
  }
  friend bool operator==(const Room&, const Room&) = default;
};

class RoomTree {
 public:
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);

  RoomTree() = default;
  explicit RoomTree(std::vector<Room> rooms);

  void set(std::size_t node, const Room& room);
  [[nodiscard]] const Room& at(std::size_t node) const { return tree_[leaves_ + node]; }
  /// The first node from `from` on that holds `need`, or npos.
  [[nodiscard]] std::size_t next(std::size_t from, const Room& need) const;

 private:
  std::size_t size_ = 0;
  std::size_t leaves_ = 0;  // a power of two
  std::vector<Room> tree_;  // [1] is the root, children of i are 2i and 2i+1
};

}  // namespace berth::cluster
