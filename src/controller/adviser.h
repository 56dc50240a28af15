// Sends answers to submissions with what lint says. Answers known already go out at once; others
// are made by a thread of its own, so that a long script holds nobody up. Before start() there is
// none: they are made in the call.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "cluster/cluster.h"
#include "controller/advice.h"
#include "controller/messenger.h"
#include "wire/submit.pb.h"

namespace berth::controller {

class Adviser {
 public:
  explicit Adviser(Messenger& messenger) : messenger_(messenger) {}
  ~Adviser();
  Adviser(const Adviser&) = delete;
  Adviser& operator=(const Adviser&) = delete;

  void start();
  /// Adds the lines when they are known: true, and the caller sends the reply.
  bool add_known(const wire::Asked& asked, wire::SubmitReply& reply);
  /// Works the lines out and sends the reply.
  void answer(Peer peer, std::shared_ptr<const wire::Asked> asked, wire::SubmitReply reply,
              std::shared_ptr<const cluster::Cluster> cluster);
  /// The cluster changed.
  void forget() { advice_.forget(); }

 private:
  struct Item {
    Peer peer = 0;
    std::shared_ptr<const wire::Asked> asked;
    wire::SubmitReply reply;
    std::shared_ptr<const cluster::Cluster> cluster;
  };
  void work();
  void answer(Item item);

  Messenger& messenger_;
  Advice advice_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace berth::controller
