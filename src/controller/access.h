// One row for each message: who may send it to the controller, and which thread answers it. What is
// not in the table is refused, and a test walks through every message there is.
#pragma once

#include <string_view>

#include "controller/caller.h"
#include "wire/frame.h"

namespace berth::controller {

/// What a connection has proven of its other end.
enum class Role {
  stranger,       // TCP: nothing yet, or nothing any more
  user,           // by the kernel, munge, a token, or the agent of a node where he has a job
  administrator,  // root, SlurmUser, the user that runs the controller; likewise
  node,           // by the certificate of a node
};

struct Standing {
  Role role = Role::stranger;
  bool remote = false;      // TCP
  bool registered = false;  // RegisterNodes was accepted on this connection
};

enum class Who {
  nobody,     // never sent to a controller by anyone: the connection is closed
  everybody,  // also who has proven nothing
  anyone,     // any known user; whose jobs it may touch is decided by the handler
  admin,      // administrators
  new_agent,  // who may become an agent: a node, or an administrator on this machine
  agent,      // the same, on a connection that is registered
  node,       // a node, by its certificate
  new_node,   // the same, on a connection that is not registered: it becomes a user's
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

/// Whether one of this standing may send it at all.
bool may_send(const Rule& rule, const Standing& standing);

}  // namespace berth::controller
