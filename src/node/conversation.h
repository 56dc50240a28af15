// How an agent keeps in touch with its controller: when it dials, registers, asks for a sign of
// life and gives a connection up. Without a socket and without a clock: uplink.h has both.
//
//   dial ─▶ connected: RegisterNodes ─▶ Registered ─▶ Beat … Beat ─▶ lost ─▶ dial, a little later
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "node/controller_clock.h"
#include "wire/agent.pb.h"
#include "wire/frame.h"

namespace berth::node {

class Conversation {
 public:
  struct Handlers {
    std::function<wire::RegisterNodes()> registration;
    /// True when the controller took one of the nodes.
    std::function<bool(const wire::Registered&)> registered;
    std::function<void(const wire::Frame&)> frame;
    /// Questions (registrations and beats) by their numbers, and their answers. A connection that
    /// is lost takes its questions along.
    std::function<void(std::uint64_t)> asked{};
    std::function<void(std::uint64_t)> answered{};
    /// What an answer says of the controller's time; before anything else is made of it.
    std::function<void(std::uint64_t, const ControllerClock::Told&)> told_time{};
    /// So far this machine's clock is ahead of the cluster's time; told with each beat.
    std::function<std::int64_t()> clock_ahead{};
    std::function<void()> lost{};
    /// The controller is being stopped in order; leases rest so long.
    std::function<void(std::chrono::seconds)> leases_rest{};
  };
  enum class Timer {
    dial,
    beat,  // before the registration is answered: the patience with that
  };

  /// A network, and a clock.
  class Line {
   public:
    Line() = default;
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;
    virtual ~Line() = default;

    /// connected() or lost() follows.
    virtual void dial() = 0;
    virtual void send(std::string frame) = 0;
    /// Nothing comes of this connection any more.
    virtual void hang_up() = 0;
    /// rang() is called after so long, instead of what was set before.
    virtual void set(Timer timer, std::chrono::milliseconds after) = 0;
    virtual void cancel(Timer timer) = 0;
    /// Any length up to that one.
    virtual std::chrono::milliseconds any_up_to(std::chrono::milliseconds most) = 0;
    /// How busy the machine is.
    virtual void describe_load(wire::Beat& beat) = 0;
    virtual void log_lost(std::string_view why) = 0;
    virtual void log_refused(const wire::Refusal& refusal) = 0;
  };

  Conversation(Line& line, Handlers handlers) : line_(line), handlers_(std::move(handlers)) {}

  void dial() { line_.dial(); }
  void connected();
  void take(const wire::Frame& frame);
  /// There is no connection, or not any more.
  void lost(std::string_view why);
  void rang(Timer timer);
  /// Closes the connection and dials again: all that is here is told in the registration.
  void register_anew(std::string_view why);
  /// Dropped when there is no registered connection: what must not be lost is told again after the
  /// next registration.
  template <class M>
  void send(const M& message) {
    if (registered_) line_.send(wire::framed(message));
  }
  [[nodiscard]] bool registered() const { return registered_; }

 private:
  void beat();
  [[nodiscard]] wire::Beat make_beat(std::uint64_t number, bool ask);

  Line& line_;
  Handlers handlers_;
  bool connected_ = false;
  bool registered_ = false;
  bool said_lost_ = false;
  std::string refused_;  // as it was logged last
  std::chrono::milliseconds delay_{50};
  std::chrono::seconds between_beats_{10};
  std::uint64_t questions_ = 0;
  std::uint64_t registration_ = 0;  // the question; 0 = it was answered
  std::uint32_t unanswered_ = 0;    // beats since the controller last said anything
};

}  // namespace berth::node
