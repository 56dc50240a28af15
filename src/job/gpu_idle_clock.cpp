#include "job/gpu_idle_clock.h"

#include <algorithm>

namespace berth::job {
namespace {

using Seconds = GpuIdleClock::Seconds;

/// From the last warning to the end: time to do something about it.
Seconds grace(Seconds limit) {
  return std::clamp<Seconds>(limit / 10, 1, 60);
}
Seconds first_warning(Seconds limit) {
  return std::max<Seconds>(limit / 2, 1);
}
Seconds second_warning(Seconds limit) {
  return std::max<Seconds>(limit - grace(limit), 1);
}

}  // namespace

void GpuIdleClock::start(Seconds now) {
  counts_from = idle_since = now;
  pauses.clear();
  asked.clear();
  warnings = 0;
}

void GpuIdleClock::resumed(Seconds since, Seconds now) {
  // More of them than anybody makes: it is as if the job had just begun.
  constexpr std::size_t kMostPauses = 64;
  if (counts_from == 0) return;
  if (pauses.size() >= kMostPauses) return start(now);
  pauses.push_back({since, now});
}

Seconds GpuIdleClock::paused() const {
  Seconds sum = 0;
  for (const Pause& pause : pauses) {
    sum += std::max<Seconds>(pause.to - std::max(pause.from, idle_since), 0);
  }
  return sum;
}

Seconds GpuIdleClock::idle(Seconds now) const {
  return std::max<Seconds>(now - idle_since - paused(), 0);
}

Seconds GpuIdleClock::next_look(Seconds limit) const {
  if (counts_from == 0 || !asked.empty()) return 0;
  const Seconds wanted = warnings == 0   ? first_warning(limit)
                         : warnings == 1 ? second_warning(limit)
                                         : limit;
  const Seconds when = idle_since + paused() + wanted;
  return warnings < 2 ? when : std::max(when, last_warning + grace(limit));
}

bool GpuIdleClock::told(std::uint32_t component, const std::string& node,
                        std::optional<Seconds> idle, Seconds now) {
  if (asked.erase({component, node}) == 0) return false;
  // Where it cannot be seen it may have been busy until now.
  told_since = std::max(told_since, now - idle.value_or(0));
  if (!asked.empty()) return false;
  idle_since = std::max(std::exchange(told_since, 0), counts_from);
  std::erase_if(pauses, [&](const Pause& pause) { return pause.to <= idle_since; });
  if (idle_since > last_warning) warnings = 0;
  return true;
}

GpuIdleClock::Do GpuIdleClock::decide(Seconds limit, Seconds now) {
  const Seconds unused = idle(now);
  const std::uint32_t due = unused >= second_warning(limit)  ? 2
                            : unused >= first_warning(limit) ? 1
                                                             : 0;
  // Nobody is ended without a last warning, whatever became of the limit meanwhile.
  if (due > warnings) {
    warnings = due;
    last_warning = now;
    return Do::warn;
  }
  const bool over = warnings == 2 && unused >= limit && now >= last_warning + grace(limit);
  return over ? Do::end : Do::wait;
}

Seconds GpuIdleClock::left(Seconds limit, Seconds now) const {
  return std::max(limit - idle(now), warnings == 2 ? grace(limit) : 1);
}

}  // namespace berth::job
