// What cgroups.h promises.
#include "node/cgroups.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "net/paths.h"
#include "step/container.h"
#include "step/spool.h"

namespace berth::node {
namespace {

/// "0::/path": where this process is in the v2 hierarchy.
std::optional<std::string> own_group() {
  const auto text = step::read_file("/proc/self/cgroup");
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    if (line.starts_with("0::")) return std::string(line.substr(3));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::nullopt;
}

/// Pure v2, or an empty v2 hierarchy beside the controllers of v1.
std::optional<std::string> mount_point() {
  for (const char* path : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    if (::access((std::string(path) + "/cgroup.procs").c_str(), F_OK) == 0 &&
        ::access((std::string(path) + "/cgroup.controllers").c_str(), F_OK) == 0) {
      return path;
    }
  }
  return std::nullopt;
}

}  // namespace

Cgroups Cgroups::find(std::string_view spool, std::string& why_not) {
  Cgroups groups;
  const auto mount = mount_point();
  const auto own = own_group();
  if (!mount || !own) {
    why_not = "there is no cgroup v2 hierarchy";
    return groups;
  }
  const std::string base = fmt::format("{}{}/berth.{}", *mount, *own == "/" ? "" : *own,
                                       net::run_key(std::string(spool)));
  if (::mkdir(base.c_str(), 0755) != 0 && errno != EEXIST) {
    why_not = fmt::format("no cgroup can be made in {}{}: {}", *mount, *own, std::strerror(errno));
    return groups;
  }
  const std::string trial = base + "/trial";
  if ((::mkdir(trial.c_str(), 0755) != 0 && errno != EEXIST) || ::rmdir(trial.c_str()) != 0) {
    why_not = fmt::format("no cgroup can be made in {}: {}", base, std::strerror(errno));
    return groups;
  }
  groups.base_ = base;
  return groups;
}

std::string Cgroups::make(const std::string& name) const {
  if (!usable()) return {};
  std::string path = path_of(name);
  if (::mkdir(path.c_str(), 0755) == 0) return path;
  // Somebody tidied up the empty base.
  if (errno == ENOENT && ::mkdir(base_.c_str(), 0755) == 0 && ::mkdir(path.c_str(), 0755) == 0) {
    return path;
  }
  // Left over from an attempt that never started: empty, but it may have been killed.
  if (errno == EEXIST && step::clear_cgroup(path) && ::mkdir(path.c_str(), 0755) == 0) return path;
  return {};
}

std::vector<std::string> Cgroups::names() const {
  std::vector<std::string> found;
  DIR* folder = usable() ? ::opendir(base_.c_str()) : nullptr;
  if (folder == nullptr) return found;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') found.emplace_back(entry->d_name);
  }
  ::closedir(folder);
  return found;
}

void Cgroups::leave() const {
  if (usable()) ::rmdir(base_.c_str());
}

}  // namespace berth::node
