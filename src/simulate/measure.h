// Gathers figures while the clock runs: exact integrals over time, in a bounded number of
// stretches.
#pragma once

#include <cstdint>
#include <vector>

#include "simulate/figures.h"
#include "simulate/fragmentation.h"
#include "simulate/trace.h"

namespace berth::simulate {

/// One GPU in whole numbers, so that sums of shares are exact.
inline constexpr std::int64_t kGpu = 1'000'000;

class Measure {
 public:
  Measure(std::uint64_t cpus, std::uint64_t gpus, std::int64_t arrivals);

  /// What is so until the next call of advance().
  struct Now {
    std::int64_t cpus = 0;
    std::int64_t gpus = 0;  // in 1/kGpu
    std::uint64_t waiting = 0;
    std::uint64_t running = 0;
  };
  /// The clock moves on to `to` seconds since the first submission; `now` was so in between.
  /// `sample` is asked when a new stretch begins.
  template <class Sample>
  void advance(std::int64_t to, const Now& now, Sample&& sample) {
    while (at_ < to) {
      if (static_cast<std::size_t>(at_ / width_) >= stretches_.size()) open(sample());
      const std::int64_t until = std::min(to, (at_ / width_ + 1) * width_);
      add(stretches_.back(), until - at_, now);
      at_ = until;
    }
    if (now.waiting > most_waiting_) most_waiting_ = now.waiting;
  }

  void ended(std::int64_t wait, std::int64_t ran, std::uint32_t gpus);
  void finish(Outcome& out);

 private:
  struct Stretch {
    double cpu_seconds = 0, gpu_seconds = 0, waiting_seconds = 0, running_seconds = 0;
    std::int64_t seconds = 0;
    double free = 0, stranded = 0;
    std::uint32_t samples = 0;
  };
  void open(const Fragmentation::Sample& sample);
  void add(Stretch& stretch, std::int64_t seconds, const Now& now);

  std::uint64_t cpus_;
  std::uint64_t gpus_;
  std::int64_t arrivals_;
  std::int64_t width_;
  std::int64_t at_ = 0;
  std::vector<Stretch> stretches_;
  double cpu_seconds_ = 0, gpu_seconds_ = 0, waiting_seconds_ = 0;
  double cpu_arrivals_ = 0, gpu_arrivals_ = 0;
  std::uint64_t most_waiting_ = 0;
  struct Ended {
    std::uint32_t wait;
    std::uint32_t ran;
    std::uint32_t gpus;
  };
  std::vector<Ended> ended_;
};

}  // namespace berth::simulate
