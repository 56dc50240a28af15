// Nodes that are switched off when nobody needs them and on again for a job: the values. The moves
// are in power.cpp.
//
//   on ──idle for SuspendTime──▶ powering_down ──SuspendTimeout──▶ off ──a job──▶ powering_up ──▶
//   on
//    └─ scontrol, jobs still there ─▶ going ─▶ ┘                                 │ ResumeTimeout
//                                                                  off, DOWN ◀───┘
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::job {

inline constexpr std::uint32_t kNeverSwitchedOff = UINT32_MAX;

/// Where a node is on its way off or on.
struct NodePower {
  enum class Phase : std::uint8_t {
    on,
    going,          // is to be switched off as soon as nothing runs there (POWER_DOWN)
    powering_down,  // SuspendProgram works on it; for SuspendTimeout nobody may use it
    off,            // jobs may have it: they switch it on
    powering_up,    // ResumeProgram works on it; it has ResumeTimeout to register
  };
  Phase phase = Phase::on;
  std::int64_t since = 0;    // of the phase; 0 while powering_up waits for ResumeRate
  bool told = false;         // the program of this phase has been started
  bool no_new_jobs = false;  // going: power_down_asap
  bool up_next = false;      // powering_down: on again at once
  bool down_next = false;    // powering_up: off again when it is up

  /// Nobody can expect it to answer.
  [[nodiscard]] bool away() const { return phase >= Phase::powering_down; }
  /// Off, but a job may have it.
  [[nodiscard]] bool wakes() const { return phase >= Phase::off; }
};

/// Suspend* and Resume* of slurm.conf. Seconds.
struct PowerPolicy {
  bool enabled = false;
  std::uint32_t suspend = kNeverSwitchedOff;  // idle for so long
  std::uint32_t suspend_timeout = 30;
  std::uint32_t resume_timeout = 60;
  std::uint32_t suspend_rate = 60;  // nodes in a minute; 0 = any number
  std::uint32_t resume_rate = 300;
  std::map<std::string, std::uint32_t> suspend_of_node;
  struct KeptOn {
    std::vector<std::string> nodes;
    std::optional<std::uint32_t> count;  // unset = all of them
  };
  std::vector<KeptOn> kept_on;
  std::vector<std::string> kept_on_partitions;
  std::vector<std::string> kept_on_states;
};

/// The same of one partition; unset = as for the cluster.
struct PartitionPower {
  std::optional<std::uint32_t> suspend;
  std::optional<std::uint32_t> suspend_timeout;
  std::optional<std::uint32_t> resume_timeout;
  bool when_idle = false;  // PowerDownOnIdle
};

/// What of it counts for one node: of several partitions the one that is most patient.
struct PowerTimes {
  std::uint32_t suspend = kNeverSwitchedOff;
  std::uint32_t suspend_timeout = 30;
  std::uint32_t resume_timeout = 60;
};

/// So many nodes in a minute.
class PowerRate {
 public:
  bool take(std::uint32_t limit, std::int64_t now) {
    if (limit == 0) return true;
    if (now >= minute_ + 60 || now < minute_) {
      minute_ = now;
      used_ = 0;
    }
    if (used_ >= limit) return false;
    ++used_;
    return true;
  }
  /// Of the last minute in which one was taken; 0 = none yet.
  [[nodiscard]] std::int64_t& minute() { return minute_; }
  /// When more may be taken.
  [[nodiscard]] std::int64_t next() const { return minute_ + 60; }

 private:
  std::int64_t minute_ = 0;
  std::uint32_t used_ = 0;
};

}  // namespace berth::job
