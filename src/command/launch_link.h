// One node of a step: dialled without blocking, then a framed stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/client.h"

namespace berth::command {

/// What is needed to begin on one node.
struct NodeStart {
  std::string node;
  net::Address address;
  std::string frames;                // Launch or Attach, framed
  std::vector<std::uint32_t> ranks;  // of the tasks there
};

class NodeLink {
 public:
  enum class State { idle, connecting, greeting, starting, running, done, lost };

  NodeLink(NodeStart start, std::string program)
      : start_(std::move(start)), program_(std::move(program)) {}

  /// Begins to connect; stays idle when the agent's queue is full just now.
  Result<void> dial();
  /// Forgets the connection: it can be dialled anew, with the same ticket.
  void again();
  /// After poll: finishes the connection, sends what waits.
  Result<void> ready(short events);
  /// The next frame that is there; greetings are taken here.
  Result<std::optional<wire::Frame>> next();

  template <class M>
  void send(const M& message) {
    if (!client_ || state_ == State::lost || state_ == State::done) return;
    client_->queue(message);
  }
  [[nodiscard]] std::size_t backlog() const { return client_ ? client_->backlog() : 0; }

  [[nodiscard]] State state() const { return state_; }
  void set_state(State state);
  [[nodiscard]] bool over() const { return state_ == State::done || state_ == State::lost; }
  [[nodiscard]] bool dialled() const { return state_ != State::idle; }
  [[nodiscard]] bool has_frame() { return client_ && !over() && client_->has_frame(); }
  [[nodiscard]] const std::string& node() const { return start_.node; }
  [[nodiscard]] const std::vector<std::uint32_t>& ranks() const { return start_.ranks; }
  [[nodiscard]] int fd() const;
  [[nodiscard]] short events() const;

 private:
  Result<void> connected();

  NodeStart start_;
  std::string program_;
  State state_ = State::idle;
  Fd connecting_;
  std::optional<net::Client> client_;
};

}  // namespace berth::command
