// One agent that is dialled without blocking, then a framed stream: srun's and the relays' side of
// a step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "net/client.h"

namespace berth::launch {

class NodeLink {
 public:
  enum class State { idle, connecting, greeting, open, closed };

  /// `frames`: what is said first (Launch, Relay, Attach). `program` introduces itself on TCP.
  NodeLink(net::Address address, std::string frames, std::string program)
      : address_(std::move(address)), frames_(std::move(frames)), program_(std::move(program)) {}

  /// Begins to connect; stays idle when the agent's queue is full just now.
  Result<void> dial();
  /// Forgets the connection: it can be dialled anew, with the same ticket.
  void again();
  /// After poll: finishes the connection, sends what waits.
  Result<void> ready(short events);
  /// The next frame that is there; greetings are taken here.
  Result<std::optional<wire::Frame>> next();
  /// It was answered: the first frames are not needed again, and perhaps large.
  void answered() {
    frames_ = {};
    kept_ = 0;
    answered_ = true;
  }
  void close();

  template <class M>
  void send(const M& message) {
    if (client_) client_->queue(message);
  }
  void send_bytes(std::string_view frames) {
    if (client_) client_->queue_bytes(frames);
  }
  /// The same, and for sure: it is sent when the link is made, or made again before it was
  /// answered.
  void send_kept(std::string_view frames) {
    send_bytes(frames);
    if (answered_) return;
    frames_ += frames;
    kept_ += frames.size();
  }
  [[nodiscard]] std::size_t backlog() const {
    return std::max(kept_, client_ ? client_->backlog() : 0);
  }

  [[nodiscard]] bool dialled() const { return state_ != State::idle; }
  [[nodiscard]] bool open() const { return state_ == State::open; }
  [[nodiscard]] bool closed() const { return state_ == State::closed; }
  /// Being made: it counts among those that are dialled at the same time.
  [[nodiscard]] bool connecting() const {
    return state_ == State::connecting || state_ == State::greeting;
  }
  [[nodiscard]] bool has_frame() { return client_ && client_->has_frame(); }
  [[nodiscard]] int fd() const;
  [[nodiscard]] short events() const;

 private:
  Result<void> connected();

  net::Address address_;
  std::string frames_;
  std::size_t kept_ = 0;  // of frames_, since the first ones
  bool answered_ = false;
  std::string program_;
  State state_ = State::idle;
  Fd connecting_;
  std::optional<net::Client> client_;
};

}  // namespace berth::launch
