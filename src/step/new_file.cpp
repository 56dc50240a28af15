// What new_file.h promises.
#include "step/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace berth::step {
namespace {

constexpr mode_t kFirstMode = 0600;
/// Names that others may have taken meanwhile.
constexpr int kMostNames = 100;

std::unexpected<Error> file_trouble(const std::string& path, int why) {
  return fail(Code::io, fmt::format("{}: {}", path, std::strerror(why)));
}

std::unexpected<Error> no_regular_file(const std::string& path) {
  return fail(Code::io, fmt::format("{}: is no regular file", path));
}

std::string directory_of_file(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Whether what has that name now may be written over.
Result<void> may_be_written(const std::string& path, bool replace) {
  struct stat there = {};
  if (::lstat(path.c_str(), &there) != 0) return {};  // nothing, or who opens it learns more
  if (!S_ISREG(there.st_mode)) return no_regular_file(path);
  if (!replace) return file_trouble(path, EEXIST);
  return {};
}

}  // namespace

Result<NewFile> NewFile::open(std::string path, bool replace) {
  if (auto may = may_be_written(path, replace); !may) return pass(std::move(may.error()));
  Fd fd(::open(directory_of_file(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kFirstMode));
  NewFile file(path, replace, std::move(fd), false);
  // By that link it gets its name.
  if (file.fd_ && ::access(file.own_link().c_str(), F_OK) == 0) return file;
  return open_in_place(std::move(path), replace);
}

Result<NewFile> NewFile::open_in_place(std::string path, bool replace) {
  if (auto may = may_be_written(path, replace); !may) return pass(std::move(may.error()));
  // Without O_NONBLOCK a FIFO that is there since a moment would wait for somebody who reads it.
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Fd fd(::open(path.c_str(), flags | (replace ? 0 : O_EXCL), kFirstMode));
  if (!fd) return file_trouble(path, errno);
  struct stat opened = {};
  if (::fstat(fd.get(), &opened) != 0) return file_trouble(path, errno);
  if (!S_ISREG(opened.st_mode)) return no_regular_file(path);
  if (::ftruncate(fd.get(), 0) != 0) return file_trouble(path, errno);
  return NewFile(std::move(path), replace, std::move(fd), true);
}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      replace_(other.replace_),
      fd_(std::move(other.fd_)),
      in_place_(std::exchange(other.in_place_, false)) {}

NewFile::~NewFile() {
  if (in_place_) ::unlink(path_.c_str());
}

std::string NewFile::own_link() const {
  return fmt::format("/proc/self/fd/{}", fd_.get());
}

Result<void> NewFile::finish() {
  if (std::exchange(in_place_, false)) return {};
  const int done =
      ::linkat(AT_FDCWD, own_link().c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW);
  if (done == 0) return {};
  if (errno != EEXIST || !replace_) return file_trouble(path_, errno);
  return replace_old();
}

/// A file without a name cannot take that of another one: it gets one of its own first.
Result<void> NewFile::replace_old() {
  if (auto may = may_be_written(path_, true); !may) return may;
  const std::string own = own_link();
  std::string beside;
  for (int i = 0; i < kMostNames; ++i) {
    beside = fmt::format("{}/.sbcast.{}.{}", directory_of_file(path_), ::getpid(), i);
    if (::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, beside.c_str(), AT_SYMLINK_FOLLOW) == 0) break;
    if (errno != EEXIST || i + 1 == kMostNames) return file_trouble(path_, errno);
  }
  if (::rename(beside.c_str(), path_.c_str()) == 0) return {};
  const int why = errno;
  ::unlink(beside.c_str());
  return file_trouble(path_, why);
}

}  // namespace berth::step
