// One row for each message: who may send it to the controller, and which thread answers it. What is
// not in the table is refused, and a test walks through every message there is.
#pragma once

#include <string_view>

#include "controller/caller.h"
#include "wire/frame.h"

namespace berth::controller {

enum class Who {
  nobody,  // never sent to a controller by anyone: the connection is closed
  anyone,  // any known user; whose jobs it may touch is decided by the handler
  admin,   // root, SlurmUser, the user that runs the controller
  agent,   // the same, on the connection of an agent (RegisterNodes makes it one)
};

enum class Where {
  none,
  reader,  // answered from what was published, or by nodes: no waiting for the state thread
  state,   // changes or reads the state
};

struct Rule {
  wire::Kind kind;
  Who who;
  Where where;
};

/// The row of a message; a row of `nobody` for what has none.
Rule rule_of(wire::Kind kind);

/// Whether this caller may send it at all.
bool may_send(const Rule& rule, const Caller& caller, bool is_agent);

}  // namespace berth::controller
