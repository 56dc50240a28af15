// What nodes and the controller say while a step runs.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "command/launch_run.h"
#include "command/messages.h"
#include "text/hostlist.h"

namespace berth::command {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr auto kGroupingTime = milliseconds(80);
/// Without --wait, tasks that go on long after the first one ended are mentioned once.
constexpr auto kMentionAfter = seconds(60);

constexpr std::chrono::milliseconds kRedialAfter{50};
/// More than KillWait, for nodes that are slow to say how a step of a job that is over has ended.
constexpr auto kLastPatience = seconds(12);

}  // namespace

void StepRun::set_state(Node& node, State state) {
  if (node.over()) return;
  node.state = state;
  if (!node.over()) return;
  grace_.go_on(node.what.name, steady_clock::now());  // what ended there does not stand still
  --left_;
  Link& link = links_[node.link];
  if (--link.left == 0) link.wire.close();
}

StepRun::Node* StepRun::node_in(const Link& link, std::string_view name) {
  if (!link.relays()) return &nodes_[link.nodes.first];
  for (std::size_t i = 0; i < link.nodes.count; ++i) {
    Node& node = nodes_[link.nodes.first + i];
    if (node.what.name == name) return &node;
  }
  return nullptr;
}

std::string_view StepRun::node_of(std::uint32_t rank) const {
  return rank < node_of_rank_.size() ? std::string_view(nodes_[node_of_rank_[rank]].what.name)
                                     : std::string_view();
}

void StepRun::take_link(Link& link) {
  while (!link.over()) {
    auto frame = link.wire.next();
    if (!frame) {
      link_lost(link, frame.error());
      return;
    }
    if (!*frame) return;
    take_frame(link, **frame);
  }
}

void StepRun::take_frame(Link& link, const wire::Frame& frame) {
  switch (frame.kind) {
    case wire::Kind::LaunchReply: {
      const auto reply = wire::decode<wire::LaunchReply>(frame.payload);
      if (!reply) return link_lost(link, net::Client::unexpected_frame(frame).error());
      // A relay that could not be made answers for nobody by name.
      if (reply->has_refusal() && link.relays() && reply->node().empty()) {
        return link_lost(link, wire::from_refusal(reply->refusal()));
      }
      Node* node = node_in(link, reply->node());
      if (node == nullptr || node->over()) return;
      if (reply->has_refusal()) {
        const Error why = wire::from_refusal(reply->refusal());
        if (!link.relays() && node->state == State::starting && dial_again(link, why)) return;
        return launch_failed(*node, why);
      }
      if (!link.begun) link.wire.answered();
      link.begun = true;
      set_state(*node, State::running);
      tell_spawner();
      if (options_.verbosity > 0) {
        info(fmt::format("launched StepId={} on node {}: {}", step_name_, node->what.name,
                         tasks_text({reply->ranks().begin(), reply->ranks().end()})));
      }
      if (ending_ != Ending::no) forward(ending_ == Ending::killed ? SIGKILL : SIGTERM);
      return;
    }
    case wire::Kind::Output:
      if (const auto output = wire::decode<wire::Output>(frame.payload)) take_output(*output);
      return;
    case wire::Kind::TasksExited:
      if (const auto exits = wire::decode<wire::TasksExited>(frame.payload)) take_exits(*exits);
      return;
    case wire::Kind::SupervisorLine:
      if (const auto line = wire::decode<wire::SupervisorLine>(frame.payload))
        take_line(line->line());
      return;
    case wire::Kind::Exchange:
      if (auto part = wire::decode<wire::Exchange>(frame.payload)) take_exchange(std::move(*part));
      return;
    case wire::Kind::Errand:
      if (const auto errand = wire::decode<wire::Errand>(frame.payload)) take_errand(*errand);
      return;
    case wire::Kind::AskLayout:
      return tell_layout();
    case wire::Kind::AbortStep:
      if (const auto abort = wire::decode<wire::AbortStep>(frame.payload)) take_abort(*abort);
      return;
    case wire::Kind::NodeDone: {
      const auto done = wire::decode<wire::NodeDone>(frame.payload);
      Node* node = done ? node_in(link, done->node()) : nullptr;
      if (node == nullptr) return;
      if (!done->trouble().empty() && !node->over()) {
        error(fmt::format("{}: {}", node->what.name, done->trouble()));
        failed_to_run_ = true;
      }
      set_state(*node, State::done);
      return;
    }
    case wire::Kind::NodeLost: {
      const auto lost = wire::decode<wire::NodeLost>(frame.payload);
      Node* node = lost ? node_in(link, lost->node()) : nullptr;
      link.begun = true;
      if (node != nullptr && !node->over()) node_lost(*node, wire::from_refusal(lost->why()));
      return;
    }
    case wire::Kind::Done: {
      const auto done = wire::decode<wire::Done>(frame.payload);
      if (done && done->has_refusal()) link_lost(link, wire::from_refusal(done->refusal()));
      return;
    }
    default:
      return link_lost(link, net::Client::unexpected_frame(frame).error());
  }
}

void StepRun::take_output(const wire::Output& output) {
  const auto& only = output.error() ? options_.only_error : options_.only_output;
  if (only && *only != output.rank()) return;
  Sink& sink = output.error() ? *err_ : *out_;
  if (output.error() && options_.ntasks > 1) remember_error_line(output.rank(), output.data());
  if (!output.data().empty()) {
    sink.put(merger_.take(output.rank(), output.error(), output.data()));
  }
  if (output.end()) sink.put(merger_.end(output.rank(), output.error()));
}

void StepRun::take_exits(const wire::TasksExited& exits) {
  const int count = std::min(exits.ranks_size(), exits.statuses_size());
  for (int i = 0; i < count; ++i) {
    exits_.add(std::string(node_of(exits.ranks(i))), exits.ranks(i), exits.statuses(i));
    note_failure(exits.ranks(i), exits.statuses(i));
  }
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
    tell_first_failure();
    failure_ended_it_ = true;
    tell_cancelled("TO TASK FAILURE");
    end_step(SIGTERM);
  }
}

void StepRun::take_line(const wire::Line& line) {
  const Message message = wire::from_line(line);
  say(message, "slurmstepd");
  const bool cancelled = message.text.find("CANCELLED") != std::string::npos;
  if (cancelled && !options_.attached && !failure_ended_it_) tell_abort();
}

bool StepRun::dial_again(Link& link, const Error& why) {
  if (why.code != Code::no_connection || options_.attached || ending_ != Ending::no) return false;
  const Moment now = steady_clock::now();
  if (!patience_until_) patience_until_ = now + options_.patience;
  if (now > *patience_until_) return false;
  link.wire.again();
  next_dial_ = std::min(next_dial_, static_cast<std::size_t>(&link - links_.data()));
  redial_at_ = now + kRedialAfter;
  return true;
}

void StepRun::launch_failed(Node& node, const Error& why) {
  if (node.state == State::running) return node_lost(node, why);
  set_state(node, State::lost);
  failed_to_run_ = true;
  if (options_.attached) {
    error(fmt::format("{}: {}", node.what.name, why.what()));
    return;
  }
  error(fmt::format("Task launch for StepId={} failed on node {}: {}", step_name_, node.what.name,
                    why.what()));
  if (!why.hint.empty()) say({Severity::plain, why.hint}, "berth");
  if (ending_ == Ending::no) {
    error(fmt::format("Application launch failed: {}", why.what()));
    if (!finished()) tell_abort();
    end_step(SIGKILL);
  }
}

void StepRun::link_lost(Link& link, const Error& why) {
  // An agent that is just being started again: nothing ran there, and the ticket is still good.
  if (!link.begun && dial_again(link, why)) return;
  if (!link.relays()) {
    Node& node = nodes_[link.nodes.first];
    return node.state == State::running ? node_lost(node, why) : launch_failed(node, why);
  }
  if (!link.begun) {
    for (std::size_t i = 1; i < link.nodes.count; ++i) {
      set_state(nodes_[link.nodes.first + i], State::lost);
    }
    return launch_failed(nodes_[link.nodes.first], why);
  }
  // A relay took its nodes along: the supervisors there end the step, as nobody is left to see it.
  std::vector<std::string> names;
  std::vector<Node*> waiting;
  for (std::size_t i = 0; i < link.nodes.count; ++i) {
    Node& node = nodes_[link.nodes.first + i];
    if (node.over()) continue;
    const bool unfinished =
        std::ranges::any_of(node.what.ranks, [&](std::uint32_t rank) { return !exits_.has(rank); });
    if (node.state == State::running && !unfinished) {
      set_state(node, State::lost);
      continue;
    }
    names.push_back(node.what.name);
    waiting.push_back(&node);
  }
  for (Node* node : waiting) set_state(*node, State::lost);
  if (!names.empty()) tell_lost(text::compress_hostlist(names), true);
}

void StepRun::node_lost(Node& node, const Error& why) {
  if (node.state != State::running) return launch_failed(node, why);
  set_state(node, State::lost);
  const bool unfinished =
      std::ranges::any_of(node.what.ranks, [&](std::uint32_t rank) { return !exits_.has(rank); });
  if (unfinished) tell_lost(node.what.name, false);
}

void StepRun::tell_lost(const std::string& nodes, bool relay) {
  if (options_.attached) return;
  failed_to_run_ = true;
  error(fmt::format("Node failure on {}", nodes));
  say({Severity::plain,
       relay ? fmt::format("the relay to {} was lost; the step is ended there", nodes)
             : fmt::format("the connection to the step's supervisor on {} was lost", nodes)},
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
        give_up_at_ = steady_clock::now() + options_.kill_wait + kLastPatience;
      }
    }
  }
}

}  // namespace berth::command
