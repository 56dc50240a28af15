// A cgroup for each step, in the v2 hierarchy wherever it is mounted: for membership, killing and
// knowing that nothing is left. A directory is used once: what is born into a cgroup that was
// killed before is killed at birth.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::node {

class Cgroups {
 public:
  /// None: steps are kept together by other means.
  Cgroups() = default;
  /// Under this process's own cgroup, in a directory named after the spool. Says in `why_not` what
  /// stood in the way.
  static Cgroups find(std::string_view spool, std::string& why_not);

  [[nodiscard]] bool usable() const { return !base_.empty(); }
  /// A fresh one, "" when there is none to be had.
  [[nodiscard]] std::string make(const std::string& name) const;
  [[nodiscard]] std::string path_of(const std::string& name) const { return base_ + '/' + name; }
  /// Those that exist.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Removes the base when it is empty.
  void leave() const;

 private:
  std::string base_;
};

}  // namespace berth::node
