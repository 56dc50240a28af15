// Accepts connections on a unix socket or a TCP port.
//
//   auto listener = net::Listener::open(loop,
//   net::Address::unix_socket(net::controller_socket(run)),
//       {.mode = 0777}, [this](std::shared_ptr<net::Connection> c) { c->start({…}); });
//
// Many idle connections are cheap. When there are more than `most` (or no descriptors are left) the
// one whose last complete frame is longest ago is dropped, so that neither silent peers nor ones
// that send a byte a second keep others out; connections that called keep() are never dropped.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "net/address.h"
#include "net/connection.h"
#include "net/loop.h"

namespace berth::net {

class Listener {
 public:
  struct Options {
    mode_t mode = 0700;    // of a unix socket
    std::size_t most = 0;  // open connections; 0 = three quarters of the descriptor limit
  };
  using OnAccept = std::move_only_function<void(std::shared_ptr<Connection>)>;

  /// A stale unix socket (nobody answers) is replaced; a living one is an error. Unix peers have
  /// limit_frames(kMostBytes) set already; TCP peers are unknown until the program says otherwise.
  static Result<std::unique_ptr<Listener>> open(Loop& loop, const Address& address, Options options,
                                                OnAccept on_accept);
  /// Stops listening and removes the unix socket; connections stay.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// With the port the kernel chose when 0 was asked for.
  [[nodiscard]] const Address& address() const { return address_; }
  /// Connections that are open and not kept.
  [[nodiscard]] std::size_t evictable() const { return connections_->size(); }

 private:
  using Connections = std::list<std::weak_ptr<Connection>>;
  Listener(Loop& loop, Address address, Fd fd, Options options, OnAccept on_accept);
  void accept_some();
  bool evict_oldest();
  void out_of_descriptors();

  Loop& loop_;
  Address address_;
  Fd fd_;
  Fd reserve_;  // closed for a moment to accept and drop when there are no descriptors
  Options options_;
  OnAccept on_accept_;
  std::shared_ptr<Connections> connections_;  // oldest first
  TimerId retry_ = TimerId::none;
};

}  // namespace berth::net
