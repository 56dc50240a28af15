// What children.h promises.
#include "node/children.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/fd.h"
#include "base/process.h"
#include "step/oom_score.h"

namespace berth::node {

Children::Children(net::Loop& loop) : loop_(loop) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  loop_.on_signal(SIGCHLD, [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) reap();
  });
}

Children::~Children() {
  loop_.off_signal(SIGCHLD);
}

Result<pid_t> Children::start(const Plan& plan, Exited exited) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  // Out of the way of the numbers they are to have.
  std::vector<Fd> moved;
  for (const int fd : plan.descriptors) {
    moved.emplace_back(fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, 16));
  }
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
  for (const int stream : {1, 2}) ::posix_spawn_file_actions_adddup2(&actions, 0, stream);
  if (plan.output >= 0) ::posix_spawn_file_actions_adddup2(&actions, plan.output, 1);
  for (std::size_t i = 0; i < moved.size(); ++i) {
    if (moved[i]) {
      ::posix_spawn_file_actions_adddup2(&actions, moved[i].get(), static_cast<int>(i) + 3);
    }
  }
  ::posix_spawn_file_actions_addchdir_np(&actions, plan.directory.c_str());
  sigset_t none;
  ::sigemptyset(&none);
  // Those that the agent, or whoever started it, may have set to be ignored; the rest is default.
  sigset_t ignored;
  ::sigemptyset(&ignored);
  for (const int number :
       {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU}) {
    ::sigaddset(&ignored, number);
  }
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &ignored);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words = plan.argv;
  words.insert(words.begin(), plan.program);
  std::vector<std::string> variables = plan.environment;
  pid_t pid = 0;
  std::optional<step::StartsUnspared> unspared;
  if (!plan.spared) unspared.emplace();
  const int why = ::posix_spawn(&pid, plan.program.c_str(), &actions, &attributes,
                                pointers_to(words).data(), pointers_to(variables).data());
  unspared.reset();
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (why != 0) return fail(Code::io, fmt::format("{}: {}", plan.program, std::strerror(why)));
  waiting_.emplace(pid, std::move(exited));
  return pid;
}

void Children::ignore(pid_t pid) {
  waiting_.erase(pid);
}

void Children::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return;
    const auto found = waiting_.find(pid);
    if (found == waiting_.end()) continue;
    Exited exited = std::move(found->second);
    waiting_.erase(found);
    if (exited) exited(status);
  }
}

}  // namespace berth::node
