// Users as the name service of this machine knows them. Asking it may take long (a directory on
// another machine), and the state thread must not wait for that: answers are kept and renewed by a
// thread of their own, and what a request needs is looked up before it reaches the state thread
// (prepare).
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "job/launch.h"

namespace berth::controller {

using User = job::User;

class Users {
 public:
  Users() = default;
  ~Users();
  Users(const Users&) = delete;
  Users& operator=(const Users&) = delete;

  /// Any thread may call these. They ask the name service for what is not known yet.
  std::optional<User> by_uid(std::uint32_t uid);
  std::optional<std::uint32_t> uid_of(const std::string& name);
  /// The name, or the number where it has none.
  std::string name_of(std::uint32_t uid);
  std::string group_name(std::uint32_t gid);
  std::optional<std::uint32_t> gid_of(const std::string& name);

  /// What somebody is going to ask for.
  struct Wanted {
    std::vector<std::uint32_t> uids = {};
    std::vector<std::string> names = {};
  };
  /// Calls `then` when all of it is known, up to the first name of nobody, which is also known
  /// then: at once, or in a thread that asks the name service.
  void prepare(Wanted wanted, std::move_only_function<void()> then);
  /// No `then` is called any more.
  void stop();

 private:
  template <class V>
  struct Kept {
    V value;
    std::int64_t until = 0;  // then it is looked up again
  };
  template <class K, class V>
  using Table = std::map<K, Kept<V>>;
  /// The answer of the name service; `failed`: it gave none.
  template <class V>
  struct Answer {
    V value;
    bool failed = false;
  };
  static Answer<std::optional<User>> look_up_user(std::uint32_t uid);
  static Answer<std::optional<std::uint32_t>> look_up_uid(const std::string& name);
  static Answer<std::optional<std::string>> look_up_group(std::uint32_t gid);

  template <class K, class V, class F>
  std::optional<V> remembered(Table<K, std::optional<V>>& kept, const K& key, F look);
  template <class K, class V>
  void keep(Table<K, std::optional<V>>& kept, const K& key, Answer<std::optional<V>> answer);
  /// Looks up again what was kept for long.
  template <class K, class V, class F>
  void renew(Table<K, std::optional<V>>& kept, F look);
  /// Of a table: the value when one is known, however old; what is known to be nobody's is none.
  template <class K, class V>
  static const std::optional<V>* known(const Table<K, std::optional<V>>& kept, const K& key,
                                       std::int64_t now);
  [[nodiscard]] bool is_known(const Wanted& wanted) const;
  void look_up(const Wanted& wanted);
  void work();

  mutable std::mutex mutex_;
  Table<std::uint32_t, std::optional<User>> users_;
  Table<std::string, std::optional<std::uint32_t>> uids_;
  Table<std::uint32_t, std::optional<std::string>> groups_;
  struct Task {
    Wanted wanted;
    std::move_only_function<void()> then;
  };
  std::deque<Task> tasks_;
  bool stopping_ = false;
  std::condition_variable arrived_;
  std::thread thread_;
};

}  // namespace berth::controller
