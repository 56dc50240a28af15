#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "auth/random.h"
#include "auth/ticket.h"
#include "base/fd.h"

namespace berth::auth {
namespace {

std::unexpected<Error> failed(const char* what, const std::string& path) {
  return fail(Code::io, fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<std::string> load(const std::string& path, const Fd& fd) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return failed("read", path);
  if ((status.st_mode & 077) != 0) {
    return fail(Code::bad_config, fmt::format("{} may be read by others", path),
                "chmod 600 it; if others may have read it, remove it when no job runs");
  }
  std::string key(kKeyBytes + 1, '\0');
  const ssize_t size = ::pread(fd.get(), key.data(), key.size(), 0);
  if (size < 0) return failed("read", path);
  if (static_cast<std::size_t>(size) != kKeyBytes) {
    return fail(Code::bad_config, fmt::format("{} is not a cluster key", path),
                "remove it when no job runs: a new one is made");
  }
  key.resize(kKeyBytes);
  return key;
}

/// The key under a name of its own, whole and synced: it gets its real name only then.
Result<void> write_key(const std::string& path, const std::string& key) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return failed("make", path);
  if (::write(fd.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size()) ||
      ::fsync(fd.get()) != 0) {
    return failed("write", path);
  }
  return {};
}

}  // namespace

Result<std::string> load_or_create_cluster_key(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd) return load(path, fd);
  if (errno != ENOENT) return failed("read", path);

  const std::string key = random_bytes(kKeyBytes);
  const std::string temporary = fmt::format("{}.{}", path, random_token());
  Result<void> written = write_key(temporary, key);
  // link(2) does not replace: if another process was faster, its key is the key.
  const bool ours = written && ::link(temporary.c_str(), path.c_str()) == 0;
  if (written && !ours && errno != EEXIST) written = failed("make", path);
  ::unlink(temporary.c_str());
  if (!written) return pass(std::move(written.error()));
  if (!ours) {
    const Fd other(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!other) return failed("read", path);
    return load(path, other);
  }
  const Fd folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) return failed("sync", path);
  return key;
}

}  // namespace berth::auth
