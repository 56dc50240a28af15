// Which cgroup file systems this machine has mounted, and by which of them each thing that is to be
// limited can be.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cgroup {

struct Hierarchies {
  std::string v2;                         // where v2 is mounted; "" = nowhere
  std::set<std::string> v2_controllers;   // that it has: a v2 beside v1 has few or none
  std::map<std::string, std::string> v1;  // controller → where it is mounted
};

/// From the text of /proc/self/mountinfo; v2_controllers are not in it.
Hierarchies read_mounts(std::string_view mountinfo);
Hierarchies hierarchies_here();

enum class Version { none, v1, v2 };
/// CgroupPlugin=.
enum class Plugin { autodetect, v1, v2, disabled };
Plugin plugin_named(std::string_view name);

/// What is to be limited.
struct Wants {
  bool devices = false;
  bool memory = false;
  bool cores = false;
  bool processes = false;
  [[nodiscard]] bool any() const { return devices || memory || cores || processes; }
};
/// By which means. Devices by v2 is a program, which needs no controller.
struct Means {
  Version devices = Version::none;
  Version memory = Version::none;
  Version cores = Version::none;
  Version processes = Version::none;
  friend bool operator==(const Means&, const Means&) = default;
};

/// Says of each thing that cannot be limited what was asked and what is there.
Means choose_means(const Hierarchies& here, Plugin plugin, const Wants& wants,
                   std::vector<std::string>& missing);

}  // namespace berth::cgroup
