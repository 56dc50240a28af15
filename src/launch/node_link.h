// One agent that is dialled without blocking, then a framed stream: srun's and the relays' side of
// a step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "launch/tree.h"
#include "net/client.h"

namespace berth::launch {

class NodeLink {
 public:
  enum class State { idle, connecting, proving, open, closed };

  explicit NodeLink(Branch branch)
      : address_(std::move(branch.address)),
        request_(std::move(branch.request)),
        session_(std::move(branch.session)) {}

  /// Begins to connect; stays idle when the agent's queue is full just now.
  Result<void> dial();
  /// Forgets the connection: it can be dialled anew, with the same ticket.
  void again();
  /// After poll: finishes the connection, sends what waits.
  Result<void> ready(short events);
  /// The next frame that is there.
  Result<std::optional<wire::Frame>> next();
  /// It was answered: the first frames are not needed again, and perhaps large.
  void answered() {
    request_ = {};
    kept_ = {};
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
    kept_ += frames;
  }
  [[nodiscard]] std::size_t backlog() const {
    return std::max(kept_.size(), client_ ? client_->backlog() : 0);
  }

  [[nodiscard]] bool dialled() const { return state_ != State::idle; }
  [[nodiscard]] bool open() const { return state_ == State::open; }
  [[nodiscard]] bool closed() const { return state_ == State::closed; }
  /// Being made: it counts among those that are dialled at the same time.
  [[nodiscard]] bool connecting() const {
    return state_ == State::connecting || state_ == State::proving;
  }
  [[nodiscard]] bool has_frame() { return client_ && client_->has_frame(); }
  [[nodiscard]] int fd() const;
  [[nodiscard]] short events() const;

 private:
  Result<void> connected();

  net::Address address_;
  std::string request_;
  tls::Session session_;
  std::string kept_;  // what follows the request until it was answered
  bool answered_ = false;
  State state_ = State::idle;
  Fd connecting_;
  std::optional<net::Client> client_;
};

}  // namespace berth::launch
