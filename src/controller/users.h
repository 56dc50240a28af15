// Users as the name service of this machine knows them. Answers are kept for a minute: looking up a
// user may ask a directory over the network, and the state thread must not wait for that twice.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/launch.h"

namespace berth::controller {

using User = job::User;

class Users {
 public:
  /// Any thread may call these.
  std::optional<User> by_uid(std::uint32_t uid);
  std::optional<std::uint32_t> uid_of(const std::string& name);
  /// The name, or the number where it has none.
  std::string name_of(std::uint32_t uid);
  std::string group_name(std::uint32_t gid);
  std::optional<std::uint32_t> gid_of(const std::string& name);

 private:
  static constexpr std::size_t kMost = 10'000;
  static constexpr std::int64_t kKeptSeconds = 60;
  template <class V>
  struct Kept {
    V value;
    std::int64_t until = 0;
  };
  template <class K, class V, class F>
  V remembered(std::map<K, Kept<V>>& kept, const K& key, F&& look);

  std::mutex mutex_;
  std::map<std::uint32_t, Kept<std::optional<User>>> users_;
  std::map<std::string, Kept<std::optional<std::uint32_t>>> uids_;
  std::map<std::uint32_t, Kept<std::string>> groups_;
};

}  // namespace berth::controller
