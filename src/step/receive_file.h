// sbcast's other end: writes a file with the user's rights, in the groups of the job that the file
// is for. The agent starts this program for it, so that it never touches a user's path itself.
//
// It ends, and takes what it has written along, when the agent says so or is gone, and when the
// lease of the job is over.
#pragma once

#include "step/peer.h"
#include "wire/frame.h"

namespace berth::step {

/// The ticket in it was checked by the agent. Answers the client with Done. Returns the exit code.
int receive_file(const wire::SuperviseFile& given, Peer& agent, int client_fd);

}  // namespace berth::step
