#include "command/launch_terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace berth::command {

std::optional<Window> window_of(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return std::nullopt;
  return Window{size.ws_row, size.ws_col};
}

RawTerminal::RawTerminal(int fd) : fd_(fd) {
  if (::isatty(fd) != 1 || ::tcgetattr(fd, &before_) != 0) return;
  termios raw = before_;
  ::cfmakeraw(&raw);
  changed_ = ::tcsetattr(fd, TCSANOW, &raw) == 0;
}

RawTerminal::~RawTerminal() {
  if (changed_) ::tcsetattr(fd_, TCSADRAIN, &before_);
}

bool may_read_terminal(int fd) {
  return ::isatty(fd) != 1 || ::tcgetpgrp(fd) == ::getpgrp();
}

}  // namespace berth::command
