#include "net/pid_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace berth::net {
namespace {

pid_t read_pid(int fd) {
  char text[32]{};
  if (::pread(fd, text, sizeof text - 1, 0) <= 0) return 0;
  return static_cast<pid_t>(std::strtol(text, nullptr, 10));
}

}  // namespace

Result<PidFile> PidFile::take(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) return fail(Code::io, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  // Someone who looks (holder) has a shared lock for a moment: that is not another daemon.
  for (int tries = 0; ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (tries == 10) {
      return fail(Code::io,
                  fmt::format("already running (pid {} holds {})", read_pid(fd.get()), path));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  PidFile file(std::move(fd));
  file.rewrite();
  return file;
}

void PidFile::rewrite() {
  const std::string text = fmt::format("{}\n", ::getpid());
  // The lock counts; the number is for people, so a full disk is no reason to fail.
  if (::ftruncate(fd_.get(), 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(fd_.get(), text.data(), text.size(), 0);
  }
}

std::optional<pid_t> PidFile::holder(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  // A shared lock: two who look at the same time do not take each other for the daemon.
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  return read_pid(fd.get());
}

}  // namespace berth::net
