#include "controller/users.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <chrono>

namespace berth::controller {
namespace {

constexpr std::size_t kMostBuffer = std::size_t{1} << 20;
constexpr int kMostGroups = 65536;

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Calls a *_r function of the name service with a buffer that grows until it is large enough.
template <class Entry, class Call>
bool look_up(Entry& entry, std::vector<char>& buffer, Call&& call) {
  for (buffer.resize(4096); buffer.size() <= kMostBuffer; buffer.resize(buffer.size() * 2)) {
    Entry* found = nullptr;
    const int error = call(&entry, buffer.data(), buffer.size(), &found);
    if (error == ERANGE) continue;
    return error == 0 && found != nullptr;
  }
  return false;
}

std::string look_up_group(std::uint32_t gid) {
  group entry{};
  std::vector<char> buffer;
  const bool known = look_up(
      entry, buffer, [&](auto... rest) { return ::getgrgid_r(static_cast<gid_t>(gid), rest...); });
  return known ? entry.gr_name : std::to_string(gid);
}

std::vector<std::uint32_t> look_up_groups(const char* name, gid_t gid) {
  std::vector<gid_t> gids(64);
  int count = static_cast<int>(gids.size());
  while (::getgrouplist(name, gid, gids.data(), &count) < 0) {
    if (count > kMostGroups) return {gid};
    gids.resize(std::max<std::size_t>(static_cast<std::size_t>(count), gids.size() * 2));
    count = static_cast<int>(gids.size());
  }
  return {gids.begin(), gids.begin() + count};
}

std::optional<User> look_up_user(std::uint32_t uid) {
  passwd entry{};
  std::vector<char> buffer;
  const bool known = look_up(
      entry, buffer, [&](auto... rest) { return ::getpwuid_r(static_cast<uid_t>(uid), rest...); });
  if (!known) return std::nullopt;
  User user;
  user.uid = uid;
  user.gid = entry.pw_gid;
  user.name = entry.pw_name;
  user.home = entry.pw_dir;
  user.shell = entry.pw_shell;
  user.group = look_up_group(user.gid);
  user.groups = look_up_groups(entry.pw_name, entry.pw_gid);
  return user;
}

std::optional<std::uint32_t> look_up_uid(const std::string& name) {
  passwd entry{};
  std::vector<char> buffer;
  const bool known =
      look_up(entry, buffer, [&](auto... rest) { return ::getpwnam_r(name.c_str(), rest...); });
  if (!known) return std::nullopt;
  return entry.pw_uid;
}

}  // namespace

template <class K, class V, class F>
V Users::remembered(std::map<K, Kept<V>>& kept, const K& key, F&& look) {
  const std::int64_t now = seconds_now();
  {
    const std::lock_guard lock(mutex_);
    const auto found = kept.find(key);
    if (found != kept.end() && found->second.until > now) return found->second.value;
  }
  V value = look(key);  // not under the lock: it may ask another machine
  const std::lock_guard lock(mutex_);
  if (kept.size() >= kMost) kept.clear();
  kept[key] = {value, now + kKeptSeconds};
  return value;
}

std::optional<User> Users::by_uid(std::uint32_t uid) {
  return remembered(users_, uid, look_up_user);
}

std::optional<std::uint32_t> Users::uid_of(const std::string& name) {
  return remembered(uids_, name, look_up_uid);
}

std::string Users::name_of(std::uint32_t uid) {
  const auto user = by_uid(uid);
  return user ? user->name : std::to_string(uid);
}

std::string Users::group_name(std::uint32_t gid) {
  return remembered(groups_, gid, look_up_group);
}

std::optional<std::uint32_t> Users::gid_of(const std::string& name) {
  group entry{};
  std::vector<char> buffer;
  const bool known =
      look_up(entry, buffer, [&](auto... rest) { return ::getgrnam_r(name.c_str(), rest...); });
  if (!known) return std::nullopt;
  return entry.gr_gid;
}

}  // namespace berth::controller
