// The connection to the controller: dialled, dialled again, registered, kept alive. The rules are
// the conversation's; here are its socket and its timers.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/address.h"
#include "net/connection.h"
#include "net/loop.h"
#include "node/conversation.h"
#include "node/log.h"
#include "tls/stream.h"

namespace berth::node {

class Uplink final : private Conversation::Line {
 public:
  struct Reach {
    /// May this user be the controller?
    std::function<bool(uid_t)> trusted;
    std::function<net::Address()> where;
    /// A TLS session in which this machine proves which nodes it is.
    std::function<Result<tls::Stream>()> session;
  };

  Uplink(net::Loop& loop, Log& log, Reach reach, Conversation::Handlers handlers)
      : loop_(loop),
        log_(log),
        reach_(std::move(reach)),
        conversation_(*this, std::move(handlers)) {}
  /// The loop may outlive it: nobody calls back any more.
  ~Uplink() override;

  void start() { conversation_.dial(); }
  void register_anew(std::string_view why) { conversation_.register_anew(why); }
  template <class M>
  void send(const M& message) {
    conversation_.send(message);
  }
  [[nodiscard]] bool registered() const { return conversation_.registered(); }

 private:
  void dial() override;
  void send(std::string frame) override;
  void hang_up() override;
  void set(Conversation::Timer timer, std::chrono::milliseconds after) override;
  void cancel(Conversation::Timer timer) override;
  std::chrono::milliseconds any_up_to(std::chrono::milliseconds most) override;
  void describe_load(wire::Beat& beat) override;
  void log_lost(std::string_view why) override;
  void log_refused(const wire::Refusal& refusal) override;

  void connected(Result<std::shared_ptr<net::Connection>> result);
  void lost(std::string_view why);
  [[nodiscard]] net::TimerId& timer(Conversation::Timer timer) {
    return timers_.at(static_cast<std::size_t>(timer));
  }

  net::Loop& loop_;
  Log& log_;
  Reach reach_;
  Conversation conversation_;
  std::shared_ptr<net::Connection> connection_;
  std::array<net::TimerId, 2> timers_{net::TimerId::none, net::TimerId::none};
};

}  // namespace berth::node
