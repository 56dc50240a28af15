// Quota (quota.h) at the connections of a daemon: counts them, stops reading where a user holds too
// much, drops who does not finish in time, and says why (Done). Of the loop's thread.
//
//   auto visit = door.enter(connection, {.uid = uid, .free = privileged}, on_evicted);
//   if (!visit) return;                        // refused, told why, closed
//   connection->start({.on_frame = …, .on_partial = [visit](auto& c, auto held, auto frame) {
//     visit->partial(c, held, frame); }});
//
// A visit ends with its last shared_ptr: keep it in the handlers of the connection, which go when
// that is closed or given away.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "net/connection.h"
#include "net/loop.h"
#include "net/quota.h"

namespace berth::net {

class Visit;

class Door {
 public:
  Door(Loop& loop, QuotaLimits limits);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  struct Who {
    std::uint32_t uid = 0;
    bool free = false;
    std::string certificate = {};  // of a node; "" = it is a user
  };
  /// The visitor has to go and was told why. Without one the connection is closed.
  using Evicted = std::function<void(const std::string& why)>;
  /// Null when it is turned away.
  std::shared_ptr<Visit> enter(const std::shared_ptr<Connection>& connection, Who who,
                               Evicted evicted = {});
  std::shared_ptr<Visit> enter_unknown(const std::shared_ptr<Connection>& connection,
                                       Evicted evicted = {});

  [[nodiscard]] const Quota& quota() const;

 private:
  friend class Visit;
  struct Core;
  std::shared_ptr<Core> core_;
};

class Visit {
 public:
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  /// A stranger has proved who he is; false when he is turned away after all. `connection`: the
  /// one that goes on, which may be another object than before.
  bool introduce(const std::shared_ptr<Connection>& connection, Door::Who who);
  /// Whether it has to ask for something all the time, or goes (a machine that has shown a
  /// certificate, and is no agent and no user yet).
  void must_ask(bool must);
  /// Whose connections, requests and bytes are counted together with its own.
  [[nodiscard]] Account account() const;

  /// For Handlers::on_partial.
  void partial(Connection& connection, std::size_t held, std::size_t frame_bytes);
  /// Bytes of whole frames that wait here.
  void queued(Connection& connection, std::size_t bytes);
  /// Nothing is to be read now: another connection of the same user holds too much.
  [[nodiscard]] bool stopped() const { return stopped_; }

  void heard();
  void keep();
  [[nodiscard]] std::chrono::nanoseconds wait_for_request();
  [[nodiscard]] bool may_work(std::size_t bytes) const;
  void begin_work(std::size_t bytes);
  void end_work();
  /// An answer of so many bytes waits to be taken; 0 = it was.
  void answering(std::size_t bytes);

 private:
  friend class Door;
  Visit(std::shared_ptr<Door::Core> core, Guest guest) : core_(std::move(core)), guest_(guest) {}
  void hold(Connection& connection);
  void go_on();
  void set_deadline();

  std::shared_ptr<Door::Core> core_;
  Guest guest_;
  std::size_t partial_ = 0;
  std::size_t queued_ = 0;
  std::size_t frame_bytes_ = 0;         // of the frame that was begun, as its head says
  std::optional<QuotaTime> frame_by_;   // the frame that was begun
  std::optional<QuotaTime> answer_by_;  // the answer that waits
  std::optional<QuotaTime> ask_by_;     // nothing is worked on, and it must ask
  std::size_t working_ = 0;             // requests that are worked on
  bool must_ask_ = false;
  bool known_ = false;
  bool stopped_ = false;
};

}  // namespace berth::net
