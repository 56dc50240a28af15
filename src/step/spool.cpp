// What spool.h promises.
#include "step/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "wire/step_ids.h"

namespace berth::step {
namespace {

bool read_number(std::string_view& text, std::uint32_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool read_dot(std::string_view& text) {
  if (!text.starts_with('.')) return false;
  text.remove_prefix(1);
  return true;
}

/// The address of a socket in an open directory: always short enough.
sockaddr_un address_in(int directory, const char* name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory, name);
  return address;
}

}  // namespace

std::string record_name(const StepKey& key) {
  return fmt::format("step.{}.{}.{}", key.job, key.attempt, key.step);
}

std::optional<StepKey> read_record_name(std::string_view name) {
  StepKey key;
  if (!name.starts_with("step.")) return std::nullopt;
  name.remove_prefix(5);
  if (!read_number(name, key.job) || !read_dot(name) || !read_number(name, key.attempt) ||
      !read_dot(name) || !read_number(name, key.step) || !name.empty()) {
    return std::nullopt;
  }
  return key;
}

std::string directory_of(const std::string& record) {
  return record + ".d";
}

std::string step_name(std::uint32_t step) {
  switch (step) {
    case wire::kBatchStep:
      return "batch";
    case wire::kInteractiveStep:
      return "interactive";
    case wire::kExternStep:
      return "extern";
    default:
      return std::to_string(step);
  }
}

std::optional<std::string> read_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string bytes;
  char buffer[16384];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(n));
  }
}

bool write_file(const std::string& path, std::string_view bytes, unsigned mode, bool synced) {
  const std::string beside = path + ".new";
  Fd fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd) return false;
  if (!write_all(fd.get(), bytes) || (synced && ::fsync(fd.get()) != 0)) {
    const int why = errno;
    ::unlink(beside.c_str());
    errno = why;
    return false;
  }
  fd.reset();
  if (::rename(beside.c_str(), path.c_str()) != 0) return false;
  if (!synced) return true;
  const Fd folder(
      ::open(path.substr(0, path.rfind('/')).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder && ::fsync(folder.get()) == 0;
}

bool append_record(const std::string& path, std::string_view frames, bool fresh) {
  const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | (fresh ? O_CREAT | O_TRUNC : 0);
  const Fd fd(::open(path.c_str(), flags, 0600));
  return fd && write_all(fd.get(), frames);
}

std::vector<std::pair<wire::Kind, std::string>> read_record(const std::string& path) {
  std::vector<std::pair<wire::Kind, std::string>> found;
  const auto bytes = read_file(path);
  std::string_view rest = bytes ? std::string_view(*bytes) : std::string_view();
  wire::Frame frame;
  while (wire::scan_frame(rest, wire::kMostBytes, frame) == wire::Scan::complete) {
    found.emplace_back(frame.kind, frame.payload);
    rest.remove_prefix(frame.size);
  }
  return found;
}

bool is_held(const std::string& record) {
  const Fd lock(::open(record.c_str(), O_RDWR | O_CLOEXEC));
  return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0;
}

StepRecord read_step_record(const std::string& path) {
  StepRecord record;
  for (const auto& [kind, payload] : read_record(path)) {
    if (kind == wire::Kind::Supervised) {
      const auto first = wire::decode<wire::Supervised>(payload);
      if (first && wire::decode<wire::StepSpec>(first->spec())) record.spec = first->spec();
    } else if (kind == wire::Kind::StepStarted) {
      record.started = true;
    } else if (kind == wire::Kind::StepEnded) {
      record.result = wire::decode<wire::StepEnded>(payload);
    }
  }
  return record;
}

void remove_step(const std::string& record) {
  ::unlink(record.c_str());
  remove_directory(directory_of(record));
}

/// By descriptors, never through a link: parts of it are a user's.
static void empty_directory(int fd, int depth) {
  DIR* folder = ::fdopendir(fd);
  if (folder == nullptr) {
    ::close(fd);
    return;
  }
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || ::unlinkat(::dirfd(folder), entry->d_name, 0) == 0) continue;
    const int inner = depth == 0 ? -1
                                 : ::openat(::dirfd(folder), entry->d_name,
                                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0) continue;
    empty_directory(inner, depth - 1);
    ::unlinkat(::dirfd(folder), entry->d_name, AT_REMOVEDIR);
  }
  ::closedir(folder);
}

void remove_directory(const std::string& path) {
  constexpr int kDeepest = 4;
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  empty_directory(fd, kDeepest);
  ::rmdir(path.c_str());
}

Fd listen_in(const std::string& directory, const char* name) {
  const Fd folder(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!folder || !fd) return {};
  const sockaddr_un address = address_in(folder.get(), name);
  ::unlinkat(folder.get(), name, 0);
  const mode_t before = ::umask(0177);
  const int bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  ::umask(before);
  if (bound != 0 || ::listen(fd.get(), 16) != 0) return {};
  return fd;
}

Fd connect_in(const std::string& directory, const char* name) {
  const Fd folder(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!folder || !fd) return {};
  const sockaddr_un address = address_in(folder.get(), name);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return {};
  }
  return fd;
}

}  // namespace berth::step
