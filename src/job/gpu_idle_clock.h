// When a job that leaves its GPUs unused is warned and ended: what its nodes told and times in,
// what to do out.
//
//   busy ──▶ idle ──half of the limit──▶ warned ──shortly before──▶ warned again ──limit──▶ ended
//
// Nodes tell how long all GPUs of the job have been idle there: a length, so that their clocks do
// not matter. They are asked when something may be due, not before.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace berth::job {

struct GpuIdleClock {
  using Seconds = std::int64_t;  // Unix seconds, or a number of them

  struct Pause {
    Seconds from = 0, to = 0;
  };
  Seconds counts_from = 0;     // nothing before counts; 0 = the job has not begun
  Seconds idle_since = 0;      // as far as is known
  std::vector<Pause> pauses;   // it was suspended: the clock stood still
  std::uint32_t warnings = 0;  // since it was busy last
  Seconds last_warning = 0;
  /// Component and node, of those that have been asked and have not answered.
  std::set<std::pair<std::uint32_t, std::string>> asked;
  Seconds told_since = 0;  // the latest that an answer says

  enum class Do { wait, warn, end };

  /// The job has begun, or what was before is not known any more.
  void start(Seconds now);
  void suspended() { asked.clear(); }
  void resumed(Seconds since, Seconds now);
  /// How long the job has been idle, without pauses.
  [[nodiscard]] Seconds idle(Seconds now) const;
  /// When the nodes are to be asked; 0 = not now.
  [[nodiscard]] Seconds next_look(Seconds limit) const;
  /// An answer; nullopt: it cannot be seen there. True when it was the last one that lacked.
  bool told(std::uint32_t component, const std::string& node, std::optional<Seconds> idle,
            Seconds now);
  /// After the last answer.
  Do decide(Seconds limit, Seconds now);
  /// After a warning: how long it has yet, if nothing changes.
  [[nodiscard]] Seconds left(Seconds limit, Seconds now) const;

 private:
  [[nodiscard]] Seconds paused() const;
};

}  // namespace berth::job
