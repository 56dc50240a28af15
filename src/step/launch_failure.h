// Whose fault it is that a step does not begin. The node's own: it is tried once more, then the
// node takes no more jobs and the job begins again elsewhere. Or the job's: it fails. What a user
// chooses (directories, files, programs, sizes) is never the node's fault, or he could put nodes
// out of service.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace berth::step {

/// What of a launch did not work.
enum class LaunchPart {
  spool,         // the node's own files: records, the list of starts, the copy of a script
  script_owner,  // the copy of a script is given to the user
  supervisor,    // berth-stepd is not there, or ended before it started anything
  process,     // a process of the agent's or the supervisor's own, not one within the job's limits
  descriptor,  // sockets, pipes, /dev/null
  fence,       // control groups and their limits
  identity,    // to become the user
  other_user,  // an agent without root starts processes of one user only
  directory,   // where the job is to run
  output,      // files for output and errors
  input,       // the file for input
  terminal,    // of --pty and --unbuffered: users can take all that there are
};

/// `why`: errno.
bool is_the_nodes_fault(LaunchPart part, int why);

/// Of code node_unfit when it is the node's fault, else io: "<what>: <text of why>".
std::unexpected<Error> launch_failure(LaunchPart part, const std::string& what, int why);
/// The same where the text is there already.
std::unexpected<Error> launch_failure(LaunchPart part, std::string text);

/// Of a step of which something runs already: what does not fit beside it is the step's own size.
Error once_begun(Error why);

/// How long after the first failure a launch is tried again.
inline constexpr std::chrono::seconds kTryAgainAfter{1};
/// What is told when that failed too: "launch failed twice: …", with what becomes of the node.
Error failed_twice(Error why);

}  // namespace berth::step
