// Pretended nodes have names and addresses like real ones: each an address of its own in 127/8,
// which what runs there finds by name in its /etc/hosts, and its name is what `hostname` says
// there.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"

namespace berth::node {

/// 127.77.0.1 for the first, and so on: all of 127/8 is this machine.
std::string pretended_address(std::size_t index);
/// The machine's own file, and a line for each node.
std::string hosts_text(const std::string& machine, const std::vector<std::string>& nodes);

/// Made once: a mount namespace in which a file of ours lies on /etc/hosts. Supervisors enter it;
/// for each to make its own would cost milliseconds when it goes.
class PretendedNames {
 public:
  /// In /, nothing is changed for anybody else. `why_not`: names stay unknown.
  static PretendedNames make(const std::string& file, std::string& why_not);
  /// May be called again, whatever runs.
  static bool write(const std::string& file, const std::vector<std::string>& nodes);

  /// -1 = none. Without root the mount namespace belongs to a user namespace, entered first.
  [[nodiscard]] int mounts() const { return mounts_.get(); }
  [[nodiscard]] int users() const { return users_.get(); }

 private:
  Fd mounts_;
  Fd users_;
};

}  // namespace berth::node
