// sbcast's other end: writes a file with the user's rights. The agent starts this program for it,
// so that it never touches a user's path itself.
#pragma once

#include <memory>

#include "step/peer.h"
#include "wire/frame.h"

namespace berth::step {

/// `order`: PutFile, its ticket checked; then one FileBlock with what was read from the client
/// already. Answers the client with Done. Returns the exit code.
int receive_file(const wire::PutFile& order, std::unique_ptr<Peer> agent, int client_fd);

}  // namespace berth::step
