// Who sent a request. Filled from the socket (peer credentials) or from a munge credential, never
// from the message.
#pragma once

#include <cstdint>

namespace berth::controller {

struct Caller {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  bool admin = false;  // root, SlurmUser or the user that runs the controller: may do all
  bool local = true;   // came through the unix socket

  /// May this caller act on what belongs to `owner`?
  [[nodiscard]] bool may_touch(std::uint32_t owner) const { return admin || uid == owner; }
};

}  // namespace berth::controller
