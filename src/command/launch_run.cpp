// The loop: what is waited for, and input.
#include "command/launch_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "command/launch_terminal.h"

namespace berth::command {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

/// Connections that are being made at the same time.
constexpr std::size_t kMostDialling = 64;
/// More than this for a slow reader, and nodes are not read from.
constexpr std::size_t kMostBacklog = std::size_t{1} << 20;
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
  if (redial_at_ && steady_clock::now() < *redial_at_) return;
  std::size_t busy = 0;
  for (std::size_t i = 0; i < next_dial_; ++i) {
    const NodeLink::State state = nodes_[i].state();
    if (state == NodeLink::State::connecting || state == NodeLink::State::greeting) ++busy;
  }
  redial_at_.reset();
  while (next_dial_ < nodes_.size() && busy < kMostDialling) {
    NodeLink& node = nodes_[next_dial_];
    if (node.over() || node.dialled()) {
      ++next_dial_;
      continue;
    }
    if (auto begun = node.dial(); !begun) {
      launch_failed(node, begun.error());
      if (!node.over()) return;  // it is tried again in a moment
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

}  // namespace berth::command
