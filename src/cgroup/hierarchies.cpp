// What hierarchies.h promises.
#include "cgroup/hierarchies.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cgroup/kernel.h"

namespace berth::cgroup {
namespace {

/// Up to the next separator, which is dropped.
std::string_view cut(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

/// Spaces and the like stand in mountinfo as \040.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](std::size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '7';
    };
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      out +=
          static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

void take_mount(std::string_view line, Hierarchies& out) {
  // "36 35 0:30 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory"
  const std::size_t dash = line.find(" - ");
  if (dash == line.npos) return;
  std::string_view before = line.substr(0, dash);
  std::string_view after = line.substr(dash + 3);
  for (int i = 0; i < 4; ++i) cut(before, ' ');
  const std::string where = unescaped(cut(before, ' '));
  const std::string_view kind = cut(after, ' ');
  if (where.empty()) return;
  if (kind == "cgroup2" && out.v2.empty()) out.v2 = where;
  if (kind != "cgroup") return;
  cut(after, ' ');
  while (!after.empty()) {
    const std::string_view option = cut(after, ',');
    if (option.empty() || option == "rw" || option == "ro" || option.find('=') != option.npos) {
      continue;
    }
    out.v1.emplace(std::string(option), where);
  }
}

std::string list_of(const Hierarchies& here) {
  std::string text;
  for (const auto& [name, where] : here.v1) text += (text.empty() ? "" : " ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace

Hierarchies read_mounts(std::string_view mountinfo) {
  Hierarchies out;
  while (!mountinfo.empty()) take_mount(cut(mountinfo, '\n'), out);
  return out;
}

Hierarchies hierarchies_here() {
  Kernel& kernel = this_kernel();
  Hierarchies out = read_mounts(kernel.read("/proc/self/mountinfo").value_or(""));
  if (out.v2.empty()) return out;
  const std::string names = kernel.read(out.v2 + "/cgroup.controllers").value_or("");
  std::string_view rest = names;
  while (!rest.empty()) {
    std::string_view word = cut(rest, ' ');
    if (word.ends_with('\n')) word.remove_suffix(1);
    if (!word.empty()) out.v2_controllers.emplace(word);
  }
  return out;
}

Plugin plugin_named(std::string_view name) {
  if (name == "cgroup/v1") return Plugin::v1;
  if (name == "cgroup/v2") return Plugin::v2;
  return name == "disabled" ? Plugin::disabled : Plugin::autodetect;
}

Means choose_means(const Hierarchies& here, Plugin plugin, const Wants& wants,
                   std::vector<std::string>& missing) {
  const bool may_v1 = plugin == Plugin::autodetect || plugin == Plugin::v1;
  const bool may_v2 = plugin == Plugin::autodetect || plugin == Plugin::v2;
  const std::string by = plugin == Plugin::v1   ? " by CgroupPlugin=cgroup/v1"
                         : plugin == Plugin::v2 ? " by CgroupPlugin=cgroup/v2"
                                                : "";
  const auto choose = [&](bool wanted, const char* key, const std::string& controller,
                          bool has_v2) {
    if (!wanted) return Version::none;
    if (may_v2 && has_v2) return Version::v2;
    if (may_v1 && here.v1.contains(controller)) return Version::v1;
    std::string there = here.v2.empty() ? "no cgroup v2" : "cgroup v2 at " + here.v2;
    if (!here.v2.empty() && controller != "devices") there += " without " + controller;
    missing.push_back(fmt::format("{} cannot be done{}: there is {}, and of cgroup v1: {}", key, by,
                                  there, list_of(here)));
    return Version::none;
  };
  Means out;
  out.devices = choose(wants.devices, "ConstrainDevices", "devices", !here.v2.empty());
  out.memory = choose(wants.memory, "ConstrainRAMSpace or ConstrainSwapSpace", "memory",
                      here.v2_controllers.contains("memory"));
  out.cores =
      choose(wants.cores, "ConstrainCores", "cpuset", here.v2_controllers.contains("cpuset"));
  out.processes = choose(wants.processes, "max_step_pids of SlurmdParameters", "pids",
                         here.v2_controllers.contains("pids"));
  return out;
}

}  // namespace berth::cgroup
