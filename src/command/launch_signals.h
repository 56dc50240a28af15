// Signals as something to poll for.
#pragma once

#include <signal.h>

#include <initializer_list>
#include <optional>

#include "base/fd.h"

namespace berth::command {

/// Takes signals until it goes. Children must get back the mask of outside().
class SignalFd {
 public:
  SignalFd(std::initializer_list<int> signals);
  ~SignalFd();
  SignalFd(const SignalFd&) = delete;
  SignalFd& operator=(const SignalFd&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// One that came, without waiting.
  std::optional<int> take();
  /// The mask from before, for children.
  [[nodiscard]] const sigset_t& outside() const { return before_; }

 private:
  Fd fd_;
  sigset_t before_{};
};

}  // namespace berth::command
