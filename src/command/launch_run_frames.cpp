// What nodes and the controller say while a step runs.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "command/launch_run.h"
#include "command/messages.h"

namespace berth::command {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr auto kGroupingTime = milliseconds(80);
/// Without --wait, tasks that go on long after the first one ended are mentioned once.
constexpr auto kMentionAfter = seconds(60);

constexpr std::chrono::seconds kPatience{20};
constexpr std::chrono::milliseconds kRedialAfter{50};

}  // namespace

void StepRun::take_node(NodeLink& node) {
  while (!node.over()) {
    auto frame = node.next();
    if (!frame) {
      node_lost(node, frame.error());
      return;
    }
    if (!*frame) return;
    take_frame(node, **frame);
  }
}

void StepRun::take_frame(NodeLink& node, const wire::Frame& frame) {
  switch (frame.kind) {
    case wire::Kind::LaunchReply: {
      const auto reply = net::Client::reply_in<wire::LaunchReply>(frame);
      if (!reply) return launch_failed(node, reply.error());
      node.set_state(NodeLink::State::running);
      if (options_.verbosity > 0) {
        info(fmt::format("launched StepId={} on node {}: {}", step_name_, node.node(),
                         tasks_text({reply->ranks().begin(), reply->ranks().end()})));
      }
      if (ending_ != Ending::no) forward(ending_ == Ending::killed ? SIGKILL : SIGTERM);
      return;
    }
    case wire::Kind::Output:
      if (const auto output = wire::decode<wire::Output>(frame.payload)) take_output(*output);
      return;
    case wire::Kind::TasksExited:
      if (const auto exits = wire::decode<wire::TasksExited>(frame.payload))
        take_exits(node, *exits);
      return;
    case wire::Kind::SupervisorLine:
      if (const auto line = wire::decode<wire::SupervisorLine>(frame.payload))
        take_line(line->line());
      return;
    case wire::Kind::NodeDone: {
      const auto done = wire::decode<wire::NodeDone>(frame.payload);
      if (done && !done->trouble().empty()) {
        error(fmt::format("{}: {}", node.node(), done->trouble()));
        failed_to_run_ = true;
      }
      node.set_state(NodeLink::State::done);
      return;
    }
    case wire::Kind::Done: {
      const auto done = wire::decode<wire::Done>(frame.payload);
      if (done && done->has_refusal()) launch_failed(node, wire::from_refusal(done->refusal()));
      return;
    }
    default:
      return node_lost(node, net::Client::unexpected_frame(frame).error());
  }
}

void StepRun::take_output(const wire::Output& output) {
  const auto& only = output.error() ? options_.only_error : options_.only_output;
  if (only && *only != output.rank()) return;
  Sink& sink = output.error() ? *err_ : *out_;
  if (!output.data().empty()) {
    sink.put(merger_.take(output.rank(), output.error(), output.data()));
  }
  if (output.end()) sink.put(merger_.end(output.rank(), output.error()));
}

void StepRun::take_exits(NodeLink& node, const wire::TasksExited& exits) {
  const int count = std::min(exits.ranks_size(), exits.statuses_size());
  for (int i = 0; i < count; ++i) exits_.add(node.node(), exits.ranks(i), exits.statuses(i));
  const Moment now = steady_clock::now();
  if (!tell_at_) tell_at_ = now + kGroupingTime;
  if (!first_exit_) {
    first_exit_ = now;
    const bool limited = options_.wait && options_.wait->count() > 0;
    wait_until_ = now + (limited ? *options_.wait : kMentionAfter);
  }
  if (options_.kill_on_bad_exit && exits_.any_failed() && ending_ == Ending::no &&
      exits_.count() < options_.ntasks && !options_.attached) {
    tell_exits();
    info(fmt::format("Terminating StepId={}", step_name_));
    end_step(SIGTERM);
  }
}

void StepRun::take_line(const wire::Line& line) {
  const Message message = wire::from_line(line);
  say(message, "slurmstepd");
  if (message.text.find("CANCELLED") != std::string::npos && !options_.attached) tell_abort();
}

bool StepRun::dial_again(NodeLink& node, const Error& why) {
  if (why.code != Code::no_connection || options_.attached || ending_ != Ending::no) return false;
  const Moment now = steady_clock::now();
  if (!patience_until_) patience_until_ = now + kPatience;
  if (now > *patience_until_) return false;
  node.again();
  next_dial_ = std::min(next_dial_, static_cast<std::size_t>(&node - nodes_.data()));
  redial_at_ = now + kRedialAfter;
  return true;
}

void StepRun::launch_failed(NodeLink& node, const Error& why) {
  if (node.state() == NodeLink::State::running) return node_lost(node, why);
  // An agent that is just being started again: nothing ran there, and the ticket is still good.
  if (dial_again(node, why)) return;
  node.set_state(NodeLink::State::lost);
  failed_to_run_ = true;
  if (options_.attached) {
    error(fmt::format("{}: {}", node.node(), why.what()));
    return;
  }
  error(fmt::format("Task launch for StepId={} failed on node {}: {}", step_name_, node.node(),
                    why.what()));
  if (!why.hint.empty()) say({Severity::plain, why.hint}, "berth");
  if (ending_ == Ending::no) {
    error(fmt::format("Application launch failed: {}", why.what()));
    if (!finished()) tell_abort();
    end_step(SIGKILL);
  }
}

void StepRun::node_lost(NodeLink& node, const Error& why) {
  if (node.state() != NodeLink::State::running) return launch_failed(node, why);
  node.set_state(NodeLink::State::lost);
  if (options_.attached) return;
  const bool unfinished =
      std::ranges::any_of(node.ranks(), [&](std::uint32_t rank) { return !exits_.has(rank); });
  if (!unfinished) return;
  failed_to_run_ = true;
  error(fmt::format("Node failure on {}", node.node()));
  say({Severity::plain,
       fmt::format("the connection to the step's supervisor on {} was lost", node.node())},
      "berth");
  if (!options_.no_kill && ending_ == Ending::no && !finished()) {
    tell_abort();
    end_step(SIGTERM);
  }
}

void StepRun::take_controller() {
  if (!link_->connected()) {
    link_->try_again();
    return;
  }
  link_->flush();
  while (auto frame = link_->next()) {
    if (frame->kind == wire::Kind::Notice) {
      if (const auto notice = wire::decode<wire::Notice>(frame->payload)) {
        say(wire::from_line(notice->line()), options_.program);
      }
    } else if (frame->kind == wire::Kind::JobEnded) {
      const auto ended = wire::decode<wire::JobEnded>(frame->payload);
      if (ended && ended->state() != "COMPLETED" && !finished()) {
        info(fmt::format("Force Terminated JobId={}", options_.job_id));
        tell_abort();
      }
    }
  }
}

}  // namespace berth::command
