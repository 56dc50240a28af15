// A user of this machine talks to the controller of another one by way of the agent: the kernel
// tells the agent who calls, and the agent vouches for him with the node's certificate. So machines
// of the cluster need neither munge nor its key.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/connection.h"
#include "net/door.h"
#include "net/loop.h"
#include "tls/stream.h"

namespace berth::node {

class GoBetween {
 public:
  struct Controller {
    std::function<net::Address()> where;
    std::function<Result<tls::Stream>()> session;
  };
  GoBetween(net::Loop& loop, Controller controller)
      : loop_(loop), controller_(std::move(controller)) {}

  /// Takes the connection over; its first frame (CallController) has been read. It must have been
  /// started by nobody who still wants its frames: `client` was released and adopted anew. What it
  /// takes is counted at the door.
  void serve(net::Door& door, const std::shared_ptr<net::Connection>& client, uid_t uid, gid_t gid,
             std::string program);

 private:
  net::Loop& loop_;
  Controller controller_;
};

}  // namespace berth::node
