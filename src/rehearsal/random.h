// What a rehearsal leaves to chance, from its seed alone.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/random.h"

namespace berth::rehearsal {

class Random : public berth::Random {
 public:
  using berth::Random::Random;
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
};

}  // namespace berth::rehearsal
