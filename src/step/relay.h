// A relay of a large step: launches its own node and the shares of others, and carries everything
// between them and the client over one connection. It runs as the user, so it is told no more, and
// can do no more, than the user.
#pragma once

#include "base/fd.h"
#include "wire/frame.h"

namespace berth::step {

/// Until all nodes are done or the client is gone. Returns the exit code.
int run_relay(wire::SuperviseRelay order, Fd client);

}  // namespace berth::step
