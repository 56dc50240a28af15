// POSIX calls behind read_file.
#include "command/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace berth::command {
namespace {

/// Closes what it opened.
class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : fd_(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
        mine_(path != "-") {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (mine_ && fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
  bool mine_;
};

std::unexpected<Error> cannot_read(const std::string& path, int problem) {
  return fail(Code::io, fmt::format("cannot read {}: {}", path, std::strerror(problem)));
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  const Descriptor file(path);
  if (file.get() < 0) return cannot_read(path, errno);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return cannot_read(path, errno);
  if (S_ISDIR(status.st_mode)) return cannot_read(path, EISDIR);
  std::string text;
  std::string buffer(std::size_t{64} << 10, '\0');
  while (true) {
    const ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot_read(path, errno);
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > limit) {
      return fail(Code::limit, fmt::format("{} is longer than {} MiB",
                                           path == "-" ? "the input" : path, limit >> 20));
    }
  }
}

bool is_directory(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::optional<Error> why_unreadable(const std::string& path) {
  if (::access(path.c_str(), R_OK) == 0) return std::nullopt;
  return cannot_read(path, errno).error();
}

}  // namespace berth::command
