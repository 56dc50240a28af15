// What gate.h promises.
#include "node/gate.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "auth/ticket.h"
#include "node/launches.h"
#include "node/tickets.h"
#include "wire/field_limits.h"
#include "wire/refusal.h"

namespace berth::node {
namespace {

/// A launch may overtake BeginJob, which comes by way of the controller.
constexpr std::chrono::seconds kPatience{10};

/// Clients of other machines that came before this agent was registered.
constexpr std::size_t kMostEarly = 256;

/// Of one user, while they wait for their job; and while there is no key to check tickets with.
constexpr std::size_t kWaitingBytes = std::size_t{32} << 20;
constexpr std::size_t kUncheckedBytes = std::size_t{4} << 20;
/// Of all users together.
constexpr std::size_t kAllWaitingBytes = std::size_t{96} << 20;

/// Relays of one job at a time: one for each step of it that goes on to other nodes from here.
constexpr std::ptrdiff_t kMostRelays = 64;
/// Beyond KillWait, in which the steps of an ended job end on all its nodes: what they say comes by
/// relays.
constexpr std::chrono::seconds kRelayLinger{5};

NodeJob job_of(const NodeStep& step) {
  return {step.node, step.key.job, step.key.attempt};
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
  if (!address.is_unix() && !keyed_) {
    auto context =
        tls::Context::keyed_server([this](std::string_view name) { return key_of_session(name); });
    if (!context) return pass(std::move(context.error()));
    keyed_ = std::move(*context);
  }
  listeners_.push_back(std::move(*listener));
  return {};
}

void Gate::accept(std::shared_ptr<net::Connection> connection) {
  if (connection->is_unix()) {
    const Caller caller{.uid = connection->peer()->uid, .gid = connection->peer()->gid};
    auto visit = door_.enter(connection, {.uid = caller.uid, .free = caller.uid == 0});
    if (visit) serve(*connection, caller, std::move(visit));
    return;
  }
  accept_remote(connection);
}

std::optional<std::string> Gate::key_of_session(std::string_view name) const {
  const auto session = wire::decode<wire::SessionName>(name);
  if (!session || session->expires() < now_()) return std::nullopt;
  const std::string key = key_of_(session->node());
  if (key.empty()) return std::nullopt;
  return auth::session_key(key, name);
}

void Gate::accept_remote(const std::shared_ptr<net::Connection>& connection) {
  if (!have_keys_) {
    if (early_.size() < kMostEarly) early_.push_back(connection);
    return;
  }
  const std::shared_ptr<net::Visit> visit = door_.enter_unknown(connection);
  if (!visit) return;
  connection->secure_handover(keyed_->open());
  const auto caller = std::make_shared<Caller>();
  connection->start({.on_frame = [this, caller](net::Connection& c,
                                                const wire::Frame& f) { take(c, f, *caller); },
                     .on_closed = [](net::Connection&, std::string_view) {},
                     .on_drained = {},
                     .on_secured =
                         [visit, caller](net::Connection& c) {
                           const auto session =
                               wire::decode<wire::SessionName>(c.session()->key_name());
                           if (!session) return c.close();
                           *caller = {.uid = session->uid(), .gid = session->gid()};
                           if (!visit->introduce(c.shared_from_this(),
                                                 {.uid = caller->uid, .free = caller->uid == 0})) {
                             return c.close();
                           }
                           c.limit_frames(caller->uid == 0 ? wire::kMostBytes : wire::kUserBytes);
                         },
                     .on_partial = [visit](net::Connection& c, std::size_t held,
                                           std::size_t bytes) { visit->partial(c, held, bytes); }});
}

void Gate::serve(net::Connection& connection, const Caller& caller,
                 std::shared_ptr<net::Visit> visit) {
  connection.limit_frames(caller.uid == 0 ? wire::kMostBytes : wire::kUserBytes);
  connection.start(
      {.on_frame = [this, caller](net::Connection& c, const wire::Frame& f) { take(c, f, caller); },
       .on_closed = [](net::Connection&, std::string_view) {},
       .on_drained = {},
       .on_partial = [visit](net::Connection& c, std::size_t held,
                             std::size_t bytes) { visit->partial(c, held, bytes); }});
}

void Gate::take(net::Connection& connection, const wire::Frame& frame, const Caller& caller) {
  if (auto good = wire::check_fields(frame.kind, frame.payload); !good) {
    return refuse(connection, good.error());
  }
  switch (frame.kind) {
    case wire::Kind::CallController:
      // Only the kernel's word is passed on.
      if (const auto m = wire::decode<wire::CallController>(frame.payload);
          m && connection.is_unix()) {
        return pass_to_controller(connection, *m, caller);
      }
      break;
    case wire::Kind::Launch:
      if (auto m = wire::decode<wire::Launch>(frame.payload)) {
        return launch(connection.shared_from_this(), std::move(*m), frame.size, caller.uid);
      }
      break;
    case wire::Kind::Relay:
      if (auto m = wire::decode<wire::Relay>(frame.payload); m && m->nodes_size() > 0) {
        return relay(connection, std::move(*m), caller);
      }
      break;
    case wire::Kind::Attach:
      if (const auto m = wire::decode<wire::Attach>(frame.payload)) {
        return attach(connection, *m, caller.uid);
      }
      break;
    case wire::Kind::PutFile:
      if (const auto m = wire::decode<wire::PutFile>(frame.payload)) {
        return put_file(connection, *m, caller.uid);
      }
      break;
    case wire::Kind::SwitchNodes:
      if (const auto m = wire::decode<wire::SwitchNodes>(frame.payload);
          m && connection.is_unix()) {
        return switch_nodes(connection, *m, caller.uid);
      }
      break;
    default:
      break;
  }
  connection.close();
}

void Gate::pass_to_controller(net::Connection& connection, const wire::CallController& message,
                              const Caller& caller) {
  auto again = net::Connection::take_up(here_.loop, connection.release());
  if (!again) return;
  go_between_.serve(door_, *again, caller.uid, caller.gid, message.program());
}

void Gate::switch_nodes(net::Connection& connection, const wire::SwitchNodes& message, uid_t uid) {
  wire::Done reply;
  const Result<void> done =
      switch_ ? switch_(message, uid)
              : fail(Code::unsupported, "these nodes are not pretended ones: nothing is switched");
  if (!done) *reply.mutable_refusal() = wire::to_refusal(done.error());
  connection.send(reply);
  connection.close();
}

void Gate::launch(const std::shared_ptr<net::Connection>& connection, wire::Launch message,
                  std::size_t bytes, uid_t uid) {
  connection->pause();
  connection->keep();
  const auto spec = wire::decode<wire::StepSpec>(message.ticket().spec());
  NodeJob job;
  if (spec) job = {spec->node(), spec->job_id(), spec->attempt()};
  waiting_.push_back({.connection = connection,
                      .launch = std::move(message),
                      .job = job,
                      .uid = uid,
                      .bytes = bytes});
  const auto it = std::prev(waiting_.end());
  if (settle(*it, false)) {
    waiting_.erase(it);
    return;
  }
  if (!room_to_wait(*it)) {
    const std::string node = it->launch.ticket().node();
    refuse(*connection, launch_error(spec.value_or(wire::StepSpec()), node,
                                     "too many launches of this user wait for their jobs here"));
    waiting_.erase(it);
    return;
  }
  it->timer = here_.loop.after(kPatience, [this, it] {
    settle(*it, true);
    waiting_.erase(it);
  });
}

bool Gate::room_to_wait(const Waiting& waiting) const {
  if (waiting.uid == 0) return true;
  std::size_t all = 0;
  std::size_t his = 0;
  for (const Waiting& one : waiting_) {
    if (one.uid == 0) continue;
    all += one.bytes;
    if (one.uid == waiting.uid) his += one.bytes;
  }
  const bool checked = !key_of_(waiting.launch.ticket().node()).empty();
  return all <= kAllWaitingBytes && his <= (checked ? kWaitingBytes : kUncheckedBytes);
}

bool Gate::settle(Waiting& waiting, bool last_chance) {
  const wire::Ticket& ticket = waiting.launch.ticket();
  LaunchVerdict verdict = decide_launch(ticket, key_of_(ticket.node()), now_(),
                                        {.uid = waiting.uid}, last_chance, steps_, jobs_);
  if (std::holds_alternative<LaunchWaits>(verdict)) return false;
  if (const auto* refused = std::get_if<LaunchRefused>(&verdict)) {
    if (!refused->ticket_fault.empty()) {
      here_.log.of_user(waiting.uid)
          .error("a launch by user {} on {} is refused: {}", waiting.uid, ticket.node(),
                 refused->ticket_fault);
    }
    refuse(*waiting.connection, refused->why);
    return true;
  }
  steps_.start(std::get<LaunchStarts>(verdict).at, ticket.spec(),
               std::move(*waiting.launch.mutable_program()), waiting.connection->release(),
               [](const Result<void>&) {});
  return true;
}

void Gate::look_again(const NodeJob* only) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto current = it++;
    if (only != nullptr && current->job != *only) continue;
    if (!settle(*current, false)) continue;
    here_.loop.cancel(current->timer);
    waiting_.erase(current);
  }
}

void Gate::job_changed(const NodeJob& at) {
  if (jobs_.readiness(at) == Jobs::Readiness::over) {
    end_relays_after(std::chrono::seconds(here_.config.kill_wait_seconds()) + kRelayLinger, at);
  }
  look_again(&at);
}

void Gate::keys_changed() {
  have_keys_ = true;
  for (const auto& connection : std::exchange(early_, {})) accept_remote(connection);
  look_again(nullptr);
}

void Gate::attach(net::Connection& connection, const wire::Attach& message, uid_t uid) {
  const wire::Ticket& ticket = message.ticket();
  auto spec = check_access(ticket, key_of_(ticket.node()), now_(), {.uid = uid}, "attach");
  if (!spec) return refuse(connection, spec.error());
  const NodeStep at{spec->node(), {spec->job_id(), spec->attempt(), spec->step_id()}};
  if (!steps_.known(at) || steps_.ended(at) != nullptr) {
    return refuse(connection,
                  fail(Code::job_completed, std::string(slurm_text(Code::job_completed))).error());
  }
  auto released = connection.release();
  if (auto done = steps_.attach(at, std::move(released), message.read_only()); !done) {
    here_.log.of_user(uid).error("sattach to step {}.{} on {}: {}", at.key.job,
                                 step::step_name(at.key.step), at.node, done.error().what());
  }
}

void Gate::put_file(net::Connection& connection, const wire::PutFile& message, uid_t uid) {
  const wire::Ticket& ticket = message.ticket();
  auto spec = check_access(ticket, key_of_(ticket.node()), now_(), {.uid = uid}, "file");
  const auto refuse_file = [&](const Error& error) {
    wire::Done refused;
    *refused.mutable_refusal() = wire::to_refusal(error);
    connection.send(refused);
    connection.close();
  };
  if (!spec) return refuse_file(spec.error());
  const NodeJob at{spec->node(), spec->job_id(), spec->attempt()};
  const wire::BeginJob* job = jobs_.begun_with(at);
  if (job == nullptr || jobs_.readiness(at) != Jobs::Readiness::ready) {
    return refuse_file(
        fail(Code::job_completed, std::string(slurm_text(Code::job_completed))).error());
  }
  if (auto room = receivers_.room_for(at); !room) return refuse_file(room.error());
  receivers_.start(*job, message, connection.release());
}

template <class Order>
Result<pid_t> Gate::hand_over(net::Connection::Released client, Order order,
                              Children::Exited exited) {
  order.set_unread(std::move(client.unread));
  order.set_unsent(std::move(client.unsent));
  order.set_session_key(std::move(client.key));
  int pair[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return fail(Code::io, fmt::format("socketpair: {}", std::strerror(errno)));
  }
  const Fd theirs(pair[1]);
  auto link = net::Connection::adopt(here_.loop, Fd(pair[0]));
  auto pid = here_.children.start({.program = here_.supervisor,
                                   .argv = {},
                                   .environment = {},
                                   .descriptors = {theirs.get(), client.fd.get()}},
                                  std::move(exited));
  if (!pid) return pass(std::move(pid.error()));
  link->start({});
  link->send(order);
  link->close(std::chrono::seconds(60));
  return *pid;
}

Result<void> Gate::may_relay(const wire::StepSpec& spec) const {
  const NodeStep at{spec.node(), {spec.job_id(), spec.attempt(), spec.step_id()}};
  const auto refused = [&](std::string_view why) {
    return pass(launch_error(spec, at.node, std::string(why)));
  };
  if (steps_.used(at) || relays_.contains(at)) {
    return refused("Job credential has been used before");
  }
  if (jobs_.readiness(job_of(at)) == Jobs::Readiness::over) {
    return refused("Job/step already completing or completed");
  }
  const auto of_job = std::ranges::count_if(
      relays_, [&](const auto& relay) { return job_of(relay.first) == job_of(at); });
  if (of_job < kMostRelays) return {};
  return refused(fmt::format("{} steps of this job are passed on by this node already", of_job));
}

void Gate::end_relays_after(std::chrono::seconds delay, const NodeJob& job) {
  here_.loop.after(delay, [this, job, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) end_relays(job);
  });
}

void Gate::end_relays(const NodeJob& job) {
  const auto readiness = jobs_.readiness(job);
  if (readiness != Jobs::Readiness::over && readiness != Jobs::Readiness::unknown) return;
  for (const auto& [at, pid] : relays_) {
    // Nobody has waited for it: the number is still its own.
    if (job_of(at) == job) ::kill(pid, SIGKILL);
  }
}

void Gate::relay(net::Connection& connection, wire::Relay message, const Caller& caller) {
  const wire::Ticket& ticket = message.nodes(0).ticket();
  const std::string key = key_of_(ticket.node());
  if (key.empty()) {  // not registered yet: the client dials again
    return refuse(connection, fail(Code::no_connection, "the node is just starting").error());
  }
  // A relay is made for those who may launch here, and for nobody else. The other tickets are
  // looked at where they are for.
  auto spec = check_launch(ticket, key, now_(), {.uid = caller.uid});
  if (!spec) {
    const std::string why(spec.error().what());
    here_.log.of_user(caller.uid)
        .error("a relay of user {} on {} is refused: {}", caller.uid, ticket.node(), why);
    const auto claimed = wire::decode<wire::StepSpec>(ticket.spec()).value_or(wire::StepSpec());
    return refuse(connection, launch_error(claimed, ticket.node(), why));
  }
  const NodeStep at{spec->node(), {spec->job_id(), spec->attempt(), spec->step_id()}};
  if (auto may = may_relay(*spec); !may) return refuse(connection, may.error());
  wire::SuperviseRelay order;
  order.set_uid(caller.uid);
  order.set_gid(caller.gid);
  order.mutable_relay()->Swap(&message);
  auto released = connection.release();
  const auto pid =
      hand_over(std::move(released), std::move(order), [this, at](int) { relays_.erase(at); });
  if (!pid) {
    return here_.log.of_user(caller.uid)
        .error("a relay of user {} on {}: {}", caller.uid, at.node, pid.error().what());
  }
  relays_[at] = *pid;
  // It may overtake BeginJob, or come with a ticket of a job that is over and forgotten.
  end_relays_after(kPatience, job_of(at));
}

}  // namespace berth::node
