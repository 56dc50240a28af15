#include "command/up_home.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "net/paths.h"
#include "net/pid_file.h"

namespace berth::command {
namespace {

namespace fs = std::filesystem;

std::string absolute(const std::string& directory) {
  std::error_code failed;
  fs::path path = fs::weakly_canonical(directory, failed);
  if (failed) path = fs::absolute(directory, failed);
  std::string text = path.lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

std::unexpected<Error> cannot(std::string_view what, const std::string& path, int problem,
                              std::string hint = {}) {
  return fail(Code::io, fmt::format("cannot {} {}: {}", what, path, std::strerror(problem)),
              std::move(hint));
}

Result<void> make_directory(const std::string& path, mode_t mode) {
  struct stat status{};
  if (::mkdir(path.c_str(), mode) == 0) {
    ::chmod(path.c_str(), mode);  // whatever the umask
    return {};
  }
  const int problem = errno;
  if (problem == EEXIST && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return {};
  return cannot("make the directory", path, problem, "choose another place with --state DIR");
}

Result<void> make_directories(const std::string& path, mode_t mode) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    struct stat status{};
    if (::stat(part.c_str(), &status) != 0) {
      if (auto made = make_directory(part, mode); !made) return made;
    } else if (!S_ISDIR(status.st_mode)) {
      return cannot("make the directory", path, ENOTDIR, "choose another place with --state DIR");
    }
    if (slash == std::string::npos) return {};
  }
}

}  // namespace

std::optional<pid_t> ClusterHome::controller() const {
  return net::PidFile::holder(net::controller_pid_file(run));
}
std::optional<pid_t> ClusterHome::agent() const {
  return net::PidFile::holder(net::node_pid_file(run));
}
bool ClusterHome::has_conf() const {
  return ::access(conf().c_str(), F_OK) == 0;
}

ClusterHome find_home(const std::string& directory) {
  ClusterHome home;
  home.state = absolute(directory.empty() ? net::default_state_directory() : directory);
  home.run = net::run_directory(home.conf());
  return home;
}

Result<ClusterHome> make_home(const std::string& directory) {
  ClusterHome home = find_home(directory);
  // Users of root's cluster read its slurm.conf; another's is nobody's business.
  const mode_t open = ::geteuid() == 0 ? 0755 : 0700;
  if (auto made = make_directories(home.state, open); !made) return pass(std::move(made.error()));
  if (::access(home.state.c_str(), W_OK) != 0) {
    return cannot("write in", home.state, errno, "choose another place with --state DIR");
  }
  for (const auto& [path, mode] :
       {std::pair(home.store(), mode_t{0700}), std::pair(home.spool(), open),
        std::pair(home.state + "/log", open)}) {
    if (auto made = make_directory(path, mode); !made) return pass(std::move(made.error()));
  }
  home.state = absolute(home.state);
  home.run = net::run_directory(home.conf());
  return home;
}

Result<Fd> lock_home(const ClusterHome& home) {
  const std::string path = home.state + "/lock";
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return cannot("write", path, errno);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Code::io,
                fmt::format("another berth up or berth down is at work in {}", home.state));
  }
  return file;
}

Result<void> replace_file(const std::string& path, std::string_view text) {
  const std::string draft = path + ".new";
  Fd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return cannot("write", draft, errno);
  ::fchmod(file.get(), 0644);
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t n = ::write(file.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot("write", draft, errno);
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(file.get()) != 0) return cannot("write", draft, errno);
  if (::rename(draft.c_str(), path.c_str()) != 0) return cannot("write", path, errno);
  return {};
}

}  // namespace berth::command
