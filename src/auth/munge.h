// Credentials for TCP: the first frame each way is Hello.
//
//   client:     client.send(*auth::make_hello("srun"));
//               auto frame = client.receive(…); auto hello =
//               wire::decode<wire::Hello>(frame->payload); auto server = auth::check_hello(*hello);
//               // must be root, SlurmUser or the agent's uid
//   controller: auth::HelloChecker checker;                   // a thread, since munged may be slow
//               checker.check(hello, [&loop, weak](Result<auth::Caller> who) { loop.post(…); });
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "auth/caller.h"
#include "base/result.h"
#include "wire/basic.pb.h"

namespace berth::auth {

/// A Hello with a fresh credential of this process. Code::no_credential when munged does not
/// answer. libmunge gives up by itself after a few seconds.
Result<wire::Hello> make_hello(const std::string& program);
/// Who made it. Another protocol number is an error that names both.
Result<Caller> check_hello(const wire::Hello& hello);

/// check_hello() in a thread of its own, one after the other.
class HelloChecker {
 public:
  using Done = std::move_only_function<void(Result<Caller>)>;
  HelloChecker();
  /// Those not checked yet are dropped, their `done` is not called.
  ~HelloChecker();
  HelloChecker(const HelloChecker&) = delete;
  HelloChecker& operator=(const HelloChecker&) = delete;

  /// `done` is called in the checker's thread: post it to the loop. With more than kMostWaiting
  /// waiting it is called at once, with an error.
  void check(wire::Hello hello, Done done);
  static constexpr std::size_t kMostWaiting = 4096;

 private:
  struct Item {
    wire::Hello hello;
    Done done;
  };
  void work();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace berth::auth
