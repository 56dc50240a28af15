#include "command/launch_sink.h"

#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace berth::command {
namespace {

/// A pipe that says it is writable takes this much without blocking.
constexpr std::size_t kPiece = PIPE_BUF;

bool is_plain(int fd) {
  struct stat status = {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

Sink::Sink(int fd) : fd_(fd), plain_(is_plain(fd)) {}
Sink::Sink(Fd file) : own_(std::move(file)), fd_(own_.get()), plain_(is_plain(fd_)) {}

bool Sink::writable_now() const {
  if (plain_) return true;
  pollfd wait{fd_, POLLOUT, 0};
  return ::poll(&wait, 1, 0) > 0;
}

bool Sink::write_some() {
  const std::string_view rest = std::string_view(held_).substr(begin_);
  std::size_t size = rest.size();
  if (!plain_ && size > kPiece) {
    // Whole lines where possible: another writer of the same pipe may come in between.
    const std::size_t newline = rest.rfind('\n', kPiece - 1);
    size = newline == std::string_view::npos ? kPiece : newline + 1;
  }
  const ssize_t n = ::write(fd_, rest.data(), size);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (n < 0) {
    broken_ = true;
    held_.clear();
    begin_ = 0;
    return false;
  }
  begin_ += static_cast<std::size_t>(n);
  if (begin_ == held_.size()) {
    held_.clear();
    begin_ = 0;
  }
  return n > 0;
}

void Sink::put(std::string_view text) {
  if (broken_ || text.empty()) return;
  if (begin_ > (std::size_t{1} << 20)) {
    held_.erase(0, begin_);
    begin_ = 0;
  }
  held_ += text;
  flush();
}

void Sink::flush() {
  while (!broken_ && backlog() > 0 && writable_now() && write_some()) {
  }
}

void Sink::drain(std::chrono::milliseconds patience) {
  while (!broken_ && backlog() > 0) {
    pollfd wait{fd_, POLLOUT, 0};
    if (!plain_ && ::poll(&wait, 1, static_cast<int>(patience.count())) == 0) return;
    if (!write_some() && errno != EINTR && errno != EAGAIN) return;
  }
}

}  // namespace berth::command
