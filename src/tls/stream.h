// One TLS 1.3 session as a transformation of bytes: what came from the socket goes in, what goes to
// the socket comes out. The socket itself belongs to the caller, so that a loop, a poll and a
// blocking client share this.
//
//   tls::Stream stream = context.open();
//   stream.begin(out);                                  // a client speaks first
//   stream.put(frames, out);                            // kept until the other side is proven
//   if (auto done = stream.take(raw, plain, out); !done) close, after `out` was sent
//
// A session can be ended in the middle of a TCP connection, and another one can follow: end() says
// so to the other side; ended() and rest() tell what the other side did. See handover.h.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::tls {

class Stream {
 public:
  /// Context makes them.
  explicit Stream(SSL* session, bool server);
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) noexcept = default;

  /// The first bytes of a client; nothing for a server.
  void begin(std::string& out);
  /// Appends what the other side said to `plain`, and what it has to hear to `out` (an alert, when
  /// this fails). Nothing is ever appended to `plain` before the other side is proven.
  Result<void> take(std::string_view raw, std::string& plain, std::string& out);
  /// Says `plain`. Before the handshake is over it is kept, and said by take().
  void put(std::string_view plain, std::string& out);
  /// Says that nothing follows in this session.
  void end(std::string& out);

  [[nodiscard]] bool established() const { return state_->established; }
  /// The other side has ended its half.
  [[nodiscard]] bool ended() const { return state_->ended; }
  /// What came from the socket after the other side's end, and is not of this session.
  std::string rest();
  /// What waits for the handshake.
  [[nodiscard]] std::size_t kept() const { return state_->waiting.size(); }

  /// 32 bytes that only the two ends of this session know, and no other session has.
  [[nodiscard]] std::string binding(std::string_view purpose) const;
  /// The certificate that the other side has proven, PEM; "" = it has shown none.
  [[nodiscard]] std::string certificate() const;
  /// The name of the shared key that the other side has proven to know; "" = none.
  [[nodiscard]] const std::string& key_name() const { return state_->key_name; }

 private:
  friend class Context;
  struct State {
    bool established = false;
    bool ended = false;
    bool shut = false;
    std::string waiting;   // put() before the handshake was over
    std::string after;     // rest()
    std::string key_name;  // of a keyed session
    std::string key;       // of a keyed session's client
    // What the library reads from and writes to, while it is called: it keeps no bytes of its own.
    std::string_view in;
    std::string* out = nullptr;
  };
  struct FreeSession {
    void operator()(SSL* session) const { ::SSL_free(session); }
  };
  /// The library's way to the state's `in` and `out`.
  struct Bytes;
  Result<void> shake();
  void write(std::string_view plain);
  [[nodiscard]] std::unexpected<Error> failed() const;

  std::shared_ptr<const void> context_;  // what the session's callbacks use
  std::unique_ptr<State> state_;         // at one place: the session's callbacks know it
  std::unique_ptr<SSL, FreeSession> session_;
};

}  // namespace berth::tls
