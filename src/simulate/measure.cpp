#include "simulate/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace berth::simulate {
namespace {

constexpr std::size_t kMostStretches = 480;
constexpr std::int64_t kFewest = 240;  // stretches while jobs arrive
/// Shorter jobs count as this long in slowdowns, so that they do not make up the mean.
constexpr double kBound = 10;

std::size_t class_of(std::uint32_t gpus) {
  std::size_t at = 0;
  while (at < 8 && gpus > (at == 0 ? 0U : 1U << (at - 1))) ++at;
  return at;
}
constexpr auto kClasses =
    std::to_array<const char*>({"0", "1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65+"});

std::uint32_t cut(std::int64_t seconds) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(seconds, 0, UINT32_MAX));
}

}  // namespace

Spread spread_of(std::vector<double>& values) {
  Spread out;
  out.count = values.size();
  if (values.empty()) return out;
  std::ranges::sort(values);
  double sum = 0;
  for (const double value : values) sum += value;
  const auto rank = [&](double part) {
    const auto at = static_cast<std::size_t>(std::ceil(part * static_cast<double>(values.size())));
    return values[std::max<std::size_t>(at, 1) - 1];
  };
  out.mean = sum / static_cast<double>(values.size());
  out.median = rank(0.5);
  out.p95 = rank(0.95);
  out.max = values.back();
  return out;
}

Measure::Measure(std::uint64_t cpus, std::uint64_t gpus, std::int64_t arrivals)
    : cpus_(cpus),
      gpus_(gpus),
      arrivals_(arrivals),
      width_(std::max<std::int64_t>(1, arrivals / kFewest)) {}

void Measure::open(const Fragmentation::Sample& sample) {
  if (stretches_.size() >= kMostStretches) {
    // Twice as long, half as many.
    std::vector<Stretch> merged;
    for (std::size_t i = 0; i < stretches_.size(); i += 2) {
      Stretch one = stretches_[i];
      if (i + 1 < stretches_.size()) {
        const Stretch& two = stretches_[i + 1];
        one.cpu_seconds += two.cpu_seconds;
        one.gpu_seconds += two.gpu_seconds;
        one.waiting_seconds += two.waiting_seconds;
        one.running_seconds += two.running_seconds;
        one.seconds += two.seconds;
        one.free += two.free;
        one.stranded += two.stranded;
        one.samples += two.samples;
      }
      merged.push_back(one);
    }
    stretches_ = std::move(merged);
    width_ *= 2;
    if (static_cast<std::size_t>(at_ / width_) < stretches_.size()) return;
  }
  Stretch fresh;
  fresh.free = sample.free;
  fresh.stranded = sample.stranded;
  fresh.samples = 1;
  stretches_.push_back(fresh);
}

void Measure::add(Stretch& stretch, std::int64_t seconds, const Now& now) {
  const auto time = static_cast<double>(seconds);
  const double cpu = time * static_cast<double>(now.cpus);
  const double gpu = time * static_cast<double>(now.gpus) / kGpu;
  stretch.seconds += seconds;
  stretch.cpu_seconds += cpu;
  stretch.gpu_seconds += gpu;
  stretch.waiting_seconds += time * static_cast<double>(now.waiting);
  stretch.running_seconds += time * static_cast<double>(now.running);
  cpu_seconds_ += cpu;
  gpu_seconds_ += gpu;
  waiting_seconds_ += time * static_cast<double>(now.waiting);
  if (at_ < arrivals_) {
    const double part = static_cast<double>(std::min(seconds, arrivals_ - at_)) / time;
    cpu_arrivals_ += cpu * part;
    gpu_arrivals_ += gpu * part;
  }
}

void Measure::ended(std::int64_t wait, std::int64_t ran, std::uint32_t gpus) {
  ended_.push_back({cut(wait), cut(ran), gpus});
}

void Measure::finish(Outcome& out) {
  const auto part = [](double amount, double time, double of) {
    return time > 0 && of > 0 ? amount / time / of : 0;
  };
  const auto cpus = static_cast<double>(cpus_);
  const auto gpus = static_cast<double>(gpus_);
  const auto time = static_cast<double>(at_);
  const auto arrivals = static_cast<double>(std::min(arrivals_, at_));
  out.arrivals = arrivals_;
  out.makespan = at_;
  out.cpu = part(cpu_seconds_, time, cpus);
  out.gpu = part(gpu_seconds_, time, gpus);
  out.cpu_arrivals = part(cpu_arrivals_, arrivals, cpus);
  out.gpu_arrivals = part(gpu_arrivals_, arrivals, gpus);
  out.waiting = part(waiting_seconds_, time, 1);
  out.most_waiting = most_waiting_;
  out.width = width_;
  double free = 0;
  double stranded = 0;
  double weight = 0;
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    const Stretch& one = stretches_[i];
    const auto seconds = static_cast<double>(one.seconds);
    const double samples = std::max(1U, one.samples);
    Point point;
    point.at = static_cast<std::int64_t>(i) * width_;
    point.cpu = part(one.cpu_seconds, seconds, cpus);
    point.gpu = part(one.gpu_seconds, seconds, gpus);
    point.waiting = part(one.waiting_seconds, seconds, 1);
    point.running = part(one.running_seconds, seconds, 1);
    point.stranded = gpus > 0 ? one.stranded / samples / gpus : 0;
    free += one.free / samples * seconds;
    stranded += one.stranded / samples * seconds;
    weight += seconds;
    out.points.push_back(point);
  }
  out.stranded = part(stranded, weight, gpus);
  out.stranded_of_free = free > 0 ? stranded / free : 0;

  std::vector<double> waits;
  std::vector<double> slowdowns;
  const auto slowdown = [](const Ended& job) {
    const double bounded = std::max<double>(job.ran, kBound);
    return std::max(1.0, (static_cast<double>(job.wait) + job.ran) / bounded);
  };
  for (std::size_t c = 0; c < kClasses.size(); ++c) {
    waits.clear();
    slowdowns.clear();
    for (const Ended& job : ended_) {
      if (class_of(job.gpus) != c) continue;
      waits.push_back(job.wait);
      slowdowns.push_back(slowdown(job));
    }
    if (waits.empty()) continue;
    out.sizes.push_back({kClasses[c], spread_of(waits), spread_of(slowdowns)});
  }
  waits.clear();
  slowdowns.clear();
  for (const Ended& job : ended_) {
    waits.push_back(job.wait);
    slowdowns.push_back(slowdown(job));
  }
  out.wait = spread_of(waits);
  out.slowdown = spread_of(slowdowns);
  // At 0, 1, 2, 5, 10, 20, 50 … seconds.
  std::size_t below = 0;
  const auto at_most = [&](std::int64_t seconds) {
    while (below < waits.size() && waits[below] <= static_cast<double>(seconds)) ++below;
    out.wait_curve.emplace_back(
        seconds,
        waits.empty() ? 0 : static_cast<double>(below) / static_cast<double>(waits.size()));
  };
  at_most(0);
  for (std::int64_t ten = 1; below < waits.size() && ten < 10'000'000'000; ten *= 10) {
    for (const std::int64_t step : {1, 2, 5}) at_most(ten * step);
  }
}

}  // namespace berth::simulate
