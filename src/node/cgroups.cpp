// What cgroups.h promises.
#include "node/cgroups.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "cgroup/hierarchies.h"
#include "cgroup/kernel.h"
#include "cgroup/tree.h"
#include "net/paths.h"
#include "step/container.h"

namespace berth::node {
namespace {

constexpr const char* kOwner = "user.berth.spool";

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

bool make_directory(const std::string& path) {
  return ::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST;
}

std::string owner_of(const std::string& path) {
  char spool[4096];
  const ssize_t n = ::getxattr(path.c_str(), kOwner, spool, sizeof spool);
  return n > 0 ? std::string(spool, static_cast<std::size_t>(n)) : std::string();
}

/// With what is in it, unless there are processes: whoever they belong to, they are not ours.
bool remove_empty(const std::string& path) {
  for (const std::string& name : cgroup::this_kernel().directories(path)) {
    if (!remove_empty(path + '/' + name)) return false;
  }
  return ::rmdir(path.c_str()) == 0;
}

/// The directory is this agent's from now on: several agents may share a machine, and each ends
/// what it finds in its own. One whose owner's spool is gone has no owner.
bool claim(const std::string& path, const std::string& spool) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!make_directory(path)) return false;
    if (::setxattr(path.c_str(), kOwner, spool.data(), spool.size(), XATTR_CREATE) == 0)
      return true;
    if (errno != EEXIST) return false;
    const std::string owner = owner_of(path);
    if (owner == spool) return true;
    if (::access(owner.c_str(), F_OK) == 0 || !remove_empty(path)) return false;
  }
  return false;
}

}  // namespace

Cgroups Cgroups::find(const Wish& wish, std::string& why_not) {
  Cgroups groups;
  const cgroup::Hierarchies here = cgroup::hierarchies_here();
  const auto own = own_group();
  const std::string key = net::run_key(wish.spool);
  if (here.v2.empty() || !own) {
    why_not = "there is no cgroup v2 hierarchy";
    const bool ours = here.v1.empty() || claim(here.v1.begin()->second + "/slurm", wish.spool);
    if (!ours) groups.v1_name_ = "slurm_" + key;
    return groups;
  }
  std::string base;
  if (wish.whole_machine) {
    const std::string slice = fmt::format("{}/{}", here.v2, wish.slice);
    base = slice + "/slurmstepd.scope";
    if (!make_directory(slice) || !claim(base, wish.spool)) {
      base = fmt::format("{}/slurmstepd.{}.scope", slice, key);
      groups.v1_name_ = "slurm_" + key;
    }
  } else {
    base = fmt::format("{}{}/berth.{}", here.v2, *own == "/" ? "" : *own, key);
    groups.v1_name_ = "slurm_" + key;
  }
  const std::string trial = base + "/trial";
  if (!make_directory(base) || !make_directory(trial) || ::rmdir(trial.c_str()) != 0) {
    why_not = fmt::format("no cgroup can be made in {}: {}", base, std::strerror(errno));
    return groups;
  }
  groups.base_ = base;
  groups.by_job_ = wish.by_job;
  return groups;
}

std::string Cgroups::name_of(const std::string& node, const step::StepKey& key) const {
  if (by_job_) return fmt::format("job_{}/step_{}", key.job, step::step_name(key.step));
  return fmt::format("{}.{}.{}.{}", node, key.job, key.attempt, key.step);
}

std::string Cgroups::name_of(const std::string& node, std::uint32_t job, std::uint32_t attempt,
                             const std::string& name) const {
  if (by_job_) return fmt::format("job_{}/step_{}", job, name);
  return fmt::format("{}.{}.{}.{}", node, job, attempt, name);
}

std::string Cgroups::make(const std::string& name) const {
  if (!usable()) return {};
  std::string path = path_of(name);
  if (::mkdir(path.c_str(), 0755) == 0) return path;
  if (errno == ENOENT) {
    // The first of its job, or somebody tidied up the empty base.
    for (std::size_t at = base_.size(); at < path.size(); at = path.find('/', at + 1)) {
      if (!make_directory(path.substr(0, at))) return {};
    }
    if (::mkdir(path.c_str(), 0755) == 0) return path;
  }
  // Left over from an attempt that never started: empty, but it may have been killed.
  if (errno == EEXIST && step::clear_cgroup(path) && ::mkdir(path.c_str(), 0755) == 0) return path;
  return {};
}

std::vector<std::string> Cgroups::names() const {
  if (!usable()) return {};
  cgroup::Kernel& kernel = cgroup::this_kernel();
  std::vector<std::string> names = kernel.directories(base_);
  if (!by_job_) return names;
  std::vector<std::string> found;
  for (const std::string& job : names) {
    const std::vector<std::string> steps = kernel.directories(path_of(job));
    for (const std::string& step : steps) found.push_back(fmt::format("{}/{}", job, step));
    if (steps.empty()) ::rmdir(path_of(job).c_str());
  }
  return found;
}

std::optional<std::uint32_t> Cgroups::foreign_in(const std::string& name) const {
  const std::size_t slash = name.find('/');
  if (!by_job_ || slash == std::string::npos || !name.starts_with("job_")) return std::nullopt;
  if (name.compare(slash + 1, 5, "step_") == 0) return std::nullopt;
  std::uint32_t job = 0;
  const auto [end, wrong] = std::from_chars(name.data() + 4, name.data() + slash, job);
  if (wrong != std::errc() || end != name.data() + slash) return std::nullopt;
  return job;
}

bool Cgroups::tidy(const std::string& path) const {
  if (!by_job_ || !path.starts_with(base_)) return true;
  return cgroup::remove_job_group(cgroup::this_kernel(), path.substr(0, path.rfind('/')));
}

void Cgroups::leave() const {
  if (!usable()) return;
  // Where no systemd made it, the slice is empty as well now.
  if (::rmdir(base_.c_str()) == 0 && base_.ends_with(".scope"))
    ::rmdir(base_.substr(0, base_.rfind('/')).c_str());
}

}  // namespace berth::node
