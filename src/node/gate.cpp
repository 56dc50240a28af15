// What gate.h promises.
#include "node/gate.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <ctime>

#include "node/tickets.h"
#include "wire/refusal.h"

namespace berth::node {
namespace {

/// A launch may overtake BeginJob, which comes by way of the controller.
constexpr std::chrono::seconds kPatience{10};

Error named(const wire::StepSpec& spec, const std::string& node, const std::string& why) {
  return fail(Code::no_credential,
              fmt::format("Task launch for StepId={}.{} failed on node {}: {}", spec.job_id(),
                          step::step_name(spec.step_id()), node, why))
      .error();
}

void refuse(net::Connection& connection, const Error& error) {
  wire::LaunchReply reply;
  *reply.mutable_refusal() = wire::to_refusal(error);
  connection.send(reply);
  connection.close();
}

}  // namespace

Result<void> Gate::listen(const net::Address& address, mode_t mode) {
  auto listener = net::Listener::open(
      here_.loop, address, {.mode = mode, .most = 0},
      [this](std::shared_ptr<net::Connection> connection) { accept(std::move(connection)); });
  if (!listener) return pass(std::move(listener.error()));
  if (!address.is_unix() && !hellos_) hellos_ = std::make_unique<auth::HelloChecker>();
  listeners_.push_back(std::move(*listener));
  return {};
}

void Gate::accept(std::shared_ptr<net::Connection> connection) {
  const bool local = connection->is_unix();
  const uid_t uid = local ? connection->peer()->uid : static_cast<uid_t>(-1);
  if (local) connection->limit_frames(wire::kMostBytes);
  connection->start({.on_frame =
                         [this, local, uid](net::Connection& c, const wire::Frame& frame) {
                           if (local) {
                             take(c, frame, uid);
                           } else {
                             greet(c, frame);
                           }
                         },
                     .on_closed = [](net::Connection&, std::string_view) {},
                     .on_drained = {}});
}

/// The first frame of a TCP client; what follows waits until munge has said who it is.
void Gate::greet(net::Connection& connection, const wire::Frame& frame) {
  const auto hello =
      frame.kind == wire::Kind::Hello ? wire::decode<wire::Hello>(frame.payload) : std::nullopt;
  if (!hello) return connection.close();
  connection.pause();
  hellos_->check(*hello, [this, weak = connection.weak_from_this()](Result<auth::Caller> who) {
    here_.loop.post([this, weak, who = std::move(who)]() mutable {
      const auto c = weak.lock();
      if (!c || !c->open()) return;
      auto mine = auth::make_hello("berthd");
      if (!who || !mine) {
        refuse(*c, who ? mine.error() : who.error());
        return;
      }
      c->send(*mine);
      auto released = c->release();
      // Again, as somebody who is known.
      auto known =
          net::Connection::adopt(here_.loop, std::move(released.fd), std::move(released.unread));
      known->limit_frames(wire::kMostBytes);
      known->send_bytes(released.unsent);
      known->start({.on_frame = [this, uid = who->uid](net::Connection& k,
                                                       const wire::Frame& f) { take(k, f, uid); },
                    .on_closed = [](net::Connection&, std::string_view) {},
                    .on_drained = {}});
    });
  });
}

void Gate::take(net::Connection& connection, const wire::Frame& frame, uid_t uid) {
  switch (frame.kind) {
    case wire::Kind::Hello:  // a unix peer that introduces itself needs no credential
      return;
    case wire::Kind::Launch:
      if (auto m = wire::decode<wire::Launch>(frame.payload)) {
        return launch(connection.shared_from_this(), std::move(*m), uid);
      }
      break;
    case wire::Kind::Attach:
      if (const auto m = wire::decode<wire::Attach>(frame.payload)) {
        return attach(connection, *m, uid);
      }
      break;
    case wire::Kind::PutFile:
      if (const auto m = wire::decode<wire::PutFile>(frame.payload)) {
        return put_file(connection, *m, uid);
      }
      break;
    default:
      break;
  }
  connection.close();
}

void Gate::launch(const std::shared_ptr<net::Connection>& connection, wire::Launch message,
                  uid_t uid) {
  connection->pause();
  connection->keep();
  waiting_.push_back({.connection = connection, .launch = std::move(message), .uid = uid});
  const auto it = std::prev(waiting_.end());
  if (settle(*it, false)) {
    waiting_.erase(it);
    return;
  }
  it->timer = here_.loop.after(kPatience, [this, it] {
    settle(*it, true);
    waiting_.erase(it);
  });
}

bool Gate::settle(Waiting& waiting, bool last_chance) {
  const wire::Ticket& ticket = waiting.launch.ticket();
  const std::string key = key_of_(ticket.node());
  if (key.empty() && !last_chance) return false;  // not registered yet
  auto spec = check_launch(ticket, key, std::time(nullptr), {.uid = waiting.uid});
  if (!spec) {
    const auto claimed = wire::decode<wire::StepSpec>(ticket.spec()).value_or(wire::StepSpec());
    const std::string why(spec.error().what());
    here_.log.error("a launch by user {} on {} is refused: {}", waiting.uid, ticket.node(), why);
    refuse(*waiting.connection, named(claimed, ticket.node(), why));
    return true;
  }
  const NodeStep at{spec->node(), {spec->job_id(), spec->attempt(), spec->step_id()}};
  if (steps_.used(at)) {
    refuse(*waiting.connection, named(*spec, at.node, "Job credential has been used before"));
    return true;
  }
  switch (jobs_.readiness({at.node, at.key.job, at.key.attempt})) {
    case Jobs::Readiness::unknown:
    case Jobs::Readiness::beginning:
      if (!last_chance) return false;
      refuse(*waiting.connection, named(*spec, at.node, "Invalid job id specified"));
      return true;
    case Jobs::Readiness::over:
      refuse(*waiting.connection,
             named(*spec, at.node, "Job/step already completing or completed"));
      return true;
    case Jobs::Readiness::ready:
      break;
  }
  steps_.start(at, ticket.spec(), waiting.launch.program(), waiting.connection->release(),
               [](const Result<void>&) {});
  return true;
}

void Gate::look_again() {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto current = it++;
    if (!settle(*current, false)) continue;
    here_.loop.cancel(current->timer);
    waiting_.erase(current);
  }
}

void Gate::job_changed(const NodeJob&) {
  if (!waiting_.empty()) look_again();
}

void Gate::keys_changed() {
  look_again();
}

void Gate::attach(net::Connection& connection, const wire::Attach& message, uid_t uid) {
  const wire::Ticket& ticket = message.ticket();
  auto spec =
      check_access(ticket, key_of_(ticket.node()), std::time(nullptr), {.uid = uid}, "attach");
  if (!spec) return refuse(connection, spec.error());
  const NodeStep at{spec->node(), {spec->job_id(), spec->attempt(), spec->step_id()}};
  if (!steps_.known(at) || steps_.ended(at) != nullptr) {
    return refuse(connection,
                  fail(Code::job_completed, std::string(slurm_text(Code::job_completed))).error());
  }
  auto released = connection.release();
  if (auto done = steps_.attach(at, std::move(released), message.read_only()); !done) {
    here_.log.error("sattach to step {}.{} on {}: {}", at.key.job, step::step_name(at.key.step),
                    at.node, done.error().what());
  }
}

void Gate::put_file(net::Connection& connection, const wire::PutFile& message, uid_t uid) {
  const wire::Ticket& ticket = message.ticket();
  auto spec =
      check_access(ticket, key_of_(ticket.node()), std::time(nullptr), {.uid = uid}, "file");
  wire::Done refused;
  if (!spec) {
    *refused.mutable_refusal() = wire::to_refusal(spec.error());
  } else if (jobs_.readiness({spec->node(), spec->job_id(), spec->attempt()}) !=
             Jobs::Readiness::ready) {
    *refused.mutable_refusal() = wire::to_refusal(
        fail(Code::job_completed, std::string(slurm_text(Code::job_completed))).error());
  }
  if (refused.has_refusal()) {
    connection.send(refused);
    return connection.close();
  }
  // A process with the user's rights writes it: berth-stepd, which has the means to become the
  // user.
  int pair[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return connection.abort();
  const Fd theirs(pair[1]);
  auto link = net::Connection::adopt(here_.loop, Fd(pair[0]));
  auto released = connection.release();
  auto pid = here_.children.start({.program = here_.supervisor,
                                   .argv = {},
                                   .environment = {},
                                   .descriptors = {theirs.get(), released.fd.get()}},
                                  {});
  if (!pid) {
    here_.log.error("sbcast: {}", pid.error().what());
    return;
  }
  link->start({});
  link->send(message);
  wire::FileBlock early;
  early.set_data(released.unread);
  link->send(early);
  link->close(std::chrono::seconds(60));
}

}  // namespace berth::node
