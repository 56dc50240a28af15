// A place for each node state that a selection meets. Few candidates among many nodes pay for the
// few: their states are found by hash, in a table of their number; else by the state's own number.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace berth::place {

class StateSlots {
 public:
  static constexpr std::int32_t kUnseen = -1;

  /// For at most `met` different states out of `states`.
  StateSlots(std::size_t states, std::size_t met)
      : by_number_(2 * met >= states), entries_(by_number_ ? states : std::bit_ceil(2 * met + 2)) {}

  /// What was kept for the state; kUnseen at first.
  std::int32_t& of(std::uint32_t state) {
    if (by_number_) return entries_[state].kept;
    const std::size_t mask = entries_.size() - 1;
    std::size_t at = (state * std::uint64_t{0x9e3779b97f4a7c15}) >> 32U & mask;
    while (entries_[at].state != state && entries_[at].state != kNobody) at = (at + 1) & mask;
    entries_[at].state = state;
    return entries_[at].kept;
  }
  void clear() { entries_.assign(entries_.size(), {}); }

 private:
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
  struct Entry {
    std::uint32_t state = kNobody;
    std::int32_t kept = kUnseen;
  };
  bool by_number_;
  std::vector<Entry> entries_;
};

}  // namespace berth::place
