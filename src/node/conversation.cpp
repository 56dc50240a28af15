// What conversation.h promises.
#include "node/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace berth::node {
namespace {

constexpr std::chrono::milliseconds kFirstDelay{50};
constexpr std::chrono::milliseconds kLongestDelay{2000};
/// For the answer to a registration: a controller to which a whole cluster comes at once has much
/// to do.
constexpr std::chrono::seconds kRegistrationPatience{60};
/// So many beats without a word, and the controller is taken for lost (job::silent_seconds).
constexpr std::uint32_t kMostUnanswered = 2;

template <class M>
ControllerClock::Told time_in(const M& message) {
  return {.even_time = message.even_time(), .adopted = message.clock_adopted()};
}

}  // namespace

wire::Beat Conversation::make_beat(std::uint64_t number, bool ask) {
  wire::Beat beat;
  beat.set_number(number);
  beat.set_ask(ask);
  beat.set_clock_ahead_seconds(handlers_.clock_ahead());
  line_.describe_load(beat);
  return beat;
}

void Conversation::connected() {
  connected_ = true;
  registration_ = ++questions_;
  handlers_.asked(registration_);
  line_.send(wire::framed(handlers_.registration()));
  line_.set(Timer::beat, kRegistrationPatience);
}

void Conversation::rang(Timer timer) {
  if (timer == Timer::dial) return line_.dial();
  if (!registered_) return register_anew("it does not answer the registration");
  beat();
}

void Conversation::take(const wire::Frame& frame) {
  unanswered_ = 0;
  if (frame.kind == wire::Kind::Registered) {
    const auto message = wire::decode<wire::Registered>(frame.payload);
    if (!message) return;
    registered_ = true;
    if (const auto told = message->config().beat_seconds(); told > 0) {
      between_beats_ = std::chrono::seconds(told);
    }
    // The controller also sends it when its configuration has changed.
    const std::uint64_t asked = std::exchange(registration_, 0);
    if (asked != 0) handlers_.told_time(asked, time_in(*message));
    beat();
    if (!handlers_.registered(*message)) return;  // it may close: that is no reason to hurry
    if (asked != 0) handlers_.answered(asked);
    said_lost_ = false;
    refused_.clear();
    delay_ = kFirstDelay;
    return;
  }
  if (frame.kind == wire::Kind::Beat) {
    const auto message = wire::decode<wire::Beat>(frame.payload);
    if (!message) return;
    if (message->ask()) {
      line_.send(wire::framed(make_beat(message->number(), false)));
    } else if (message->leases_rest_seconds() > 0) {
      handlers_.leases_rest(std::chrono::seconds(message->leases_rest_seconds()));
    } else {
      handlers_.told_time(message->number(), time_in(*message));
      handlers_.answered(message->number());
    }
    return;
  }
  if (frame.kind == wire::Kind::Done) {
    const auto done = wire::decode<wire::Done>(frame.payload);
    if (!done || !done->has_refusal()) return;
    std::string refused = done->refusal().SerializeAsString();
    // It comes again and again.
    if (std::exchange(refused_, refused) != refused) line_.log_refused(done->refusal());
    return;
  }
  if (registered_) handlers_.frame(frame);
}

void Conversation::beat() {
  if (unanswered_ >= kMostUnanswered) {
    const auto silent = between_beats_ * kMostUnanswered;
    return register_anew(fmt::format("it has said nothing for {} s", silent.count()));
  }
  ++unanswered_;
  handlers_.asked(++questions_);
  line_.send(wire::framed(make_beat(questions_, true)));
  line_.set(Timer::beat, between_beats_);
}

void Conversation::register_anew(std::string_view why) {
  if (!connected_) return;  // it is being dialled
  line_.hang_up();
  lost(why);
}

void Conversation::lost(std::string_view why) {
  connected_ = false;
  registered_ = false;
  registration_ = 0;
  unanswered_ = 0;
  handlers_.lost();
  line_.cancel(Timer::beat);
  if (!std::exchange(said_lost_, true)) line_.log_lost(why);
  // Many agents lose a controller at once; they must not all come back in the same moment.
  line_.set(Timer::dial, delay_ + line_.any_up_to(delay_ / 2));
  delay_ = std::min(delay_ * 2, kLongestDelay);
}

}  // namespace berth::node
