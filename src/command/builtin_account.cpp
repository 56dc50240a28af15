#include "command/builtin_account.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <set>

namespace berth::command {
namespace {

// People, not services: UID_MIN and UID_MAX of login.defs as distributions set them.
constexpr uid_t kFirstPerson = 1000;
constexpr uid_t kLastPerson = 60000;

/// The file itself: the name service needs modules that a static program cannot count on.
template <class Take>
void each_local_user(Take&& take) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/etc/passwd", "re"), std::fclose);
  if (!file) return;
  while (const passwd* user = ::fgetpwent(file.get())) take(*user);
}

}  // namespace

std::string own_user_name(const request::Environment& environment) {
  std::string name;
  each_local_user([&](const passwd& user) {
    if (name.empty() && user.pw_uid == ::geteuid()) name = user.pw_name;
  });
  if (!name.empty()) return name;
  const auto named = environment.find("USER");
  return named != environment.end() ? named->second : std::to_string(::geteuid());
}

std::vector<std::string> account_members(const std::string& self) {
  std::set<std::string> members = {self};
  each_local_user([&](const passwd& user) {
    const bool person = user.pw_uid >= kFirstPerson && user.pw_uid <= kLastPerson;
    if (user.pw_uid == 0 || person) members.insert(user.pw_name);
  });
  return {members.begin(), members.end()};
}

}  // namespace berth::command
