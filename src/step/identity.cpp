// What identity.h promises.
#include "step/identity.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace berth::step {
namespace {

bool take_ids(const Identity& who) {
  return ::setgroups(who.groups.size(), who.groups.data()) == 0 && ::setegid(who.gid) == 0 &&
         ::seteuid(who.uid) == 0;
}

}  // namespace

Root Root::now() {
  Root root{.gid = ::getegid(), .groups = {}};
  root.groups.resize(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  if (!root.groups.empty() &&
      ::getgroups(static_cast<int>(root.groups.size()), root.groups.data()) < 0) {
    std::abort();
  }
  return root;
}

void Root::give_back() const {
  if (::seteuid(0) != 0 || ::setegid(gid) != 0 || ::setgroups(groups.size(), groups.data()) != 0) {
    std::abort();
  }
}

Identity Identity::of(const wire::StepSpec& spec) {
  Identity who{.uid = spec.uid(), .gid = spec.gid(), .groups = {}};
  who.groups.assign(spec.groups().begin(), spec.groups().end());
  if (who.groups.empty()) who.groups.push_back(who.gid);
  return who;
}

std::string Identity::unreachable() const {
  if (::geteuid() == 0 || ::geteuid() == uid) return {};
  return fmt::format("this node runs as user {} and cannot start processes of user {}", ::geteuid(),
                     uid);
}

bool Identity::become() const {
  // While it may: with the rights of root, no user can go back.
  if (was_spared && !set_oom_score(0)) return false;
  if (::geteuid() == 0) {
    if (::setgroups(groups.size(), groups.data()) != 0) return false;
    if (::setresgid(gid, gid, gid) != 0) return false;
    if (::setresuid(uid, uid, uid) != 0) return false;
  }
  uid_t real = 0;
  uid_t effective = 0;
  uid_t saved = 0;
  return ::getresuid(&real, &effective, &saved) == 0 && real == uid && effective == uid &&
         saved == uid;
}

int Identity::try_on() const {
  if (::geteuid() != 0 || uid == 0) return 0;
  const Root root = Root::now();
  const int why = take_ids(*this) ? 0 : errno;
  root.give_back();
  return why;
}

ActingAs::ActingAs(const Identity& who) {
  if (::geteuid() != 0 || who.uid == 0) return;
  root_ = Root::now();
  if (!take_ids(who)) std::abort();
}

ActingAs::~ActingAs() {
  if (root_) root_->give_back();
}

}  // namespace berth::step
