// Reading whole files with a bound, from a directory or from memory.
#include "conf/source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace berth::conf {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

std::unexpected<Error> unreadable(const std::filesystem::path& path, int reason) {
  return fail(Code::io, fmt::format("cannot read {}: {}", path.string(),
                                    std::generic_category().message(reason)));
}

std::unexpected<Error> too_large(std::string_view name) {
  return fail(Code::limit, fmt::format("{} is larger than {} MiB, which no configuration file is",
                                       name, kMaxFileBytes >> 20));
}

}  // namespace

Result<std::optional<std::string>> DirectorySource::read(std::string_view name) const {
  const std::filesystem::path path = directory_ / name;
  // Non-blocking: a FIFO in place of a file must not hang the program.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<std::string>();
    return unreadable(path, errno);
  }
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return unreadable(path, errno);
  if (!S_ISREG(info.st_mode)) {
    return fail(Code::io, fmt::format("cannot read {}: not a regular file", path.string()));
  }
  std::string text;
  for (;;) {
    const std::size_t had = text.size();
    if (had > kMaxFileBytes) return too_large(path.string());
    text.resize(had + 65536);
    const ssize_t got = ::read(file.get(), text.data() + had, 65536);
    if (got < 0 && errno != EINTR) return unreadable(path, errno);
    text.resize(had + static_cast<std::size_t>(got < 0 ? 0 : got));
    if (got == 0) return std::optional<std::string>(std::move(text));
  }
}

Result<std::optional<std::string>> MemorySource::read(std::string_view name) const {
  const auto at = files_.find(name);
  if (at == files_.end()) return std::optional<std::string>();
  if (at->second.size() > kMaxFileBytes) return too_large(name);
  return std::optional<std::string>(at->second);
}

}  // namespace berth::conf
