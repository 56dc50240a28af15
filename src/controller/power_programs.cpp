#include "controller/power_programs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/process.h"

namespace berth::controller {
namespace {

constexpr std::size_t kMostAtOnce = 16;

/// Between fork and exec: nothing here may allocate or lock.
[[noreturn]] void become(const char* path, char* const* words, char* const* variables, uid_t uid,
                         gid_t gid, bool change_user) {
  ::setsid();
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD}) {
    ::signal(number, SIG_DFL);
  }
  const int null = ::open("/dev/null", O_RDWR);
  for (const int stream : {0, 1, 2}) ::dup2(null, stream);
  if (change_user) {
    if (::setgroups(1, &gid) != 0 || ::setgid(gid) != 0 || ::setuid(uid) != 0) ::_exit(126);
  }
  if (::chdir("/") != 0) ::_exit(126);
  ::execve(path, words, variables);
  ::_exit(127);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  if (WEXITSTATUS(status) == 127) return "could not be run";
  return fmt::format("exited with {}", WEXITSTATUS(status));
}

}  // namespace

PowerPrograms::~PowerPrograms() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  if (!thread_.joinable()) return;
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void PowerPrograms::start(PowerProgram program) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(program));
  }
  if (!thread_.joinable()) {
    wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    thread_ = std::thread([this] { work(); });
  }
  ::eventfd_write(wake_.get(), 1);
}

void PowerPrograms::work() {
  for (;;) {
    std::vector<PowerProgram> now;
    bool stopping = false;
    {
      const std::lock_guard lock(mutex_);
      // What was promised to the store is started even when the controller ends.
      stopping = stopping_;
      while (!waiting_.empty() && (stopping || children_.size() + now.size() < kMostAtOnce)) {
        now.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
      }
    }
    for (PowerProgram& program : now) spawn(std::move(program));
    if (stopping) return;
    wait_for_news();
    reap();
  }
}

void PowerPrograms::spawn(PowerProgram program) {
  std::vector<char*> words = {program.path.data(), program.nodes.data(), nullptr};
  const std::vector<char*> variables = pointers_to(program.environment);
  const bool change_user = ::geteuid() == 0 && program.uid != 0;
  const pid_t pid = ::fork();
  if (pid == 0) {
    become(program.path.c_str(), words.data(), variables.data(), program.uid, program.gid,
           change_user);
  }
  if (pid < 0) {
    log_.error("{} {}: fork: {}", program.path, program.nodes, std::strerror(errno));
    return;
  }
  log_.info("{} {} (process {})", program.path, program.nodes, pid);
  Child child{std::move(program), pid, Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)))};
  children_.push_back(std::move(child));
}

void PowerPrograms::wait_for_news() {
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
  for (const Child& child : children_) fds.push_back({child.end.get(), POLLIN, 0});
  while (::poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
  }
  eventfd_t ignored = 0;
  ::eventfd_read(wake_.get(), &ignored);
}

void PowerPrograms::reap() {
  std::erase_if(children_, [&](const Child& child) {
    int status = 0;
    if (::waitpid(child.pid, &status, WNOHANG) == 0) return false;
    if (status != 0) {
      log_.error("{} {} {}", child.program.path, child.program.nodes, how_it_ended(status));
    }
    if (!child.program.file.empty()) ::unlink(child.program.file.c_str());
    return true;
  });
}

}  // namespace berth::controller
