// Agents that run nothing: one connection for each node, which registers, says that every batch
// script ended, at once or after a while, and dials again when the controller goes away. With them
// the controller alone is measured (bench/controller). They come by its unix socket, or over TLS
// with a certificate for each node (joins.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/address.h"
#include "net/connection.h"
#include "net/loop.h"
#include "tls/context.h"

namespace berth::load {

/// What every node says it has.
struct Inventory {
  std::uint32_t sockets = 2;
  std::uint32_t cores_per_socket = 8;
  std::uint64_t memory_mb = 65536;
  std::uint64_t gpus = 8;
  /// How long a script is said to run: anything up to this.
  std::chrono::milliseconds longest_run{0};
};

class Agents {
 public:
  /// `identities`: one for each node where the controller's address is one of TCP, else none.
  Agents(net::Loop& loop, net::Address controller, Inventory inventory,
         std::vector<std::string> nodes, std::vector<tls::Context> identities = {});
  /// Dials with every node; prints a line each time that all of them are registered.
  void start();

 private:
  struct Node {
    std::string name;
    std::shared_ptr<net::Connection> connection;
    bool registered = false;
    std::chrono::milliseconds delay{50};
  };
  void dial(std::size_t index);
  void connected(std::size_t index, Result<std::shared_ptr<net::Connection>> result);
  void take(std::size_t index, const wire::Frame& frame);
  void lost(std::size_t index);
  void beat();
  void begin_job(std::size_t index, const wire::BeginJob& begin);
  void end_script(std::size_t index, const wire::BeginJob& begin);

  net::Loop& loop_;
  net::Address controller_;
  Inventory inventory_;
  std::vector<Node> nodes_;
  std::vector<tls::Context> identities_;
  std::size_t registered_ = 0;
  std::size_t beating_ = 0;  // the next node to beat: they take turns, as they do on many machines
  net::Clock::time_point began_ = net::Clock::now();  // of this round of registrations
};

}  // namespace berth::load
