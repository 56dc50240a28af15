// berth-pmix: serves PMIx to the tasks of one step on one node, as the step's user. Started by the
// supervisor when the first task dials, with the supervisor's connection as descriptor 3 and the
// socket that tasks dial as 4.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "pmix/listener.h"
#include "pmix/server.h"

int main() {
  // It ends with its supervisor, not when the step is signalled: tasks that clean up still need it.
  constexpr std::array kOwn = {SIGKILL, SIGSTOP, SIGCONT, SIGCHLD, SIGSEGV,
                               SIGBUS,  SIGFPE,  SIGILL,  SIGABRT};
  for (int number = 1; number <= SIGRTMAX; ++number) {
    if (std::ranges::find(kOwn, number) == kOwn.end()) ::signal(number, SIG_IGN);
  }
  berth::pmix::SupervisorLink supervisor{berth::Fd(3)};
  const auto frame = supervisor.next();
  if (!frame || frame->kind != berth::wire::Kind::ServePmix) return 1;
  auto step = berth::wire::decode<berth::wire::ServePmix>(frame->payload);
  if (!step || step->node_id() >= static_cast<unsigned>(step->layout().nodes_size())) return 1;
  // Clients look for shared memory before they dial. Where this came later, values are told over
  // the connection.
  ::setenv("PMIX_MCA_gds", step->directory().empty() ? "hash" : "ds21,hash", 1);
  berth::pmix::use_listener(4, step->uid());
  berth::pmix::Server server(std::move(*step), supervisor);
  berth::wire::PmixServes serves;
  serves.set_trouble(server.start());
  supervisor.send(serves);
  if (!serves.trouble().empty()) return 1;
  server.run();
  // Nothing is left to be cleaned up that the kernel does not.
  ::_exit(0);
}
