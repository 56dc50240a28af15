// What lies between the bytes of a socket and the frames of berth: nothing (a unix socket), a TLS
// session, or the two sessions of a handover. Those who own sockets (net::Connection, net::Client,
// step::Peer) treat all of them alike.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "tls/handover.h"
#include "tls/stream.h"

namespace berth::tls {

class Channel {
 public:
  /// Plain: for unix sockets, where the kernel says who is at the other end.
  Channel() = default;
  explicit Channel(Stream stream) : way_(std::move(stream)) {}
  explicit Channel(Handover handover) : way_(std::move(handover)) {}

  [[nodiscard]] bool plain() const { return std::holds_alternative<std::monostate>(way_); }
  /// The one session; null when there is none, or a handover.
  [[nodiscard]] Stream* stream() { return std::get_if<Stream>(&way_); }
  [[nodiscard]] const Stream* stream() const { return std::get_if<Stream>(&way_); }

  /// As those of Stream.
  void begin(std::string& out);
  Result<void> take(std::string_view raw, std::string& plain, std::string& out);
  void put(std::string_view plain, std::string& out);
  [[nodiscard]] bool established() const;
  [[nodiscard]] std::size_t kept() const;

 private:
  std::variant<std::monostate, Stream, Handover> way_;
};

}  // namespace berth::tls
