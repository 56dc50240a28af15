#include "net/paths.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/fd.h"

namespace berth::net {
namespace {

constexpr std::string_view kRootBase = "/run/berth";

std::string value_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string temporary_base(uid_t uid) {
  return fmt::format("/tmp/berth-{}", uid);
}

/// Whether `path` is a directory (not a link) of one of the two owners that no other may write to.
bool trusted(const std::string& path, uid_t uid) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         (status.st_uid == 0 || status.st_uid == uid) && (status.st_mode & 022) == 0;
}

std::vector<std::string> sockets(const std::string& conf_path, const Surroundings& who,
                                 std::string (*socket_in)(const std::string&)) {
  std::vector<std::string> bases{std::string(kRootBase)};
  if (who.uid != 0) {
    if (!who.runtime_directory.empty()) bases.push_back(who.runtime_directory + "/berth");
    bases.push_back(temporary_base(who.uid));
  }
  std::vector<std::string> found;
  for (const std::string& base : bases) {
    if (!trusted(base, who.uid)) continue;
    std::string path = socket_in(base + "/" + run_key(conf_path));
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
      found.push_back(std::move(path));
    }
  }
  return found;
}

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

}  // namespace

Surroundings Surroundings::here() {
  return {::geteuid(), value_of("XDG_RUNTIME_DIR"), value_of("XDG_STATE_HOME"), value_of("HOME")};
}

std::string run_key(const std::string& conf_path) {
  char real[PATH_MAX];
  const bool found = ::realpath(conf_path.c_str(), real) != nullptr;
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : found ? std::string_view(real) : std::string_view(conf_path)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

std::string run_base(const Surroundings& who) {
  if (who.uid == 0) return std::string(kRootBase);
  if (!who.runtime_directory.empty()) return who.runtime_directory + "/berth";
  return temporary_base(who.uid);
}

std::string run_directory(const std::string& conf_path, const Surroundings& who) {
  return run_base(who) + "/" + run_key(conf_path);
}

Result<void> make_private_directory(const std::string& path, mode_t mode, uid_t owner) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
    return fail(Code::io, fmt::format("cannot make {}: {}", path, std::strerror(errno)));
  }
  // Opened without following links and checked through the descriptor: what is checked is what is
  // used, also in /tmp where others could have put something of that name.
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) {
    return fail(Code::io, fmt::format("cannot use {}: {}", path, std::strerror(errno)));
  }
  struct stat status{};
  if (::fstat(directory.get(), &status) != 0) {
    return fail(Code::io, fmt::format("cannot use {}: {}", path, std::strerror(errno)));
  }
  if (status.st_uid != owner) {
    return fail(Code::io, fmt::format("{} belongs to uid {}, not {}", path, status.st_uid, owner),
                "it was made by someone else: remove it, or set XDG_RUNTIME_DIR");
  }
  if ((status.st_mode & 07777) != mode && ::fchmod(directory.get(), mode) != 0) {
    return fail(Code::io, fmt::format("cannot set the mode of {}: {}", path, std::strerror(errno)));
  }
  return {};
}

Result<std::string> make_run_directory(const std::string& conf_path, const Surroundings& who) {
  const mode_t mode = who.uid == 0 ? 0755 : 0700;
  const std::string run = run_directory(conf_path, who);
  for (const std::string& path : {run_base(who), run}) {
    if (auto made = make_private_directory(path, mode, who.uid); !made) {
      return pass(std::move(made.error()));
    }
  }
  return run;
}

Result<void> link_run_directory(const std::string& conf_path, const std::string& other_conf,
                                const Surroundings& who) {
  const std::string run = run_directory(conf_path, who);
  const std::string link = run_directory(other_conf, who);
  if (link == run) return {};
  if (auto gone = unlink_run_directory(other_conf, who); !gone) return gone;
  // A relative target: BASE may be seen under another path elsewhere.
  if (::symlink(run_key(conf_path).c_str(), link.c_str()) != 0) {
    return fail(Code::io, fmt::format("cannot make {}: {}", link, std::strerror(errno)));
  }
  return {};
}

Result<void> unlink_run_directory(const std::string& other_conf, const Surroundings& who) {
  const std::string link = run_directory(other_conf, who);
  struct stat status{};
  if (::lstat(link.c_str(), &status) != 0) return {};
  if (!S_ISLNK(status.st_mode)) {
    return fail(Code::io, fmt::format("{} is a run directory of its own", link),
                "a cluster was started with that slurm.conf itself");
  }
  if (::unlink(link.c_str()) != 0) {
    return fail(Code::io, fmt::format("cannot remove {}: {}", link, std::strerror(errno)));
  }
  return {};
}

std::vector<std::string> controller_sockets(const std::string& conf_path, const Surroundings& who) {
  return sockets(conf_path, who, controller_socket);
}

std::vector<std::string> node_sockets(const std::string& conf_path, const Surroundings& who) {
  return sockets(conf_path, who, node_socket);
}

std::string default_state_directory(const Surroundings& who) {
  if (who.uid == 0) return std::string(kRootStateDirectory);
  if (!who.state_home.empty()) return who.state_home + "/berth/default";
  return who.home + "/.local/state/berth/default";
}

std::string find_conf(const Surroundings& who) {
  if (std::string conf = value_of("SLURM_CONF"); !conf.empty()) return conf;
  if (const std::string cluster = value_of("BERTH_CLUSTER"); !cluster.empty()) {
    return cluster + "/slurm.conf";
  }
  const std::string candidates[] = {default_state_directory(who) + "/slurm.conf",
                                    std::string(kRootStateDirectory) + "/slurm.conf",
                                    "/etc/slurm/slurm.conf"};
  for (const std::string& path : candidates) {
    if (exists(path)) return path;
  }
  return {};
}

std::string authority_file(const std::string& conf_path) {
  const std::size_t slash = conf_path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : conf_path.substr(0, slash);
  return folder + "/berth-authority.pem";
}

}  // namespace berth::net
