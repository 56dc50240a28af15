// The network side: accepts connections, learns who calls, hands whole requests on, sends what it
// is told to. Lives in the network thread; send() and its like may be called by any thread.
//
// Requests of one connection are handed on one after the other: the next when the one before was
// answered. Agents are not held up so; their messages have no answers.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "auth/munge.h"
#include "base/clock.h"
#include "base/result.h"
#include "controller/access.h"
#include "controller/caller.h"
#include "controller/log.h"
#include "controller/messenger.h"
#include "controller/trust.h"
#include "net/connection.h"
#include "net/door.h"
#include "net/listener.h"
#include "net/loop.h"
#include "tls/authority.h"
#include "tls/context.h"
#include "wire/field_limits.h"
#include "wire/frame.h"

namespace berth::controller {

struct Request {
  Peer peer = 0;
  Caller caller;
  wire::Kind kind{};
  std::string payload;
  /// Of the node whose certificate was shown; null on a unix socket and for users.
  std::shared_ptr<const tls::Bearer> node = {};
  /// Of a node that registers or joins over TCP: the address it came from.
  std::string from = {};
  /// Goes with the request: what an agent has sent and nobody has handled yet is counted by it.
  std::shared_ptr<const void> counted = {};
};

/// Whose lines these are in the log: "node n1" where a certificate was shown, else "uid 1000".
std::string source_of(const Caller& caller, const tls::Bearer* node);

class Front final : public Messenger {
 public:
  struct Handlers {
    std::function<void(Request)> to_reader;  // both called in the network thread
    std::function<void(Request)> to_state;
    std::function<void(Peer)> closed;  // only of peers that were said to matter (keep, agent)
    /// The page that was sent last (Act::page) has been taken: the next one may come.
    std::function<void(Peer)> page_taken = {};
    /// Nobody waits for the other pages any more.
    std::function<void(Peer)> pages_unwanted = {};
  };
  Front(net::Loop& loop, Log& log, const Clock& clock, Handlers handlers);
  ~Front() override;

  /// Who is believed from now on; from any thread. Before it is listened.
  void set_trust(std::shared_ptr<const Trust> trust);
  /// max_script_size; from any thread.
  void set_most_script(std::size_t bytes) { most_script_ = bytes; }
  Result<void> listen_unix(const std::string& path, mode_t mode);
  struct Remote {
    tls::Context context;     // proves this controller, asks for certificates
    std::string cluster_key;  // checks tokens of users
  };
  Result<void> listen_tcp(std::uint16_t port, Remote remote);
  /// Serials of the certificates that are good now. Who shows another one is turned away at the end
  /// of the handshake. From any thread.
  using Serials = std::unordered_set<std::string>;
  void set_certificates(Serials serials);
  void stop_listening();
  /// Sends what is left to send, then ends all connections. Of the network thread.
  void drop_all();

  using Act = controller::Act;
  void act(Act act);
  void act(std::vector<Act> acts) override;

  [[nodiscard]] std::uint64_t accepted() const { return accepted_; }

 private:
  static constexpr std::size_t kMostUnhandled = 256;
  static constexpr std::size_t kMostUnhandledBytes = std::size_t{16} << 20;
  /// Messages of an agent that were handed on: other threads count them down.
  struct Unhandled {
    std::atomic<std::size_t> frames{0};
    std::atomic<std::size_t> bytes{0};
    std::atomic<bool> stopped{false};  // nothing is read until most of them are handled
    [[nodiscard]] bool many() const {
      return frames > kMostUnhandled || bytes > kMostUnhandledBytes;
    }
    [[nodiscard]] bool few() const {
      return frames <= kMostUnhandled / 2 && bytes <= kMostUnhandledBytes / 2;
    }
  };
  struct Link {
    std::shared_ptr<net::Connection> connection;
    Caller caller;
    Standing standing;
    std::shared_ptr<const tls::Bearer> node;     // whose certificate was shown
    std::shared_ptr<const tls::Bearer> voucher;  // who said that it is this user; then no node's
    bool busy = false;
    bool kept = false;
    std::deque<std::pair<wire::Kind, std::string>> waiting;
    std::size_t waiting_bytes = 0;
    std::shared_ptr<net::Visit> visit;  // what its user may take
    bool paid = false;                  // the request that waits first has its token
    bool delayed = false;               // it waits for the token
    bool starved = false;               // it waits until others of its user are done
    enum class Sending { nothing, page, answer } sending = Sending::nothing;
    std::shared_ptr<Unhandled> unhandled;  // of an agent of another machine
    bool paging = false;                   // more pages of an answer are to come
  };
  static constexpr std::size_t kMostWaiting = 16;
  static constexpr std::size_t kMostWaitingBytes = std::size_t{64} << 10;

  void accept(std::shared_ptr<net::Connection> connection);
  void frame(Peer peer, const wire::Frame& frame);
  /// The TLS handshake is over: a node has shown a certificate, others have to say who they are.
  void secured(Peer peer);
  [[nodiscard]] bool is_good(const std::string& serial);
  void greet(Peer peer, const wire::Frame& frame);
  void greeted(Peer peer, Result<Caller> who);
  void become(Link& link, const Caller& caller);
  /// Tells why and closes.
  void turn_away(Peer peer, const Error& why);
  /// Whether the request that waits first may be handed on now.
  bool its_turn(Link& link, Peer peer);
  void hand_on(Link& link, Peer peer, wire::Kind kind, std::string payload);
  /// Counts a message of an agent, and stops reading from it where too many wait.
  std::shared_ptr<const void> count(Link& link, Peer peer, std::size_t bytes);
  void next_request(Link& link, Peer peer);
  void next_of_account(net::Account account);
  void wake_starved(net::Account account);
  void answered(Link& link, Peer peer);
  void wait_for_reader(Link& link, Link::Sending what);
  void drained(Peer peer);
  void read_or_not(Link& link);
  void closed(Peer peer, std::string_view reason);
  void close_revoked(const Act& act);
  void run_acts();
  [[nodiscard]] std::shared_ptr<const Trust> trust() const;

  net::Loop& loop_;
  Log& log_;
  const Clock& clock_;
  Handlers handlers_;
  std::atomic<std::size_t> most_script_ = wire::kUsualScript;
  std::vector<std::unique_ptr<net::Listener>> listeners_;
  net::Door door_;
  std::unordered_map<net::Account, std::deque<Peer>> starved_;
  std::unique_ptr<auth::HelloChecker> checker_;
  std::optional<Remote> remote_;
  std::unordered_map<Peer, Link> links_;
  Peer last_peer_ = 0;
  std::atomic<std::uint64_t> accepted_{0};
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);  // for posted calls
  mutable std::mutex mutex_;                                                // guards what follows
  std::vector<Act> acts_;
  std::shared_ptr<const Trust> trust_ = std::make_shared<const Trust>();
  Serials certificates_;
};

}  // namespace berth::controller
