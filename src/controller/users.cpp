#include "controller/users.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "text/number.h"

namespace berth::controller {
namespace {

constexpr std::size_t kMostBuffer = std::size_t{1} << 20;
constexpr int kMostGroups = 65536;

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// So long an answer is new; so often the older ones are looked up again. Somebody who is nobody is
/// asked for again by the first who names him.
constexpr std::int64_t kKeptSeconds = 60;
constexpr std::chrono::seconds kBetweenRenewals{300};
/// Beyond this what is kept of nobody is thrown away first, and then all.
constexpr std::size_t kMostNobodies = 10'000;
constexpr std::size_t kMostKept = 100'000;

enum class Found { yes, no, failed };

/// Calls a *_r function of the name service with a buffer that grows until it is large enough.
template <class Entry, class Call>
Found look_up_entry(Entry& entry, std::vector<char>& buffer, Call&& call) {
  for (buffer.resize(4096); buffer.size() <= kMostBuffer; buffer.resize(buffer.size() * 2)) {
    Entry* found = nullptr;
    const int error = call(&entry, buffer.data(), buffer.size(), &found);
    if (error == ERANGE) continue;
    if (error == 0 && found != nullptr) return Found::yes;
    // What services say of somebody whom they do not know.
    const bool nobody =
        error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM;
    return nobody ? Found::no : Found::failed;
  }
  return Found::failed;
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

bool is_number(const std::string& name) {
  return text::parse_number(name, UINT32_MAX - 1).has_value();
}

}  // namespace

Users::~Users() {
  stop();
}

void Users::stop() {
  std::deque<Task> left;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    left.swap(tasks_);
  }
  arrived_.notify_all();
  if (thread_.joinable()) thread_.join();
}

auto Users::look_up_group(std::uint32_t gid) -> Answer<std::optional<std::string>> {
  group entry{};
  std::vector<char> buffer;
  const Found found = look_up_entry(
      entry, buffer, [&](auto... rest) { return ::getgrgid_r(static_cast<gid_t>(gid), rest...); });
  if (found != Found::yes) return {std::nullopt, found == Found::failed};
  return {entry.gr_name};
}

auto Users::look_up_user(std::uint32_t uid) -> Answer<std::optional<User>> {
  passwd entry{};
  std::vector<char> buffer;
  const Found found = look_up_entry(
      entry, buffer, [&](auto... rest) { return ::getpwuid_r(static_cast<uid_t>(uid), rest...); });
  if (found != Found::yes) return {std::nullopt, found == Found::failed};
  User user;
  user.uid = uid;
  user.gid = entry.pw_gid;
  user.name = entry.pw_name;
  user.home = entry.pw_dir;
  user.shell = entry.pw_shell;
  user.group = look_up_group(user.gid).value.value_or(std::to_string(user.gid));
  user.groups = look_up_groups(entry.pw_name, entry.pw_gid);
  return {std::move(user)};
}

auto Users::look_up_uid(const std::string& name) -> Answer<std::optional<std::uint32_t>> {
  passwd entry{};
  std::vector<char> buffer;
  const Found found = look_up_entry(
      entry, buffer, [&](auto... rest) { return ::getpwnam_r(name.c_str(), rest...); });
  if (found != Found::yes) return {std::nullopt, found == Found::failed};
  return {entry.pw_uid};
}

template <class K, class V>
const std::optional<V>* Users::known(const Table<K, std::optional<V>>& kept, const K& key,
                                     std::int64_t now) {
  const auto found = kept.find(key);
  if (found == kept.end()) return nullptr;
  // What is somebody's is renewed by the thread, and good until then.
  return found->second.value || found->second.until > now ? &found->second.value : nullptr;
}

template <class K, class V>
void Users::keep(Table<K, std::optional<V>>& kept, const K& key, Answer<std::optional<V>> answer) {
  const std::lock_guard lock(mutex_);
  if (kept.size() >= kMostNobodies && !kept.contains(key)) {
    std::erase_if(kept, [](const auto& entry) { return !entry.second.value; });
    if (kept.size() >= kMostKept) kept.clear();
  }
  Kept<std::optional<V>>& entry = kept[key];
  entry.until = seconds_now() + kKeptSeconds;
  if (!answer.failed) entry.value = std::move(answer.value);
}

template <class K, class V, class F>
std::optional<V> Users::remembered(Table<K, std::optional<V>>& kept, const K& key, F look) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto* value = known(kept, key, seconds_now())) return *value;
  }
  auto answer = look(key);  // not under the lock: it may ask another machine
  std::optional<V> value = answer.value;
  keep(kept, key, std::move(answer));
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
  return remembered(groups_, gid, look_up_group).value_or(std::to_string(gid));
}

std::optional<std::uint32_t> Users::gid_of(const std::string& name) {
  group entry{};
  std::vector<char> buffer;
  const Found found = look_up_entry(
      entry, buffer, [&](auto... rest) { return ::getgrnam_r(name.c_str(), rest...); });
  if (found != Found::yes) return std::nullopt;
  return entry.gr_gid;
}

bool Users::is_known(const Wanted& wanted) const {
  const std::int64_t now = seconds_now();
  for (const std::uint32_t uid : wanted.uids) {
    if (known(users_, uid, now) == nullptr) return false;
  }
  for (const std::string& name : wanted.names) {
    const auto* uid = known(uids_, name, now);
    if (uid == nullptr) return false;
    if (*uid && known(users_, **uid, now) == nullptr) return false;
    if (!*uid && !is_number(name)) return true;
  }
  return true;
}

void Users::look_up(const Wanted& wanted) {
  for (const std::uint32_t uid : wanted.uids) by_uid(uid);
  for (const std::string& name : wanted.names) {
    const auto uid = uid_of(name);
    if (uid) by_uid(*uid);
    if (!uid && !is_number(name)) return;
  }
}

void Users::prepare(Wanted wanted, std::move_only_function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    // Not before: a process that reads its configuration may fork yet.
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    if (!is_known(wanted)) {
      tasks_.push_back({std::move(wanted), std::move(then)});
      arrived_.notify_one();
      return;
    }
  }
  then();
}

template <class K, class V, class F>
void Users::renew(Table<K, std::optional<V>>& kept, F look) {
  std::vector<K> old;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = seconds_now();
    std::erase_if(
        kept, [&](const auto& entry) { return !entry.second.value && entry.second.until <= now; });
    for (const auto& [key, entry] : kept) {
      if (entry.until <= now) old.push_back(key);
    }
  }
  for (const K& key : old) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ || !tasks_.empty()) return;  // the others have time
    }
    keep(kept, key, look(key));
  }
}

void Users::work() {
  auto next = std::chrono::steady_clock::now() + kBetweenRenewals;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!tasks_.empty()) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      look_up(task.wanted);
      task.then();
      lock.lock();
      continue;
    }
    if (std::chrono::steady_clock::now() >= next) {
      lock.unlock();
      renew(users_, look_up_user);
      renew(uids_, look_up_uid);
      renew(groups_, look_up_group);
      lock.lock();
      // Where requests came between, the rest follows at once.
      if (tasks_.empty()) next = std::chrono::steady_clock::now() + kBetweenRenewals;
      continue;
    }
    arrived_.wait_until(lock, next, [&] { return stopping_ || !tasks_.empty(); });
  }
}

}  // namespace berth::controller
