// The caller's terminal for --pty.
#pragma once

#include <termios.h>

#include <cstdint>
#include <optional>

namespace berth::command {

struct Window {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
};
/// nullopt when the descriptor is no terminal.
std::optional<Window> window_of(int fd);

/// Every key goes to the other side, until it goes.
class RawTerminal {
 public:
  explicit RawTerminal(int fd);
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  int fd_;
  bool changed_ = false;
  termios before_{};
};

/// False for a process in the background of its terminal: reading would stop it.
bool may_read_terminal(int fd);

}  // namespace berth::command
