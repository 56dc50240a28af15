// berth-stepd: supervises one step on one node. Started by berthd with the agent's connection as
// descriptor 3, the client's (if any) as 4 and the step's record as 5: its lock shows that it
// lives.
#include <fcntl.h>
#include <unistd.h>

#include "step/supervisor.h"

int main() {
  ::fcntl(5, F_SETFD, FD_CLOEXEC);
  // Nothing is left to be cleaned up that the kernel does not.
  ::_exit(berth::step::supervise(3, 4, 5));
}
