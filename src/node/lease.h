// How long the jobs of an agent may run without their controller. A job whose node is silent is
// started elsewhere when its lease is over; so it has to be over here before that.
//
// It counts from the sending of the last question (a registration or a beat) that was answered: the
// controller has heard the node then or later. There is no clock in here.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

namespace berth::node {

class Lease {
 public:
  /// Since the machine started, with the time it slept (base/boot_clock.h).
  using Moment = std::chrono::nanoseconds;
  using Seconds = std::chrono::seconds;

  Lease() = default;
  /// As an earlier agent of the same boot left it.
  explicit Lease(std::optional<Moment> from) : from_(from), answered_(from) {}

  /// A question leaves. Numbers grow.
  void sent(std::uint64_t number, Moment at);
  /// Its answer has come: leases count anew.
  void answered(std::uint64_t number);
  /// The connection broke: what was asked on it is never answered.
  void forget_questions() { questions_.clear(); }
  /// The controller is being stopped in order, and another one is to come: leases count on only
  /// after so long, or when that one answers.
  void rest(Seconds longest);

  /// A registration is about to leave: should it be heard, the controller counts from then on, even
  /// if this agent dies before it has the answer.
  void end_rest(Moment now);

  /// From when leases count; nullopt: no controller has ever answered, so nothing was begun either.
  [[nodiscard]] std::optional<Moment> from() const { return from_; }
  /// When what runs under such a lease has to be ended; nullopt: never.
  [[nodiscard]] std::optional<Moment> end_of(Seconds lease) const;

 private:
  std::optional<Moment> from_;
  std::optional<Moment> answered_;
  std::map<std::uint64_t, Moment> questions_;  // that were not answered yet
};

}  // namespace berth::node
