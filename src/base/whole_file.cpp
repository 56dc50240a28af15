#include "base/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/fd.h"

namespace berth {
namespace {

constexpr off_t kMostBytes = off_t{16} << 20;

std::unexpected<Error> failed(const char* what, const std::string& path) {
  return fail(Code::io, std::string("cannot ") + what + " " + path + ": " + std::strerror(errno));
}

}  // namespace

Result<void> write_whole_file(const std::string& path, std::string_view bytes, unsigned mode) {
  const std::string beside = path + ".new";
  const Fd file(
      ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!file || ::fchmod(file.get(), mode) != 0) return failed("write", path);
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("write", path);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  if (::fsync(file.get()) != 0 || ::rename(beside.c_str(), path.c_str()) != 0) {
    return failed("write", path);
  }
  return sync_directory(path.substr(0, path.rfind('/') + 1));
}

Result<void> sync_directory(const std::string& path) {
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || ::fsync(directory.get()) != 0) return failed("write", path);
  return {};
}

Result<std::string> read_private_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno == ENOENT) return std::string();
  struct stat about{};
  if (!file || ::fstat(file.get(), &about) != 0) return failed("read", path);
  if ((about.st_mode & 077) != 0) {
    return fail(Code::bad_config, path + " may be read by others",
                "chmod 600 it; if others may have read it, what it protects has to be made anew");
  }
  if (about.st_size > kMostBytes) return fail(Code::bad_config, path + " is too large");
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), 0);
  if (count < 0) return failed("read", path);
  text.resize(static_cast<std::size_t>(count));
  return text;
}

}  // namespace berth
