// The connection to the controller: dialled, dialled again, registered, kept alive.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/address.h"
#include "net/connection.h"
#include "net/loop.h"
#include "node/log.h"
#include "tls/stream.h"
#include "wire/frame.h"

namespace berth::node {

class Uplink {
 public:
  struct Handlers {
    std::function<wire::RegisterNodes()> registration;
    /// True when the controller took one of the nodes.
    std::function<bool(const wire::Registered&)> registered;
    std::function<void(const wire::Frame&)> frame;
    /// May this user be the controller?
    std::function<bool(uid_t)> trusted;
    std::function<net::Address()> where;
    /// A TLS session in which this machine proves which nodes it is.
    std::function<Result<tls::Stream>()> session;
    /// Questions (registrations and beats) by their numbers, and their answers. A connection that
    /// is lost takes its questions along.
    std::function<void(std::uint64_t)> asked{};
    std::function<void(std::uint64_t)> answered{};
    std::function<void()> lost{};
    /// The controller is being stopped in order; leases rest so long.
    std::function<void(std::chrono::seconds)> leases_rest{};
  };

  Uplink(net::Loop& loop, Log& log, Handlers handlers)
      : loop_(loop), log_(log), handlers_(std::move(handlers)) {}
  /// The loop may outlive it: nobody calls back any more.
  ~Uplink();
  Uplink(const Uplink&) = delete;
  Uplink& operator=(const Uplink&) = delete;

  void dial();
  /// Closes the connection and dials again: all that is here is told in the registration.
  void register_anew(std::string_view why);
  /// Dropped when there is no registered connection: what must not be lost is told again after the
  /// next registration.
  template <class M>
  void send(const M& message) {
    if (registered_ && connection_) connection_->send(message);
  }
  [[nodiscard]] bool registered() const { return registered_; }

 private:
  void connected(Result<std::shared_ptr<net::Connection>> result);
  void take(const wire::Frame& frame);
  void lost(std::string_view why);
  void beat();

  net::Loop& loop_;
  Log& log_;
  Handlers handlers_;
  std::shared_ptr<net::Connection> connection_;
  bool registered_ = false;
  bool said_lost_ = false;
  std::string refused_;  // why, as the log has it already
  std::chrono::milliseconds delay_{50};
  net::TimerId beat_timer_ = net::TimerId::none;  // before the registration: until its answer
  net::TimerId dial_timer_ = net::TimerId::none;
  std::chrono::seconds between_beats_{10};
  std::uint64_t questions_ = 0;
  std::uint64_t registration_ = 0;  // the question; 0 = it was answered
  std::uint32_t unanswered_ = 0;    // beats since the controller last said anything
};

}  // namespace berth::node
