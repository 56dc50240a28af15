#include "command/launch_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace berth::command {

SignalFd::SignalFd(std::initializer_list<int> signals) {
  sigset_t mask;
  ::sigemptyset(&mask);
  for (const int signal : signals) ::sigaddset(&mask, signal);
  ::sigprocmask(SIG_BLOCK, &mask, &before_);
  fd_.reset(::signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC));
}

SignalFd::~SignalFd() {
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalFd::take() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace berth::command
