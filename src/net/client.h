// A blocking peer without threads or loop, for commands and supervisors.
//
//   auto client = net::Client::connect(address, std::chrono::seconds(10));
//   auto reply = client->ask<wire::JobsReply>(request);      // a Refusal in the reply is the Error
//   client->send(message);  auto frame = client->receive(std::chrono::seconds(60));
//   if (frame->kind == wire::Kind::JobGrant) auto grant =
//   wire::decode<wire::JobGrant>(frame->payload);
//
// In a poll loop (srun with many supervisors):
//   poll {client.fd(), POLLIN | (client.wants_write() ? POLLOUT : 0)}
//   client.queue(input); client.flush();                     // never blocks
//   while (auto frame = client.try_receive(); frame && *frame) …
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "net/address.h"
#include "net/fds.h"
#include "tls/channel.h"
#include "wire/frame.h"
#include "wire/refusal.h"

namespace berth::net {

using Patience = std::chrono::milliseconds;

class Client {
 public:
  /// Code::no_connection when nobody answers.
  static Result<Client> connect(const Address& address, Patience patience);
  /// A connected socket; `unread` was read from it before.
  explicit Client(Fd fd, std::string unread = {});

  /// What is said from now on goes through this TLS session.
  void secure(tls::Channel channel);
  /// Waits until the other side of the TLS session is proven.
  Result<void> shake_hands(Patience patience);
  /// The TLS session; null on a unix socket, and for a handover.
  [[nodiscard]] const tls::Stream* session() const { return channel_.stream(); }
  /// Whoever answers is proven to be the one that was meant.
  [[nodiscard]] bool proven() const { return channel_.established(); }

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Who serves a unix socket.
  [[nodiscard]] Result<Peer> peer() const { return peer_of(fd_.get()); }

  /// Appends to the output; nothing is sent yet.
  template <class M>
  void queue(const M& message) {
    if (channel_.plain()) {
      wire::append(out_, message);
    } else {
      channel_.put(wire::framed(message), out_);
    }
  }
  void queue_bytes(std::string_view frames) { channel_.put(frames, out_); }
  [[nodiscard]] bool wants_write() const { return sent_ < out_.size(); }
  [[nodiscard]] std::size_t backlog() const { return out_.size() - sent_ + channel_.kept(); }
  /// Sends what the kernel takes now.
  Result<void> flush();

  /// queue() and sends all of it.
  template <class M>
  Result<void> send(const M& message, Patience patience = std::chrono::seconds(60)) {
    queue(message);
    return flush_all(patience);
  }
  Result<void> flush_all(Patience patience);

  /// The next frame; its payload is valid until the next call that receives. Code::no_connection
  /// when the peer is gone, Code::timed_out when nothing came.
  Result<wire::Frame> receive(Patience patience);
  /// The next frame if one is there. Reads at most once, so poll for more when it is empty.
  Result<std::optional<wire::Frame>> try_receive();
  /// A frame is there already: do not poll.
  [[nodiscard]] bool has_frame();

  /// Sends and waits for the one answer; a list of jobs comes in pages, which are put together.
  /// Done with a refusal is its Error, and so is a refusal in
  /// the answer; any other kind of answer is a protocol error.
  template <class Reply, class M>
  Result<Reply> ask(const M& message, Patience patience = std::chrono::seconds(60)) {
    if (auto sent = send(message, patience); !sent) {
      // A peer that refused before it read everything has said why.
      if (auto early = try_receive(); early && *early) return reply_in<Reply>(**early);
      return pass(std::move(sent.error()));
    }
    Result<wire::Frame> frame = receive(patience);
    if (!frame) return pass(std::move(frame.error()));
    Result<Reply> reply = reply_in<Reply>(*frame);
    if constexpr (std::is_same_v<M, wire::ListJobs>) {
      while (reply && reply->more()) {
        frame = receive(patience);
        if (!frame) return pass(std::move(frame.error()));
        Result<Reply> page = reply_in<Reply>(*frame);
        if (!page) return page;
        reply->set_more(false);
        reply->MergeFrom(*page);
      }
    }
    return reply;
  }
  /// The same for a frame that was received already.
  template <class Reply>
  static Result<Reply> reply_in(const wire::Frame& frame) {
    if (frame.kind == wire::KindOf<Reply>::value) {
      std::optional<Reply> reply = wire::decode<Reply>(frame.payload);
      if (!reply) return unexpected_frame(frame);
      if constexpr (requires { reply->has_refusal(); }) {
        if (reply->has_refusal()) return pass(wire::from_refusal(reply->refusal()));
      }
      return std::move(*reply);
    }
    return unexpected_frame(frame);
  }

  /// The refusal of a Done, or a protocol error.
  static std::unexpected<Error> unexpected_frame(const wire::Frame& frame);

 private:
  /// Whether bytes came.
  Result<bool> read_once();
  [[nodiscard]] short events() const;
  Result<bool> scan(wire::Frame& frame);
  void drop_taken();

  Fd fd_;
  tls::Channel channel_;
  std::string in_;
  std::size_t begin_ = 0;  // of what is not given away yet
  std::size_t taken_ = 0;  // size of the frame that was given away last
  std::string out_;
  std::size_t sent_ = 0;
};

}  // namespace berth::net
