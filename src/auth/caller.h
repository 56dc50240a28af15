// Who calls: the kernel says so on unix sockets, munge on TCP (auth/munge.h).
//
//   auth::Caller caller = auth::Caller::of_unix(peer->uid, peer->gid, peer->pid);
//   if (!caller.is_operator(slurm_uid)) refuse;
#pragma once

#include <sys/types.h>

#include <string>

namespace berth::auth {

struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;             // 0 = not known (TCP)
  std::string host = {};     // "" on unix sockets
  std::string program = {};  // of Hello; what it says of itself, for logs only

  static Caller of_unix(uid_t uid, gid_t gid, pid_t pid) { return {uid, gid, pid, {}, {}}; }
  [[nodiscard]] bool is_root() const { return uid == 0; }
  /// root or SlurmUser.
  [[nodiscard]] bool is_operator(uid_t slurm_uid) const { return uid == 0 || uid == slurm_uid; }
};

}  // namespace berth::auth
