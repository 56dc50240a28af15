// sbcast's other end: writes a file with the user's rights. The agent starts this program for it,
// so that it never touches a user's path itself.
#pragma once

#include "step/peer.h"
#include "wire/frame.h"

namespace berth::step {

/// The ticket in it was checked by the agent. Answers the client with Done. Returns the exit code.
int receive_file(const wire::SuperviseFile& given, int client_fd);

}  // namespace berth::step
