// Whose rights a step has: the user's, taken for good in a task, or for a moment in the supervisor
// when it opens the user's files.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "step/oom_score.h"
#include "wire/submit.pb.h"

namespace berth::step {

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  bool was_spared = oom_score() < 0;  // when memory runs out, as this process is

  static Identity of(const wire::StepSpec& spec);
  /// "" or why this process cannot act for the user.
  [[nodiscard]] std::string unreachable() const;
  /// Takes the user's ids for a moment, as ActingAs does: 0, or the errno that says why it cannot.
  [[nodiscard]] int try_on() const;
  /// For good, all ids, and no more spared than others when memory runs out; checked. False (errno)
  /// when any of it failed: the caller must not go on.
  [[nodiscard]] bool become() const;
};

/// What this process has as root, to be had again.
struct Root {
  gid_t gid = 0;
  std::vector<gid_t> groups;

  static Root now();
  /// Ends the process when it cannot.
  void give_back() const;
};

/// Effective ids and groups of the user while it lives; ends the process when they cannot be taken
/// or given back. Needs a process with one thread.
class ActingAs {
 public:
  explicit ActingAs(const Identity& who);
  ~ActingAs();
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;

 private:
  std::optional<Root> root_;
};

}  // namespace berth::step
