#include "command/simulate_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "simulate/render.h"

namespace berth::command {
namespace {

constexpr auto kEvery = std::chrono::milliseconds(200);
constexpr int kBar = 24;

}  // namespace

ProgressLine::ProgressLine(std::string label)
    : label_(std::move(label)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      began_(std::chrono::steady_clock::now()),
      last_(began_) {}

void ProgressLine::show(const simulate::Progress& progress) {
  if (!terminal_ || progress.jobs == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kEvery) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const double part = static_cast<double>(progress.ended) / static_cast<double>(progress.jobs);
  const double rate = static_cast<double>(progress.ended) / std::max(seconds, 1e-3);
  const int full = static_cast<int>(part * kBar);
  std::string bar;
  for (int i = 0; i < kBar; ++i) bar += i < full ? "█" : "░";
  const std::string left =
      rate > 0 ? simulate::shown_seconds(static_cast<double>(progress.jobs - progress.ended) / rate)
               : "?";
  fmt::print(stderr, "\r\033[K{} {:5.1f} %  {}  day {:.2f}  {:.0f} jobs/s  {} left", bar,
             part * 100, label_, static_cast<double>(progress.clock) / 86400, rate, left);
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace berth::command
