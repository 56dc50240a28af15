#include "controller/front.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "auth/token.h"
#include "controller/identities.h"
#include "wire/field_limits.h"
#include "wire/refusal.h"

namespace berth::controller {
namespace {

std::string refusal(Code code, std::string text, std::string hint = {}) {
  wire::Done done;
  *done.mutable_refusal() = wire::to_refusal(fail(code, std::move(text), std::move(hint)).error());
  return wire::framed(done);
}

}  // namespace

std::string source_of(const Caller& caller, const tls::Bearer* node) {
  if (node != nullptr && !node->nodes.empty()) return "node " + node->nodes.front();
  return fmt::format("uid {}", caller.uid);
}

Front::Front(net::Loop& loop, Log& log, const Clock& clock, Handlers handlers)
    : loop_(loop),
      log_(log),
      clock_(clock),
      handlers_(std::move(handlers)),
      door_(loop, net::QuotaLimits::of_descriptors(net::fd_limit())) {}

Front::~Front() = default;

Result<void> Front::listen_unix(const std::string& path, mode_t mode) {
  auto listener = net::Listener::open(
      loop_, net::Address::unix_socket(path), {.mode = mode},
      [this](std::shared_ptr<net::Connection> connection) { accept(std::move(connection)); });
  if (!listener) return pass(std::move(listener.error()));
  listeners_.push_back(std::move(*listener));
  return {};
}

Result<void> Front::listen_tcp(std::uint16_t port, Remote remote) {
  remote_ = std::move(remote);
  checker_ = std::make_unique<auth::HelloChecker>();
  auto listener = net::Listener::open(
      loop_, net::Address::tcp("", port), {},
      [this](std::shared_ptr<net::Connection> connection) { accept(std::move(connection)); });
  if (!listener) return pass(std::move(listener.error()));
  listeners_.push_back(std::move(*listener));
  return {};
}

void Front::stop_listening() {
  listeners_.clear();
}

void Front::drop_all() {
  run_acts();
  for (auto& [peer, link] : std::exchange(links_, {})) link.connection->close();
}

void Front::set_trust(std::shared_ptr<const Trust> trust) {
  const std::lock_guard lock(mutex_);
  trust_ = std::move(trust);
}

std::shared_ptr<const Trust> Front::trust() const {
  const std::lock_guard lock(mutex_);
  return trust_;
}

void Front::accept(std::shared_ptr<net::Connection> connection) {
  const Peer peer = ++last_peer_;
  ++accepted_;
  Link link;
  const auto evicted = [this, peer](const std::string& why) { closed(peer, why); };
  if (connection->is_unix()) {
    const auto caller =
        trust()->admit(connection->peer()->uid, connection->peer()->gid, Proof::socket);
    if (!caller) return;
    become(link, *caller);
    link.visit =
        door_.enter(connection, {.uid = link.caller.uid, .free = link.caller.privileged}, evicted);
    connection->limit_frames(link.caller.privileged ? wire::kMostBytes : wire::kUserBytes);
  } else {
    link.standing.remote = true;
    link.visit = door_.enter_unknown(connection, evicted);
    if (link.visit) connection->secure(remote_->context.open());
  }
  if (!link.visit) return;  // it was told why
  const std::shared_ptr<net::Visit> visit = link.visit;
  link.connection = connection;
  links_.emplace(peer, std::move(link));
  connection->start(
      {.on_frame = [this, peer](net::Connection&, const wire::Frame& f) { frame(peer, f); },
       .on_closed = [this, peer](net::Connection&,
                                 std::string_view reason) { closed(peer, reason); },
       .on_drained = [this, peer](net::Connection&) { drained(peer); },
       .on_secured = [this, peer](net::Connection&) { secured(peer); },
       .on_partial = [visit](net::Connection& c, std::size_t held,
                             std::size_t frame_bytes) { visit->partial(c, held, frame_bytes); }});
}

void Front::become(Link& link, const Caller& caller) {
  link.caller = caller;
  link.standing.role = caller.privileged ? Role::administrator : Role::user;
}

void Front::turn_away(Peer peer, const Error& why) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return;
  wire::Done done;
  *done.mutable_refusal() = wire::to_refusal(why);
  found->second.connection->send(done);
  closed(peer, why.what());
}

void Front::secured(Peer peer) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return;
  Link& link = found->second;
  const std::string certificate = link.connection->session()->certificate();
  if (certificate.empty()) return;
  auto bearer = tls::bearer_of(certificate);
  if (!bearer || bearer->nodes.empty()) {
    return turn_away(peer, fail(Code::no_credential, "the certificate is no node's").error());
  }
  if (!is_good(bearer->serial)) return turn_away(peer, void_certificate(bearer->nodes.front()));
  if (!link.visit->introduce(link.connection, {.certificate = bearer->serial})) {
    return closed(peer, "too many connections");
  }
  link.visit->must_ask(true);
  link.node = std::make_shared<const tls::Bearer>(std::move(*bearer));
  link.standing.role = Role::node;
  link.connection->limit_frames(wire::kUserBytes);
}

void Front::set_certificates(Serials serials) {
  const std::lock_guard lock(mutex_);
  certificates_ = std::move(serials);
}

bool Front::is_good(const std::string& serial) {
  const std::lock_guard lock(mutex_);
  return certificates_.contains(serial);
}

void Front::frame(Peer peer, const wire::Frame& frame) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return;
  Link& link = found->second;
  if (frame.kind == wire::Kind::Hello && link.standing.role != Role::node) {
    return greet(peer, frame);
  }
  if (link.standing.registered) return hand_on(link, peer, frame.kind, std::string(frame.payload));
  link.visit->heard();
  link.waiting.emplace_back(frame.kind, frame.payload);
  link.waiting_bytes += frame.payload.size();
  next_request(link, peer);
}

bool Front::its_turn(Link& link, Peer peer) {
  if (link.busy || link.delayed || link.starved || link.sending != Link::Sending::nothing) {
    return false;
  }
  if (!std::exchange(link.paid, true)) {
    if (const auto wait = link.visit->wait_for_request(); wait.count() > 0) {
      link.delayed = true;
      loop_.after(wait, [this, peer, alive = std::weak_ptr(alive_)] {
        if (alive.expired()) return;
        const auto found = links_.find(peer);
        if (found == links_.end()) return;
        found->second.delayed = false;
        next_request(found->second, peer);
      });
      return false;
    }
  }
  if (!link.visit->may_work(link.waiting.front().second.size())) {
    link.starved = true;
    starved_[link.visit->account()].push_back(peer);
    return false;
  }
  link.paid = false;
  return true;
}

/// Nothing is read while requests of this connection wait here: the kernel makes the sender wait.
void Front::read_or_not(Link& link) {
  link.visit->queued(*link.connection, link.waiting_bytes);
  const bool full = (link.unhandled && link.unhandled->stopped) ||
                    link.waiting.size() >= kMostWaiting ||
                    link.waiting_bytes >= kMostWaitingBytes ||
                    (!link.waiting.empty() && (link.delayed || link.starved));
  if (full) {
    link.connection->pause();
  } else if (!link.visit->stopped() && link.connection->paused()) {
    link.connection->resume();
  }
}

void Front::greet(Peer peer, const wire::Frame& frame) {
  Link& link = links_.find(peer)->second;
  // On a unix socket the kernel has said who it is; a Hello there is only polite.
  if (!link.standing.remote) return;
  auto hello = wire::decode<wire::Hello>(frame.payload);
  if (!hello || link.busy || link.standing.role != Role::stranger) {
    return closed(peer, "unexpected Hello");
  }
  if (auto good = auth::check_protocol(*hello); !good) return turn_away(peer, good.error());
  if (hello->has_vouched_uid()) {
    return turn_away(peer, fail(Code::no_credential, "only a node vouches for its users").error());
  }
  if (!hello->token().empty()) {
    const auto claim =
        auth::check_user_token(hello->token(), remote_->cluster_key, clock_.seconds());
    if (!claim) return greeted(peer, pass(claim.error()));
    return greeted(peer, trust()->admit_token(*claim));
  }
  if (auto good = trust()->munge_from(link.connection->remote_host()); !good) {
    return greeted(peer, pass(std::move(good.error())));
  }
  link.busy = true;
  const std::string binding = link.connection->session()->binding(auth::kCallerPurpose);
  checker_->check(std::move(*hello), binding,
                  [this, peer, alive = std::weak_ptr(alive_)](Result<auth::Caller> who) {
                    loop_.post([this, peer, alive, who = std::move(who)]() mutable {
                      if (alive.expired()) return;
                      greeted(peer, who ? trust()->admit(who->uid, who->gid, Proof::munge)
                                        : pass(std::move(who.error())));
                    });
                  });
}

void Front::greeted(Peer peer, Result<Caller> who) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return;
  Link& link = found->second;
  if (!who) {
    const std::string host = link.connection->remote_host();
    log_.of(host).info("refused a connection from {}: {}", host, who.error().what());
    return turn_away(peer, who.error());
  }
  become(link, *who);
  if (!link.visit->introduce(link.connection,
                             {.uid = link.caller.uid, .free = link.caller.privileged})) {
    return closed(peer, "too many connections");
  }
  link.busy = false;
  link.connection->limit_frames(link.caller.privileged ? wire::kMostBytes : wire::kUserBytes);
  next_request(link, peer);
}

void Front::hand_on(Link& link, Peer peer, wire::Kind kind, std::string payload) {
  const Rule rule = rule_of(kind);
  if (!may_send(rule, link.standing)) {
    if (rule.who != Who::anyone && rule.who != Who::admin) {
      log_.of(source_of(link.caller, link.node.get()))
          .info("uid {} sent {}, which is not for a controller", link.caller.uid,
                wire::name_of(kind));
      return closed(peer, "unexpected message");
    }
    if (link.standing.role == Role::stranger) {
      return turn_away(peer, fail(Code::no_credential,
                                  "the first message on a TCP connection must be a credential")
                                 .error());
    }
    link.connection->send_bytes(refusal(Code::access_denied, "Access/permission denied"));
    if (link.connection->backlog() > 0) wait_for_reader(link, Link::Sending::answer);
    return;
  }
  if (auto good = wire::check_fields(kind, payload, most_script_); !good) {
    if (link.standing.registered || link.standing.role == Role::node) {
      // No agent of ours sends such a thing.
      const Error& why = good.error();
      log_.of(source_of(link.caller, link.node.get()))
          .error("{} is refused: {}; {}", wire::name_of(kind), why.what(), why.hint);
      return turn_away(peer, why);
    }
    wire::Done done;
    *done.mutable_refusal() = wire::to_refusal(good.error());
    link.connection->send(done);
    if (link.connection->backlog() > 0) wait_for_reader(link, Link::Sending::answer);
    return;
  }
  if (!link.standing.registered) {
    link.busy = true;
    link.visit->begin_work(payload.size());
  }
  Request request{peer, link.caller, kind, std::move(payload), link.node};
  if (kind == wire::Kind::RegisterNodes || kind == wire::Kind::JoinNode) {
    request.from = link.connection->remote_host();
  }
  if (link.unhandled) request.counted = count(link, peer, request.payload.size());
  if (rule.where == Where::reader) {
    handlers_.to_reader(std::move(request));
  } else {
    handlers_.to_state(std::move(request));
  }
}

std::shared_ptr<const void> Front::count(Link& link, Peer peer, std::size_t bytes) {
  const std::shared_ptr<Unhandled> counter = link.unhandled;
  ++counter->frames;
  counter->bytes += bytes;
  if (counter->many()) {
    link.connection->pause();
    counter->stopped = true;
  }
  return {nullptr, [this, counter, peer, bytes](const void*) {
            --counter->frames;
            counter->bytes -= bytes;
            if (counter->few() && counter->stopped.exchange(false)) {
              act({.peer = peer, .read_on = true});
            }
          }};
}

void Front::next_request(Link& link, Peer peer) {
  while (!link.waiting.empty() && its_turn(link, peer)) {
    auto [kind, payload] = std::move(link.waiting.front());
    link.waiting.pop_front();
    link.waiting_bytes -= payload.size();
    hand_on(link, peer, kind, std::move(payload));
    if (!links_.contains(peer)) return;  // it was closed for what it sent
  }
  read_or_not(link);
}

/// One that waited because its user or node had too many requests in work.
void Front::next_of_account(net::Account account) {
  const auto found = starved_.find(account);
  if (found == starved_.end()) return;
  std::deque<Peer>& peers = found->second;
  while (!peers.empty()) {
    const auto link = links_.find(peers.front());
    if (link != links_.end() && link->second.starved) {
      const Peer peer = peers.front();
      if (!link->second.visit->may_work(link->second.waiting.front().second.size())) return;
      peers.pop_front();
      link->second.starved = false;
      if (peers.empty()) starved_.erase(found);
      return next_request(link->second, peer);
    }
    peers.pop_front();
  }
  starved_.erase(found);
}

/// A request is done with when its answer was taken by the kernel: who does not read what he asks
/// for uses up what his user may have in work.
void Front::answered(Link& link, Peer peer) {
  if (link.connection->backlog() > 0 && !link.standing.registered) {
    link.busy = false;
    return wait_for_reader(link, Link::Sending::answer);
  }
  link.busy = false;
  const net::Account account = link.visit->account();
  link.visit->end_work();
  next_request(link, peer);
  next_of_account(account);
}

void Front::wait_for_reader(Link& link, Link::Sending what) {
  link.sending = what;
  link.visit->answering(link.connection->backlog());
  link.connection->tell_drained();
}

void Front::drained(Peer peer) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return;
  Link& link = found->second;
  const Link::Sending sent = std::exchange(link.sending, Link::Sending::nothing);
  link.visit->answering(0);
  if (sent == Link::Sending::page && handlers_.page_taken) handlers_.page_taken(peer);
  if (sent == Link::Sending::answer) answered(link, peer);
}

/// Ends a connection from either side.
void Front::closed(Peer peer, std::string_view reason) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return;
  const Link link = std::move(found->second);
  links_.erase(found);
  if (!reason.empty()) log_.debug("connection of uid {} closed: {}", link.caller.uid, reason);
  if (link.connection->open()) link.connection->close();
  const net::Account account = link.visit->account();
  link.visit->end_work();
  if (link.kept || link.voucher) handlers_.closed(peer);
  if (link.paging && handlers_.pages_unwanted) handlers_.pages_unwanted(peer);
  wake_starved(account);
}

void Front::wake_starved(net::Account account) {
  if (!starved_.contains(account)) return;
  // Not from here: the caller may be in the middle of another one of this user.
  loop_.post([this, account, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) next_of_account(account);
  });
}

void Front::close_revoked(const Act& act) {
  const auto is_of_node = [&](const std::shared_ptr<const tls::Bearer>& bearer) {
    return bearer && !act.close_node.empty() &&
           std::ranges::find(bearer->nodes, act.close_node) != bearer->nodes.end();
  };
  std::vector<Peer> peers;
  for (const auto& [peer, link] : links_) {
    const bool by_token = act.close_tokens && link.caller.proof == Proof::token &&
                          link.standing.role != Role::stranger &&
                          link.caller.uid == *act.close_tokens;
    if (by_token || is_of_node(link.node) || is_of_node(link.voucher)) peers.push_back(peer);
  }
  for (const Peer peer : peers) closed(peer, "what it was opened with is revoked");
}

void Front::act(Act act) {
  std::vector<Act> acts;
  acts.push_back(std::move(act));
  this->act(std::move(acts));
}

void Front::act(std::vector<Act> acts) {
  if (acts.empty()) return;
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = acts_.empty();
    if (first) {
      acts_ = std::move(acts);
    } else {
      std::ranges::move(acts, std::back_inserter(acts_));
    }
  }
  if (!first) return;
  loop_.post([this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) run_acts();
  });
}

void Front::run_acts() {
  std::vector<Act> acts;
  {
    const std::lock_guard lock(mutex_);
    acts.swap(acts_);
  }
  for (Act& act : acts) {
    if (act.close_tokens || !act.close_node.empty()) {
      close_revoked(act);
      continue;
    }
    const auto found = links_.find(act.peer);
    if (found == links_.end()) {
      // It closed before anybody said that it matters.
      if (act.keep || act.agent || act.user) handlers_.closed(act.peer);
      if (act.page && handlers_.pages_unwanted) handlers_.pages_unwanted(act.peer);
      continue;
    }
    Link& link = found->second;
    if (act.keep || act.agent) {
      link.kept = true;
      link.connection->keep();
      link.visit->keep();
    }
    if (act.user) link.voucher = std::move(link.node);  // no node's any more
    if (act.agent) {
      link.standing.registered = true;
      link.visit->must_ask(false);
      if (link.node) {
        link.connection->limit_frames(wire::kMostBytes);
        if (!link.unhandled) link.unhandled = std::make_shared<Unhandled>();
      }
    }
    if (act.user) {
      const net::Account before = link.visit->account();
      if (!link.visit->introduce(link.connection, {.uid = act.user->uid})) {
        closed(act.peer, "too many connections");
        continue;
      }
      wake_starved(before);
      become(link, *act.user);
      link.connection->limit_frames(wire::kUserBytes);
    }
    if (act.read_on) read_or_not(link);
    if (!act.bytes.empty()) link.connection->send_bytes(std::move(act.bytes));
    if (act.close) {
      closed(act.peer, "");
      continue;
    }
    if (act.answered) {
      link.paging = false;
      answered(link, act.peer);
    } else if (act.page) {
      link.paging = true;
      wait_for_reader(link, Link::Sending::page);
      if (link.connection->backlog() == 0) drained(act.peer);
    }
  }
}

}  // namespace berth::controller
