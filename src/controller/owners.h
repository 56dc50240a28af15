// Which connection an interactive job, a step or a waiting client belongs to, and how long the
// controller waits for an owner that went away. Of the state thread. Decides nothing about jobs:
// says whom to tell and what is left without an owner.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "controller/caller.h"
#include "controller/front.h"
#include "job/types.h"
#include "wire/submit.pb.h"

namespace berth::controller {

using Moment = std::chrono::steady_clock::time_point;
inline std::uint64_t microseconds_since(Moment start) {
  const auto passed = std::chrono::steady_clock::now() - start;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(passed).count());
}
using StepName = std::pair<job::JobId, std::uint32_t>;

/// A connection that broke may come back within this.
inline constexpr std::chrono::seconds kOwnerGrace{2};
/// The same for a job that waits: it holds nothing, and stays for a while as recorded (tasks_N9).
inline constexpr std::chrono::seconds kWaitingGrace{5};
/// After a restart of the controller its clients have this long to find it again.
inline constexpr std::chrono::seconds kRestartGrace{60};

/// A CreateStep that has no answer yet.
struct AskedStep {
  Peer peer = 0;
  Caller caller;
  wire::CreateStep ask;
};

class Owners {
 public:
  // ---- Jobs
  void own_job(job::JobId job, Peer peer);
  void await_owner(job::JobId job, Moment until);  // it has none now
  void forget_job(job::JobId job);
  [[nodiscard]] std::optional<Peer> owner(job::JobId job) const;

  // ---- Steps
  std::uint64_t ask_step(AskedStep step);  // returns its key
  [[nodiscard]] const AskedStep* asked_step(std::uint64_t key) const;
  void forget_asked(std::uint64_t key);
  [[nodiscard]] std::vector<std::uint64_t> asked_keys() const;
  void own_step(StepName step, Peer peer);
  [[nodiscard]] bool step_owned(StepName step) const { return steps_.contains(step); }
  /// A step that was found running: its srun has until then to come back.
  void await_step_owner(StepName step, Moment until);
  void forget_step(StepName step);
  void forget_steps_of(job::JobId job);
  /// The connections of all steps of a job.
  [[nodiscard]] std::set<Peer> step_peers(job::JobId job) const;

  // ---- WaitJob
  void wait_for(job::JobId job, Peer peer);
  [[nodiscard]] std::vector<Peer> take_waiters(job::JobId job);
  [[nodiscard]] bool waited_for(job::JobId job) const { return waiters_.contains(job); }

  // ---- Time and loss
  struct Left {
    std::vector<job::JobId> jobs;
    std::vector<StepName> steps;
    std::vector<std::uint64_t> asked;  // keys of steps that were asked for, in vain now
  };
  /// The connection is gone: what it owned. Jobs and steps are not remembered any more.
  Left lost(Peer peer);
  /// Jobs and steps whose owner did not come back in time; not remembered any more.
  Left expired(Moment now);
  [[nodiscard]] std::optional<Moment> next_deadline() const;

 private:
  struct Belongings {
    std::set<job::JobId> jobs;
    std::set<StepName> steps;
    std::set<std::uint64_t> asked;
    std::set<job::JobId> waits;
  };
  std::map<Peer, Belongings> peers_;
  std::map<job::JobId, Peer> jobs_;
  std::map<StepName, Peer> steps_;
  std::map<std::uint64_t, AskedStep> asked_;
  std::map<job::JobId, std::set<Peer>> waiters_;
  std::map<job::JobId, Moment> awaited_jobs_;
  std::map<StepName, Moment> awaited_steps_;
  std::uint64_t last_key_ = 0;
};

}  // namespace berth::controller
