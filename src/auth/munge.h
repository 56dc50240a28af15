// How a user proves who he is over TCP: a munge credential in the Hello that follows the TLS
// handshake. It is made for one session with the controller (`binding`, tls/stream.h), so that
// whoever gets hold of it can do nothing with it. Daemons never make credentials.
//
//   command:    client.queue(*auth::make_hello("srun", binding));
//   controller: auth::HelloChecker checker;                   // a thread, since munged may be slow
//               checker.check(hello, binding, [&loop, weak](Result<auth::Caller> who) {
//               loop.post(…); });
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "auth/caller.h"
#include "base/result.h"
#include "wire/basic.pb.h"

namespace berth::auth {

/// A Hello with a fresh credential of this process. Code::no_credential when munged does not
/// answer. libmunge gives up by itself after a few seconds.
Result<wire::Hello> make_hello(const std::string& program, const std::string& binding);
/// Who made it, for this session.
Result<Caller> check_hello(const wire::Hello& hello, const std::string& binding);
/// Another protocol number is an error that names both.
Result<void> check_protocol(const wire::Hello& hello);
/// The purpose of the session's binding that credentials are made for.
inline constexpr std::string_view kCallerPurpose = "berth caller to controller";

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
  void check(wire::Hello hello, std::string binding, Done done);
  static constexpr std::size_t kMostWaiting = 4096;

 private:
  struct Item {
    wire::Hello hello;
    std::string binding;
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
