// Which step a process is part of.
#include <fmt/format.h>
#include <sys/stat.h>

#include "node/steps.h"
#include "text/words.h"

namespace berth::node {
namespace {

/// Of /proc/PID/cgroup: the path in the hierarchy of cgroup v2, "/system.slice/…/step_0".
std::string_view unified_path(std::string_view groups) {
  for (const std::string_view line : text::split(groups, '\n')) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return {};
}

/// The directory of a step, wherever the hierarchy is mounted, is that path or one above it.
bool is_within(std::string_view path, std::string_view directory) {
  for (; path.size() > 1; path = path.substr(0, path.rfind('/'))) {
    if (directory.ends_with(path)) return true;
  }
  return false;
}

}  // namespace

std::optional<NodeStep> Steps::owner(std::uint32_t pid) const {
  const std::string folder = fmt::format("/proc/{}", pid);
  const auto groups = step::read_file(folder + "/cgroup");
  if (!groups) return std::nullopt;
  const std::string_view path = unified_path(*groups);
  std::optional<std::string> variables;
  for (const auto& [at, step] : steps_) {
    if (step.result) continue;
    if (!step.cgroup.empty()) {
      if (is_within(path, step.cgroup)) return at;
      continue;
    }
    // Without a cgroup the mark in the environment is believed, of processes of the step's user:
    // a variable can be set by anybody.
    if (!variables) {
      const auto read = step::read_file(folder + "/environ");
      variables = '\0' + (read ? *read : std::string());
    }
    const std::string mark = fmt::format("{}BERTH_STEP={}{}", '\0', step.mark, '\0');
    if (variables->find(mark) == std::string::npos) continue;
    const auto spec = wire::decode<wire::StepSpec>(step.spec);
    struct stat process{};
    const bool own = ::stat(folder.c_str(), &process) == 0 && spec && spec->uid() == process.st_uid;
    return own ? std::optional(at) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace berth::node
