// What uplink.h promises.
#include "node/uplink.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <random>

#include "step/spool.h"
#include "wire/refusal.h"

namespace berth::node {
namespace {

constexpr std::chrono::milliseconds kLongestDelay{2000};
constexpr std::chrono::seconds kDialPatience{5};
/// For the answer to a registration: a controller to which a whole cluster comes at once has much
/// to do.
constexpr std::chrono::seconds kRegistrationPatience{60};
/// So many beats without a word, and the controller is taken for lost (job::silent_seconds).
constexpr std::uint32_t kMostUnanswered = 2;

std::uint32_t free_memory_mb() {
  const auto text = step::read_file("/proc/meminfo");
  if (!text) return 0;
  const std::size_t at = text->find("MemAvailable:");
  if (at == std::string::npos) return 0;
  const std::size_t digit = text->find_first_of("0123456789", at);
  std::uint64_t kb = 0;
  if (digit != std::string::npos) {
    std::from_chars(text->data() + digit, text->data() + text->size(), kb);
  }
  return static_cast<std::uint32_t>(kb / 1024);
}

wire::Beat make_beat(std::uint64_t number, bool ask) {
  wire::Beat beat;
  beat.set_number(number);
  beat.set_ask(ask);
  beat.set_free_memory_mb(free_memory_mb());
  double load[1] = {0};
  if (::getloadavg(load, 1) == 1) beat.set_load(load[0]);
  return beat;
}

}  // namespace

Uplink::~Uplink() {
  loop_.cancel(beat_timer_);
  loop_.cancel(dial_timer_);
  if (connection_) connection_->abort();
}

void Uplink::dial() {
  net::Connection::dial(
      loop_, handlers_.where(), kDialPatience,
      [this](Result<std::shared_ptr<net::Connection>> result) { connected(std::move(result)); });
}

void Uplink::connected(Result<std::shared_ptr<net::Connection>> result) {
  if (!result) return lost(result.error().what());
  connection_ = std::move(*result);
  connection_->limit_frames(wire::kMostBytes);
  if (!connection_->is_unix()) {
    auto session = handlers_.session();
    if (!session) {
      connection_->abort();
      return lost(session.error().what());
    }
    // What is said before the controller is proven waits in the session.
    connection_->secure(std::move(*session));
  } else if (!handlers_.trusted(connection_->peer()->uid)) {
    connection_->abort();
    return lost("the socket is served by another user");
  }
  connection_->start(
      {.on_frame = [this](net::Connection&, const wire::Frame& frame) { take(frame); },
       .on_closed = [this](net::Connection&, std::string_view why) { lost(why); },
       .on_drained = {}});
  if (!connection_) return;
  registration_ = ++questions_;
  handlers_.asked(registration_);
  connection_->send(handlers_.registration());
  loop_.cancel(beat_timer_);
  beat_timer_ = loop_.after(kRegistrationPatience,
                            [this] { register_anew("it does not answer the registration"); });
}

void Uplink::take(const wire::Frame& frame) {
  unanswered_ = 0;
  if (frame.kind == wire::Kind::Registered) {
    const auto message = wire::decode<wire::Registered>(frame.payload);
    if (!message) return;
    registered_ = true;
    if (const auto told = message->config().beat_seconds(); told > 0) {
      between_beats_ = std::chrono::seconds(told);
    }
    loop_.cancel(beat_timer_);
    beat();
    // The controller also sends it when its configuration has changed.
    const std::uint64_t asked = std::exchange(registration_, 0);
    if (!handlers_.registered(*message)) return;  // it may close: that is no reason to hurry
    if (asked != 0) handlers_.answered(asked);
    said_lost_ = false;
    refused_.clear();
    delay_ = std::chrono::milliseconds(50);
    return;
  }
  if (frame.kind == wire::Kind::Beat) {
    const auto message = wire::decode<wire::Beat>(frame.payload);
    if (!message) return;
    if (message->ask()) {
      connection_->send(make_beat(message->number(), false));
    } else if (message->leases_rest_seconds() > 0) {
      handlers_.leases_rest(std::chrono::seconds(message->leases_rest_seconds()));
    } else {
      handlers_.answered(message->number());
    }
    return;
  }
  if (frame.kind == wire::Kind::Done) {
    const auto done = wire::decode<wire::Done>(frame.payload);
    if (!done || !done->has_refusal()) return;
    const Error why = wire::from_refusal(done->refusal());
    std::string words(why.what());
    if (!why.hint.empty()) words += "; " + why.hint;
    if (std::exchange(refused_, words) != words)
      log_.error("{}", words);  // it comes again and again
    return;
  }
  if (registered_) handlers_.frame(frame);
}

void Uplink::beat() {
  if (unanswered_ >= kMostUnanswered) {
    const auto silent = between_beats_ * kMostUnanswered;
    return register_anew(fmt::format("it has said nothing for {} s", silent.count()));
  }
  ++unanswered_;
  if (connection_ && registered_) {
    handlers_.asked(++questions_);
    connection_->send(make_beat(questions_, true));
  }
  beat_timer_ = loop_.after(between_beats_, [this] { beat(); });
}

void Uplink::register_anew(std::string_view why) {
  if (!connection_) return;  // it is being dialled
  connection_->abort();
  lost(why);
}

void Uplink::lost(std::string_view why) {
  connection_.reset();
  registered_ = false;
  registration_ = 0;
  unanswered_ = 0;
  handlers_.lost();
  loop_.cancel(beat_timer_);
  if (!std::exchange(said_lost_, true)) {
    log_.info("no controller at {}{}{}; trying again", handlers_.where().text(),
              why.empty() ? "" : ": ", why);
  }
  // Many agents lose a controller at once; they must not all come back in the same moment.
  static thread_local std::minstd_rand random(std::random_device{}());
  const auto spread =
      std::chrono::milliseconds(std::uniform_int_distribution<long>(0, delay_.count() / 2)(random));
  dial_timer_ = loop_.after(delay_ + spread, [this] { dial(); });
  delay_ = std::min(delay_ * 2, kLongestDelay);
}

}  // namespace berth::node
