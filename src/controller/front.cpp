#include "controller/front.h"

#include <fmt/format.h>

#include <algorithm>

#include "wire/refusal.h"

namespace berth::controller {
namespace {

std::string refusal(Code code, std::string text, std::string hint = {}) {
  wire::Done done;
  *done.mutable_refusal() = wire::to_refusal(fail(code, std::move(text), std::move(hint)).error());
  return wire::framed(done);
}

}  // namespace

Front::Front(net::Loop& loop, Log& log, Handlers handlers)
    : loop_(loop), log_(log), handlers_(std::move(handlers)) {}

Front::~Front() = default;

Result<void> Front::listen_unix(const std::string& path, mode_t mode) {
  auto listener = net::Listener::open(
      loop_, net::Address::unix_socket(path), {.mode = mode},
      [this](std::shared_ptr<net::Connection> connection) { accept(std::move(connection)); });
  if (!listener) return pass(std::move(listener.error()));
  listeners_.push_back(std::move(*listener));
  return {};
}

Result<void> Front::listen_tcp(std::uint16_t port) {
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

Caller Front::caller_of(std::uint32_t uid, std::uint32_t gid) const {
  Caller caller;
  caller.uid = uid;
  caller.gid = gid;
  caller.privileged = uid == 0 || std::ranges::find(privileged_, uid) != privileged_.end();
  return caller;
}

void Front::accept(std::shared_ptr<net::Connection> connection) {
  const Peer peer = ++last_peer_;
  ++accepted_;
  Link link;
  if (connection->is_unix()) {
    link.caller = caller_of(connection->peer()->uid, connection->peer()->gid);
    link.known = true;
  }
  link.connection = connection;
  links_.emplace(peer, std::move(link));
  connection->start(
      {.on_frame = [this, peer](net::Connection&, const wire::Frame& f) { frame(peer, f); },
       .on_closed = [this, peer](net::Connection&,
                                 std::string_view reason) { closed(peer, reason); },
       .on_drained = nullptr});
}

void Front::frame(Peer peer, const wire::Frame& frame) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return;
  Link& link = found->second;
  if (!link.known || frame.kind == wire::Kind::Hello) return greet(peer, frame);
  if (link.agent) return hand_on(link, peer, frame.kind, std::string(frame.payload));
  if (link.busy) {
    link.waiting.emplace_back(frame.kind, frame.payload);
    if (link.waiting.size() >= kMostWaiting) link.connection->pause();
    return;
  }
  hand_on(link, peer, frame.kind, std::string(frame.payload));
}

void Front::greet(Peer peer, const wire::Frame& frame) {
  Link& link = links_.find(peer)->second;
  if (frame.kind != wire::Kind::Hello) {
    link.connection->send_bytes(
        refusal(Code::bad_value, "the first message on a TCP connection must be a credential"));
    return closed(peer, "no credential");
  }
  // On a unix socket the kernel has said who it is; a Hello there is only polite.
  if (link.connection->is_unix()) return;
  auto hello = wire::decode<wire::Hello>(frame.payload);
  if (!hello || link.busy || link.known || !checker_) return closed(peer, "unexpected Hello");
  link.busy = true;
  checker_->check(std::move(*hello),
                  [this, peer, alive = std::weak_ptr(alive_)](Result<auth::Caller> who) {
                    loop_.post([this, peer, alive, who = std::move(who)]() mutable {
                      if (!alive.expired()) greeted(peer, std::move(who));
                    });
                  });
}

void Front::greeted(Peer peer, Result<auth::Caller> who) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return;
  Link& link = found->second;
  if (!who) {
    log_.info("refused a connection from {}: {}", link.connection->remote_host(),
              who.error().what());
    wire::Done done;
    *done.mutable_refusal() = wire::to_refusal(who.error());
    link.connection->send(done);
    return closed(peer, "bad credential");
  }
  auto hello = auth::make_hello("berthctld");
  if (!hello) {
    log_.error("no credential for an answer: {}", hello.error().what());
    return closed(peer, "no credential for an answer");
  }
  link.connection->send(*hello);
  link.caller = caller_of(who->uid, who->gid);
  link.known = true;
  link.busy = false;
  link.connection->limit_frames(wire::kMostBytes);
  next_request(link, peer);
}

void Front::hand_on(Link& link, Peer peer, wire::Kind kind, std::string payload) {
  const Rule rule = rule_of(kind);
  if (!may_send(rule, link.caller, link.agent)) {
    if (rule.who == Who::nobody || rule.who == Who::agent) {
      log_.info("uid {} sent {}, which is not for a controller", link.caller.uid,
                wire::name_of(kind));
      return closed(peer, "unexpected message");
    }
    link.connection->send_bytes(refusal(Code::access_denied, "Access/permission denied"));
    return;
  }
  if (!link.agent) link.busy = true;
  Request request{peer, link.caller, kind, std::move(payload)};
  if (rule.where == Where::reader) {
    handlers_.to_reader(std::move(request));
  } else {
    handlers_.to_state(std::move(request));
  }
}

void Front::next_request(Link& link, Peer peer) {
  while (!link.waiting.empty() && !link.busy) {
    auto [kind, payload] = std::move(link.waiting.front());
    link.waiting.pop_front();
    hand_on(link, peer, kind, std::move(payload));
    if (!links_.contains(peer)) return;  // it was closed for what it sent
  }
  if (link.waiting.size() < kMostWaiting) link.connection->resume();
}

/// Ends a connection from either side.
void Front::closed(Peer peer, std::string_view reason) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return;
  const Link link = std::move(found->second);
  links_.erase(found);
  if (!reason.empty()) log_.debug("connection of uid {} closed: {}", link.caller.uid, reason);
  if (link.connection->open()) link.connection->close();
  if (link.kept) handlers_.closed(peer);
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
    const auto found = links_.find(act.peer);
    if (found == links_.end()) {
      // It closed before anybody said that it matters.
      if (act.keep || act.agent) handlers_.closed(act.peer);
      continue;
    }
    Link& link = found->second;
    if (act.keep || act.agent) {
      link.kept = true;
      link.connection->keep();
    }
    if (act.agent) link.agent = true;
    if (!act.bytes.empty()) link.connection->send_bytes(std::move(act.bytes));
    if (act.close) {
      closed(act.peer, "");
      continue;
    }
    if (act.answered) {
      link.busy = false;
      next_request(link, act.peer);
    }
  }
}

}  // namespace berth::controller
