#include "command/launch_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "command/launch_terminal.h"
#include "command/messages.h"

namespace berth::command {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

/// Connections that are being made at the same time.
constexpr std::size_t kMostDialling = 64;
/// More than this for a slow reader, and nodes are not read from.
constexpr std::size_t kMostBacklog = std::size_t{1} << 20;
constexpr auto kGroupingTime = milliseconds(80);
constexpr auto kInterruptPause = seconds(1);
/// Without --wait, tasks that go on long after the first one ended are mentioned once.
constexpr auto kMentionAfter = seconds(60);
constexpr auto kSlowReader = seconds(300);

}  // namespace

StepRun::StepRun(RunOptions options, std::vector<NodeStart> starts, ControllerLink* link,
                 SignalFd& signals)
    : options_(std::move(options)),
      link_(link),
      signals_(signals),
      merger_(options_.ntasks, options_.label,
              !options_.unbuffered && !options_.pty && options_.ntasks > 1),
      out_(options_.output ? options_.output : std::make_shared<Sink>(STDOUT_FILENO)),
      err_(options_.error ? options_.error : std::make_shared<Sink>(STDERR_FILENO)),
      own_(options_.error ? std::make_shared<Sink>(STDERR_FILENO) : err_),
      step_name_(fmt::format("{}.{}", options_.job_id, options_.step_id)),
      input_open_(options_.input) {
  nodes_.reserve(starts.size());
  for (NodeStart& start : starts) nodes_.emplace_back(std::move(start), options_.program);
}

int StepRun::run() {
  std::optional<RawTerminal> raw;
  if (options_.pty) raw.emplace(STDIN_FILENO);
  raw_ = raw.has_value();
  while (!finished()) {
    dial_some();
    poll_once();
    run_timers();
  }
  drain();
  raw.reset();
  raw_ = false;
  tell_exits();
  const bool by_us = ending_ != Ending::no || abort_told_;
  if (exits_.any_terminated() && !by_us && !options_.attached) {
    info(fmt::format("Force Terminated StepId={}", step_name_));
  }
  if (quit_ || failed_to_run_) return std::max(exits_.exit_code(), 1);
  return exits_.exit_code();
}

int StepRun::wait_status() const {
  const int status = exits_.wait_status();
  return status == 0 && (quit_ || failed_to_run_) ? 1 << 8 : status;
}

bool StepRun::finished() const {
  return quit_ || std::ranges::all_of(nodes_, [](const NodeLink& node) { return node.over(); });
}

void StepRun::dial_some() {
  if (next_dial_ >= nodes_.size()) return;
  std::size_t busy = 0;
  for (std::size_t i = 0; i < next_dial_; ++i) {
    const NodeLink::State state = nodes_[i].state();
    if (state == NodeLink::State::connecting || state == NodeLink::State::greeting) ++busy;
  }
  redial_at_.reset();
  while (next_dial_ < nodes_.size() && busy < kMostDialling) {
    NodeLink& node = nodes_[next_dial_];
    if (node.over()) {
      ++next_dial_;
      continue;
    }
    if (auto begun = node.dial(); !begun) {
      launch_failed(node, begun.error());
      ++next_dial_;
      continue;
    }
    if (!node.dialled()) {
      redial_at_ = steady_clock::now() + milliseconds(2);
      return;
    }
    if (node.state() == NodeLink::State::connecting) ++busy;
    ++next_dial_;
  }
}

int StepRun::timeout() const {
  std::optional<Moment> soonest;
  for (const auto& moment : {tell_at_, kill_at_, wait_until_, redial_at_}) {
    if (moment && (!soonest || *moment < *soonest)) soonest = moment;
  }
  int timeout = -1;
  if (soonest) {
    const auto left = std::chrono::ceil<milliseconds>(*soonest - steady_clock::now());
    timeout = static_cast<int>(std::clamp<milliseconds::rep>(left.count(), 0, 60'000));
  }
  if (link_ != nullptr) {
    if (const auto retry = link_->until_try()) {
      const int ms = static_cast<int>(retry->count()) + 1;
      timeout = timeout < 0 ? ms : std::min(timeout, ms);
    }
  }
  // A terminal may come to the foreground without any event.
  if (input_open_ && !wants_input()) timeout = timeout < 0 ? 1000 : std::min(timeout, 1000);
  return timeout;
}

bool StepRun::wants_input() const {
  if (!input_open_) return false;
  bool any_running = false;
  for (const NodeLink& node : nodes_) {
    if (node.backlog() > kMostBacklog) return false;
    any_running = any_running || node.state() == NodeLink::State::running;
  }
  // Input that came before the tasks did would be lost if the step failed to start.
  if (!any_running) return false;
  return options_.input_file || may_read_terminal(STDIN_FILENO);
}

void StepRun::poll_once() {
  std::vector<pollfd> polled;
  polled.reserve(nodes_.size() + 5);
  const bool input = wants_input();
  const int input_fd = options_.input_file ? options_.input_file.get() : STDIN_FILENO;
  polled.push_back({signals_.fd(), POLLIN, 0});
  polled.push_back(
      {link_ != nullptr ? link_->fd() : -1, link_ != nullptr ? link_->events() : short{0}, 0});
  polled.push_back({input ? input_fd : -1, POLLIN, 0});
  polled.push_back({out_->backlog() > 0 ? out_->fd() : -1, POLLOUT, 0});
  polled.push_back({err_->backlog() > 0 ? err_->fd() : -1, POLLOUT, 0});
  constexpr std::size_t kFixed = 5;
  const bool slow = out_->backlog() > kMostBacklog || err_->backlog() > kMostBacklog;
  bool waiting = false;
  for (NodeLink& node : nodes_) {
    short events = node.events();
    if (slow) events = static_cast<short>(events & ~POLLIN);
    polled.push_back({node.fd(), events, 0});
    waiting = waiting || (!slow && node.has_frame());
  }
  ::poll(polled.data(), polled.size(), waiting ? 0 : timeout());

  while (const auto signal = signals_.take()) take_signal(*signal);
  if (link_ != nullptr) take_controller();
  if (polled[2].revents != 0) take_input();
  out_->flush();
  err_->flush();
  own_->flush();
  if ((out_->broken() || err_->broken()) && !pipe_told_) {
    // The reader of a pipe is gone (srun … | head): the tasks would be told by the kernel.
    pipe_told_ = true;
    forward(SIGPIPE);
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    NodeLink& node = nodes_[i];
    const short events = polled[kFixed + i].revents;
    if (node.over() || polled[kFixed + i].fd < 0) continue;
    if (auto done = node.ready(events); !done) {
      node_lost(node, done.error());
      continue;
    }
    if (!slow && ((events & (POLLIN | POLLHUP | POLLERR)) != 0 || node.has_frame())) {
      take_node(node);
    }
  }
}

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

void StepRun::launch_failed(NodeLink& node, const Error& why) {
  if (node.state() == NodeLink::State::running) return node_lost(node, why);
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

void StepRun::take_input() {
  std::array<char, 32768> buffer;
  const int fd = options_.input_file ? options_.input_file.get() : STDIN_FILENO;
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  wire::Input input;
  if (options_.input_rank) input.set_rank(*options_.input_rank);
  if (n <= 0) {
    input.set_end(true);
    input_open_ = false;
  } else {
    input.set_data(buffer.data(), static_cast<std::size_t>(n));
  }
  for (NodeLink& node : nodes_) {
    const bool meant = !options_.input_rank ||
                       std::ranges::find(node.ranks(), *options_.input_rank) != node.ranks().end();
    if (!meant || node.over()) continue;
    node.send(input);
    if (auto sent = node.ready(POLLOUT); !sent) node_lost(node, sent.error());
  }
}

void StepRun::drain() {
  // What a task left of a last line.
  out_->put(merger_.rest(false));
  err_->put(merger_.rest(true));
  out_->drain(kSlowReader);
  err_->drain(kSlowReader);
  own_->drain(kSlowReader);
}

void StepRun::run_timers() {
  const Moment now = steady_clock::now();
  if (tell_at_ && now >= *tell_at_) tell_exits();
  if (kill_at_ && now >= *kill_at_) {
    kill_at_.reset();
    ending_ = Ending::killed;
    forward(SIGKILL);
  }
  if (wait_until_ && now >= *wait_until_ && first_exit_) {
    wait_until_.reset();
    const auto ago = std::chrono::duration_cast<seconds>(now - *first_exit_).count();
    if (!finished() && ending_ == Ending::no && !options_.attached) {
      info(fmt::format("First task exited {}s ago", ago));
      tell_status();
      if (options_.wait && options_.wait->count() > 0) {
        info(fmt::format("Terminating StepId={}", step_name_));
        end_step(SIGTERM);
      }
    }
  }
}

void StepRun::take_signal(int signal) {
  switch (signal) {
    case SIGINT:
      return interrupt();
    case SIGWINCH:
      if (const auto window = window_of(STDIN_FILENO); window && options_.pty) {
        wire::WindowSize size;
        size.set_rows(window->rows);
        size.set_columns(window->columns);
        for (NodeLink& node : nodes_) {
          if (node.state() != NodeLink::State::running) continue;
          node.send(size);
          if (auto sent = node.ready(POLLOUT); !sent) node_lost(node, sent.error());
        }
      }
      return;
    case SIGTERM:
    case SIGQUIT:
    case SIGHUP:
      if (options_.ignored_signals.contains(signal)) return;
      if (options_.attached) {
        quit_ = true;
        return;
      }
      if (ending_ == Ending::no) {
        info("forcing job termination");
        tell_abort();
        end_step(SIGTERM);
      } else {
        forward(SIGKILL);
      }
      return;
    case SIGCONT:
    case SIGCHLD:
      return;
    default:
      if (!options_.ignored_signals.contains(signal)) forward(signal);
  }
}

void StepRun::interrupt() {
  if (options_.attached) {
    quit_ = true;
    return;
  }
  if (options_.ignored_signals.contains(SIGINT)) return;
  const Moment now = steady_clock::now();
  const bool again = last_interrupt_ && now - *last_interrupt_ <= kInterruptPause;
  last_interrupt_ = now;
  if (ending_ != Ending::no) {
    if (!again) return;
    // The third within a moment: srun leaves, and its connections with it.
    forward(SIGKILL);
    quit_ = true;
    return;
  }
  if (again || options_.disable_status || options_.quit_on_interrupt) {
    info(fmt::format("sending Ctrl-C to StepId={}", step_name_));
    tell_abort();
    end_step(SIGINT);
    return;
  }
  info("interrupt (one more within 1 sec to abort)");
  tell_status();
}

void StepRun::forward(int signal) {
  wire::SignalTasks tell;
  tell.set_signal(signal);
  for (NodeLink& node : nodes_) {
    if (node.state() != NodeLink::State::running) continue;
    node.send(tell);
    if (auto sent = node.ready(POLLOUT); !sent) node_lost(node, sent.error());
  }
}

void StepRun::end_step(int first_signal) {
  ending_ = Ending::asked;
  // A node that has not answered yet finds nobody there when it does.
  for (NodeLink& node : nodes_) {
    if (!node.over() && node.state() != NodeLink::State::running) {
      node.set_state(NodeLink::State::lost);
      failed_to_run_ = true;
    }
  }
  if (first_signal != SIGTERM) forward(first_signal);
  if (first_signal == SIGKILL) {
    ending_ = Ending::killed;
    return;
  }
  forward(SIGCONT);
  forward(SIGTERM);
  kill_at_ = steady_clock::now() + options_.kill_wait;
}

void StepRun::tell_abort() {
  if (abort_told_) return;
  abort_told_ = true;
  info(fmt::format("Job step aborted: Waiting up to {} seconds for job step to finish.",
                   options_.kill_wait.count() + 2));
}

void StepRun::tell_exits() {
  tell_at_.reset();
  for (const std::string& line : exits_.lines(options_.reduce_exit_lines)) error(line);
}

void StepRun::tell_status() {
  std::set<std::uint32_t> running;
  std::set<std::uint32_t> ended;
  std::set<std::uint32_t> starting;
  for (const NodeLink& node : nodes_) {
    for (const std::uint32_t rank : node.ranks()) {
      if (exits_.has(rank)) {
        ended.insert(rank);
      } else if (node.state() == NodeLink::State::running) {
        running.insert(rank);
      } else {
        starting.insert(rank);
      }
    }
  }
  const auto tell = [&](const std::set<std::uint32_t>& ranks, std::string_view state) {
    if (!ranks.empty()) info(fmt::format("StepId={} {}: {}", step_name_, tasks_text(ranks), state));
  };
  tell(starting, "unknown");
  tell(running, "running");
  tell(ended, "exited");
}

void StepRun::info(const std::string& text) {
  if (!options_.quiet) say({Severity::plain, text}, options_.program);
}

void StepRun::error(const std::string& text) {
  say({Severity::error, text}, options_.program);
}

void StepRun::say(const Message& message, std::string_view who) {
  // A raw terminal does not go back to the first column by itself.
  own_->put(render(message, who) + (raw_ ? "\r\n" : "\n"));
}

}  // namespace berth::command
