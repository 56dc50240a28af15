// Whether a launch that a client brings may start its step now, and which steps may not be started
// any more. Without a socket and without a clock.
#pragma once

#include <cstdint>
#include <set>
#include <variant>

#include "base/result.h"
#include "node/jobs.h"
#include "node/tickets.h"

namespace berth::node {

/// Steps whose tickets are used, and which are not known otherwise: each has been here, or is not
/// to come.
class UsedTickets {
 public:
  /// False when it was in there.
  bool add(const NodeStep& at) { return steps_.insert(at).second; }
  [[nodiscard]] bool contains(const NodeStep& at) const { return steps_.contains(at); }
  /// The job is not known here any more, so that it takes no launches either.
  void forget(const NodeJob& job);

 private:
  std::set<NodeStep> steps_;
};

/// Of the steps of an agent.
class LaunchBook {
 public:
  LaunchBook() = default;
  LaunchBook(const LaunchBook&) = delete;
  LaunchBook& operator=(const LaunchBook&) = delete;
  virtual ~LaunchBook() = default;

  /// True when a ticket for it has been used, or must not be used any more.
  [[nodiscard]] virtual bool used(const NodeStep& at) const = 0;
  /// Why the step is not to be started here any more, when that is the node's fault.
  [[nodiscard]] virtual const Error* unfit_for(const NodeStep& at) const = 0;
};

/// It cannot be said yet: the job, or the key of the node, is still to come.
struct LaunchWaits {};
struct LaunchRefused {
  Error why;
  std::string ticket_fault{};  // the ticket is no good: somebody may have made it
};
struct LaunchStarts {
  NodeStep at;
};
using LaunchVerdict = std::variant<LaunchWaits, LaunchRefused, LaunchStarts>;

/// `last_chance`: it has waited long enough.
LaunchVerdict decide_launch(const wire::Ticket& ticket, const std::string& key, std::int64_t now,
                            const Bearer& bearer, bool last_chance, const LaunchBook& steps,
                            const Jobs& jobs);

/// "Task launch for StepId=5.0 failed on node n1: …".
Error launch_error(const wire::StepSpec& spec, const std::string& node, const std::string& why);

}  // namespace berth::node
