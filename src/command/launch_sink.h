// Where output goes: a terminal, a pipe or a file. Never blocks while there is a loop to serve.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace berth::command {

class Sink {
 public:
  /// A descriptor of the caller.
  explicit Sink(int fd);
  /// A file of its own.
  explicit Sink(Fd file);

  /// Appends, and writes what can be written at once.
  void put(std::string_view text);
  /// Writes what can be written at once.
  void flush();
  /// Writes everything, waiting for a slow reader at most `patience` without progress.
  void drain(std::chrono::milliseconds patience);

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::size_t backlog() const { return held_.size() - begin_; }
  /// Nobody reads any more.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  [[nodiscard]] bool writable_now() const;
  /// Whether something was written.
  bool write_some();

  Fd own_;
  int fd_;
  bool plain_ = false;  // a regular file: writing never waits
  bool broken_ = false;
  std::string held_;
  std::size_t begin_ = 0;
};

}  // namespace berth::command
