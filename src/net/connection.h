// One framed peer on a Loop: a client, an agent, a supervisor.
//
//   auto c = net::Connection::adopt(loop, std::move(fd));
//   c->start({.on_frame = [this](net::Connection& c, const wire::Frame& f) {
//               switch (f.kind) {
//                 case wire::Kind::Ping: if (auto m = wire::decode<wire::Ping>(f.payload))
//                 c.send(wire::Pong{}); …
//             },
//             .on_closed = [this](net::Connection& c, std::string_view reason) { forget(c); }});
//   c->send(reply);                   // buffered; goes out at once when the socket takes it
//
// Lifetime: the loop keeps a started connection alive until it is closed; hold a shared_ptr or
// weak_ptr to talk to it. After close(), release() or on_closed nothing is called any more and
// send() does nothing. Callbacks may close, release or drop the connection.
// Cost: an idle connection has no buffer of its own; reads go through the loop's shared scratch
// memory, at most kReadBytes for each round, and only an incomplete frame is kept.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "net/address.h"
#include "net/fds.h"
#include "net/loop.h"
#include "tls/channel.h"
#include "wire/frame.h"

namespace berth::net {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  static constexpr std::size_t kReadBytes = 64 * 1024;
  static constexpr std::size_t kDefaultBacklog = 128 * 1024 * 1024;
  static constexpr std::size_t kCongested = 256 * 1024;

  struct Handlers {
    /// The payload is valid during the call only.
    std::function<void(Connection&, const wire::Frame&)> on_frame = {};
    /// Once, when the peer went away, sent nonsense, or read too slowly (backlog). Not after
    /// close() or release(). `reason` is for logs; "" = the peer closed between frames.
    std::function<void(Connection&, std::string_view reason)> on_closed = {};
    /// The backlog, which had been above kCongested, is empty again.
    std::function<void(Connection&)> on_drained = {};
    /// The other side of a TLS session is proven (session()). Before any frame.
    std::function<void(Connection&)> on_secured = {};
    /// The beginning of a frame is kept: `held` bytes of memory for a frame of `frame_bytes` (0 =
    /// its head has not come yet). With held = 0 when the rest has come.
    std::function<void(Connection&, std::size_t held, std::size_t frame_bytes)> on_partial = {};
  };

  /// `unread`: bytes that were read from the descriptor before (see Released).
  static std::shared_ptr<Connection> adopt(Loop& loop, Fd fd, std::string unread = {});

  /// Connects without blocking (but for resolving a name that is no number) and calls done in the
  /// loop; the connection is not started yet.
  static void dial(Loop& loop, const Address& address, Clock::duration patience,
                   std::move_only_function<void(Result<std::shared_ptr<Connection>>)> done);

  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Before start(): what is said goes through this TLS session. No frame is given away before the
  /// other side is proven.
  void secure(tls::Stream session);
  /// The same for one request of a client that is handed on (tls/handover.h): it is given to
  /// on_frame when the client has ended the session behind it, so that release() can pass all on.
  void secure_handover(tls::Stream session);
  /// The TLS session; null on a unix socket.
  [[nodiscard]] const tls::Stream* session() const { return channel_.stream(); }

  /// Begins to read. Once.
  void start(Handlers handlers);

  template <class M>
  void send(const M& message) {
    if (!open()) return;
    if (channel_.plain()) {
      wire::append(out_, message);
    } else {
      channel_.put(wire::framed(message), out_);
    }
    flush_soon();
  }
  /// Bytes that are whole frames already (one message for many peers).
  void send_bytes(std::string_view frames);
  /// The same without a copy when nothing waits to be sent.
  void send_bytes(std::string&& frames);

  /// No callbacks any more; what was sent still goes out, for at most `patience`, then the
  /// descriptor is closed.
  void close(Clock::duration patience = std::chrono::seconds(5));
  /// No callbacks any more, closed at once.
  void abort();
  [[nodiscard]] bool open() const { return state_ == State::idle || state_ == State::started; }

  /// Back pressure: how much waits to be sent, and whether it is more than kCongested.
  [[nodiscard]] std::size_t backlog() const { return out_.size() - sent_ + channel_.kept(); }
  [[nodiscard]] bool congested() const { return backlog() > kCongested; }
  /// on_drained comes when what waits now is sent, be it ever so little.
  void tell_drained() { was_congested_ = true; }
  /// A peer that lets more than this wait is dropped.
  void limit_backlog(std::size_t bytes) { most_backlog_ = bytes; }

  /// Stops and resumes on_frame (to push back on a sender). Frames already read wait.
  void pause();
  void resume();
  [[nodiscard]] bool paused() const { return paused_; }

  /// The largest frame taken from this peer. Begins as kUnknownPeerBytes; set kMostBytes once the
  /// peer is known (unix: at once).
  void limit_frames(std::size_t bytes) { most_frame_ = bytes; }

  struct Released {
    Fd fd;               // blocking mode is not restored: O_NONBLOCK is set
    std::string unread;  // read, but not yet given to on_frame
    std::string unsent;  // sent, but not yet taken by the kernel
    std::string key;     // of the TLS session that follows on it (tls/handover.h); "" = none does
  };
  /// Takes up what was released, in the session that follows.
  static Result<std::shared_ptr<Connection>> take_up(Loop& loop, Released released);
  /// Gives the descriptor away, also from within on_frame (the frame at hand is not in `unread`).
  Released release();

  /// Who is at the other end of a unix socket.
  [[nodiscard]] const std::optional<Peer>& peer() const { return peer_; }
  [[nodiscard]] bool is_unix() const { return peer_.has_value(); }
  /// Peer's address of a TCP connection, as text without port; "" for unix.
  [[nodiscard]] std::string remote_host() const;

  /// This connection matters although it is silent (an agent, an owner of a job): a listener that
  /// runs out of descriptors does not drop it.
  void keep();

 private:
  friend class Listener;
  enum class State { idle, started, closing, closed };
  /// Where a listener keeps its connections in order of their last complete frame.
  struct Place {
    std::shared_ptr<std::list<std::weak_ptr<Connection>>> owner;
    std::list<std::weak_ptr<Connection>>::iterator at;
  };

  Connection(Loop& loop, Fd fd, std::string unread);
  void ready(Ready ready);
  void read();
  /// Gives frames in `bytes` away; returns how many bytes were used.
  std::size_t take_frames(std::string_view bytes);
  void tell_partial(bool had_some);
  /// What came from the socket, as frames; false when the connection has failed.
  bool unseal(std::string_view raw, std::string& plain);
  /// A handover's request: whole, alone, and the session is ended behind it.
  bool request_is_whole();
  /// While it closes: only what the handshake needs.
  void read_handshake();
  void flush_soon();
  void flush();
  void watch_again();
  void fail_with(std::string_view reason);
  void finish();
  void forget_place();

  Loop& loop_;
  Fd fd_;
  State state_ = State::idle;
  bool paused_ = false;
  bool holding_ = false;  // resumed, but what was read before is not given away yet
  bool in_frames_ = false;
  bool was_congested_ = false;
  bool watched_ = false;
  Interest interest_;
  tls::Channel channel_;
  bool one_request_ = false;  // secure_handover()
  std::size_t most_frame_ = wire::kUnknownPeerBytes;
  std::size_t most_backlog_ = kDefaultBacklog;
  std::string in_;           // read, not yet a whole frame (or paused)
  std::string_view unread_;  // within on_frame: what follows the frame at hand
  std::string out_;
  std::size_t sent_ = 0;
  TimerId deadline_ = TimerId::none;
  std::optional<Peer> peer_;
  std::shared_ptr<Handlers> handlers_;  // shared: one of them may be running when they go
  std::shared_ptr<Connection> self_;    // while paused after a hang-up; else the watch holds it
  Place place_;
};

}  // namespace berth::net
