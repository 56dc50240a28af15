// A pid file that is locked while its daemon lives, so that only one runs and others can see it.
//
//   auto lock = net::PidFile::take(net::controller_pid_file(run));  // error when another holds it
//   std::optional<pid_t> alive = net::PidFile::holder(path);
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace berth::net {

class PidFile {
 public:
  /// Locks the file and writes this process's pid.
  static Result<PidFile> take(const std::string& path);
  /// The pid of the process that holds the lock now.
  static std::optional<pid_t> holder(const std::string& path);
  /// Writes the pid again: after daemonize().
  void rewrite();

 private:
  explicit PidFile(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;  // the lock (flock) goes with the last copy of the descriptor
};

}  // namespace berth::net
