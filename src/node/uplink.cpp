// What uplink.h promises.
#include "node/uplink.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <charconv>
#include <random>

#include "step/spool.h"
#include "wire/refusal.h"

namespace berth::node {
namespace {

constexpr std::chrono::seconds kDialPatience{5};

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

}  // namespace

Uplink::~Uplink() {
  for (const net::TimerId id : timers_) loop_.cancel(id);
  if (connection_) connection_->abort();
}

void Uplink::dial() {
  net::Connection::dial(
      loop_, reach_.where(), kDialPatience,
      [this](Result<std::shared_ptr<net::Connection>> result) { connected(std::move(result)); });
}

void Uplink::connected(Result<std::shared_ptr<net::Connection>> result) {
  if (!result) return lost(result.error().what());
  connection_ = std::move(*result);
  connection_->limit_frames(wire::kMostBytes);
  if (!connection_->is_unix()) {
    auto session = reach_.session();
    if (!session) {
      connection_->abort();
      return lost(session.error().what());
    }
    // What is said before the controller is proven waits in the session.
    connection_->secure(std::move(*session));
  } else if (!reach_.trusted(connection_->peer()->uid)) {
    connection_->abort();
    return lost("the socket is served by another user");
  }
  connection_->start(
      {.on_frame = [this](net::Connection&, const wire::Frame& f) { conversation_.take(f); },
       .on_closed = [this](net::Connection&, std::string_view why) { lost(why); },
       .on_drained = {}});
  if (connection_) conversation_.connected();
}

void Uplink::lost(std::string_view why) {
  connection_.reset();
  conversation_.lost(why);
}

void Uplink::hang_up() {
  connection_->abort();
  connection_.reset();
}

void Uplink::send(std::string frame) {
  if (connection_) connection_->send_bytes(std::move(frame));
}

void Uplink::set(Conversation::Timer which, std::chrono::milliseconds after) {
  loop_.cancel(timer(which));
  timer(which) = loop_.after(after, [this, which] { conversation_.rang(which); });
}

void Uplink::cancel(Conversation::Timer which) {
  loop_.cancel(timer(which));
}

std::chrono::milliseconds Uplink::any_up_to(std::chrono::milliseconds most) {
  static thread_local std::minstd_rand random(std::random_device{}());
  return std::chrono::milliseconds(std::uniform_int_distribution<long>(0, most.count())(random));
}

void Uplink::describe_load(wire::Beat& beat) {
  beat.set_free_memory_mb(free_memory_mb());
  double load[1] = {0};
  if (::getloadavg(load, 1) == 1) beat.set_load(load[0]);
}

void Uplink::log_lost(std::string_view why) {
  log_.info("no controller at {}{}{}; trying again", reach_.where().text(), why.empty() ? "" : ": ",
            why);
}

void Uplink::log_refused(const wire::Refusal& refusal) {
  const Error why = wire::from_refusal(refusal);
  log_.error("{}{}{}", why.what(), why.hint.empty() ? "" : "; ", why.hint);
}

}  // namespace berth::node
