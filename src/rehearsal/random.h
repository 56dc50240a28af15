// What a rehearsal leaves to chance, from its seed alone.
#pragma once

#include <chrono>
#include <cstdint>

namespace berth::rehearsal {

/// splitmix64: the same numbers everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }
  /// 0 … count-1 (count > 0).
  std::uint64_t below(std::uint64_t count) { return next() % count; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  std::chrono::nanoseconds up_to(std::chrono::nanoseconds most) {
    return std::chrono::nanoseconds(below(static_cast<std::uint64_t>(most.count()) + 1));
  }
  std::chrono::nanoseconds between(std::chrono::nanoseconds least, std::chrono::nanoseconds most) {
    return least + up_to(most - least);
  }
  /// Mostly short, now and then long.
  std::chrono::nanoseconds skewed(std::chrono::nanoseconds usual, std::chrono::nanoseconds most) {
    return one_in(50) ? up_to(most) : up_to(usual);
  }

 private:
  std::uint64_t state_;
};

}  // namespace berth::rehearsal
