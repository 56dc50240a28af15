// Who sees everything that happens in a rehearsal, and says what must not: the promises of
// docs/trust.md about jobs that are lost, started twice, or run in two places.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "job/state.h"
#include "node/job_host.h"
#include "rehearsal/agenda.h"

namespace berth::rehearsal {

struct Counts {
  std::uint64_t acknowledged = 0;  // submissions
  std::uint64_t begun = 0;         // attempts whose script ran
  std::uint64_t begun_again = 0;   // of these: not the first
  std::uint64_t steps = 0;         // of srun that ran
  std::uint64_t replays = 0;       // tickets that were shown once more
  std::uint64_t starts = 0;        // of controllers
  std::uint64_t agents = 0;        // starts of agents
  std::uint64_t boots = 0;
  std::uint64_t cuts = 0;
  std::uint64_t turns = 0;
  std::uint64_t events = 0;
  void add(const Counts& other);
  /// "1,204 acknowledged, …".
  [[nodiscard]] std::string text() const;
};

class Witness {
 public:
  /// `schedule`: each line that is told is kept and printed.
  Witness(const Agenda& agenda, bool schedule) : agenda_(agenda), schedule_(schedule) {}

  /// For the schedule.
  void say(const std::string& line);
  [[nodiscard]] bool talks() const { return schedule_; }
  /// A promise is broken.
  void broken(const std::string& what);

  /// The client has read "Submitted batch job N".
  void acknowledged(const std::string& token, job::JobId id);
  /// Processes of this step are there from now on.
  void begins(const node::NodeStep& at);
  void ends(const node::NodeStep& at);
  /// The agent says that nothing of the job is left.
  void said_gone(const node::NodeJob& at);

  /// A controller has read its store.
  void look_at_store(const job::State& state);
  /// In the middle: what the controller takes for free, and where it takes jobs to run.
  void look_at_counters(const job::State& state);
  void look_at_places(const job::State& state, job::Time now);
  /// When all is whole again, and enough time has passed.
  void look_at_the_end(const job::State& state);

  [[nodiscard]] const std::optional<std::string>& fault() const { return fault_; }
  /// Of all lines with their moments: another schedule has another one.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }
  Counts counts;

 private:
  void look_for_lost(const job::State& state);

  const Agenda& agenda_;
  bool schedule_;
  std::uint64_t digest_ = 14695981039346656037ULL;
  std::optional<std::string> fault_;
  std::map<std::string, job::JobId> acknowledged_;  // by token
  std::set<node::NodeStep> begun_;
  std::set<std::pair<job::JobId, std::uint32_t>> attempts_;
  std::map<job::JobId, std::set<node::NodeStep>> running_;
};

}  // namespace berth::rehearsal
