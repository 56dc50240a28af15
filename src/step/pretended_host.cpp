// What pretended_host.h promises.
#include "step/pretended_host.h"

#include <sched.h>
#include <unistd.h>

#include "base/fd.h"

namespace berth::step {

bool become_pretended_host(const std::string& node, bool own_users) {
  const Fd names(kNamesDescriptor);
  const Fd users(own_users ? kUsersDescriptor : -1);
  if (users && ::setns(users.get(), CLONE_NEWUSER) != 0) return false;
  if (::setns(names.get(), CLONE_NEWNS) != 0) return false;
  return ::unshare(CLONE_NEWUTS) == 0 && ::sethostname(node.data(), node.size()) == 0;
}

}  // namespace berth::step
