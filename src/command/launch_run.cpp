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

StepRun::StepRun(RunOptions options, std::vector<StepNode> nodes,
                 std::vector<launch::Branch> branches, ControllerLink* link, SignalFd& signals)
    : options_(std::move(options)),
      left_(nodes.size()),
      link_(link),
      signals_(signals),
      merger_(options_.ntasks, options_.label,
              !options_.unbuffered && !options_.pty && options_.ntasks > 1),
      out_(options_.output ? options_.output : std::make_shared<Sink>(STDOUT_FILENO)),
      err_(options_.error ? options_.error : std::make_shared<Sink>(STDERR_FILENO)),
      own_(options_.error ? std::make_shared<Sink>(STDERR_FILENO) : err_),
      step_name_(fmt::format("{}.{}", options_.job_id, options_.step_id)),
      input_open_(options_.input),
      exchanges_(nodes.size(), true) {
  nodes_.reserve(nodes.size());
  for (StepNode& node : nodes) {
    for (const std::uint32_t rank : node.ranks) {
      if (rank >= node_of_rank_.size()) node_of_rank_.resize(rank + 1);
      node_of_rank_[rank] = static_cast<std::uint32_t>(nodes_.size());
    }
    nodes_.push_back({.what = std::move(node)});
  }
  links_.reserve(branches.size());
  for (launch::Branch& branch : branches) {
    for (std::size_t i = 0; i < branch.nodes.count; ++i) {
      nodes_[branch.nodes.first + i].link = links_.size();
    }
    links_.push_back(
        {.wire = launch::NodeLink(branch), .nodes = branch.nodes, .left = branch.nodes.count});
  }
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
  const bool by_us = (ending_ != Ending::no && !failure_ended_it_) || abort_told_;
  if (exits_.any_terminated() && !by_us && !options_.attached) {
    info(fmt::format("Force Terminated StepId={}", step_name_));
  }
  if (abort_code_) return *abort_code_;
  // The others were ended by srun: what they ended with says nothing.
  if (grace_ended_it_) {
    return spawned_failed_first_ ? spawned_code_ : exit_code_of(first_failed_->second);
  }
  if (quit_ || failed_to_run_) return std::max(exits_.exit_code(), 1);
  return exits_.exit_code() != 0 ? exits_.exit_code() : spawned_code_;
}

int StepRun::wait_status() const {
  if (abort_code_) return *abort_code_ << 8;
  if (grace_ended_it_) return spawned_failed_first_ ? spawned_code_ << 8 : first_failed_->second;
  const int status = exits_.wait_status();
  return status == 0 && (quit_ || failed_to_run_) ? 1 << 8 : status;
}

bool StepRun::finished() const {
  return quit_ || (left_ == 0 && spawned_.empty());
}

void StepRun::dial_some() {
  if (next_dial_ >= links_.size()) return;
  if (redial_at_ && steady_clock::now() < *redial_at_) return;
  std::size_t busy = 0;
  for (std::size_t i = 0; i < next_dial_; ++i) {
    if (links_[i].wire.connecting()) ++busy;
  }
  redial_at_.reset();
  while (next_dial_ < links_.size() && busy < kMostDialling) {
    Link& link = links_[next_dial_];
    if (link.over() || link.wire.dialled()) {
      ++next_dial_;
      continue;
    }
    if (auto begun = link.wire.dial(); !begun) {
      link_lost(link, begun.error());
      if (!link.over()) return;  // it is tried again in a moment
      continue;
    }
    if (!link.wire.dialled()) {
      redial_at_ = steady_clock::now() + milliseconds(2);
      return;
    }
    if (link.wire.connecting()) ++busy;
    ++next_dial_;
  }
}

int StepRun::timeout() const {
  std::optional<Moment> soonest;
  for (const auto& moment :
       {tell_at_, kill_at_, wait_until_, redial_at_, give_up_at_, grace_.until()}) {
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
  bool any_begun = false;
  for (const Link& link : links_) {
    if (link.wire.backlog() > kMostBacklog) return false;
    any_begun = any_begun || (link.begun && !link.over());
  }
  // Input that came before the tasks did would be lost if the step failed to start.
  if (!any_begun) return false;
  return options_.input_file || may_read_terminal(STDIN_FILENO);
}

void StepRun::poll_once() {
  std::vector<pollfd> polled;
  polled.reserve(links_.size() + 5);
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
  for (Link& link : links_) {
    short events = link.wire.events();
    if (slow) events = static_cast<short>(events & ~POLLIN);
    polled.push_back({link.wire.fd(), events, 0});
    waiting = waiting || (!slow && link.wire.has_frame());
  }
  for (const Spawned& step : spawned_) polled.push_back({step.srun.says.get(), POLLIN, 0});
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
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    const short events = polled[kFixed + i].revents;
    if (link.over() || polled[kFixed + i].fd < 0) continue;
    if (auto done = link.wire.ready(events); !done) {
      link_lost(link, done.error());
      continue;
    }
    if (!slow && ((events & (POLLIN | POLLHUP | POLLERR)) != 0 || link.wire.has_frame())) {
      take_link(link);
    }
  }
  // Links may have brought more of them: those were not polled.
  for (std::size_t i = 0; kFixed + links_.size() + i < polled.size(); ++i) {
    if (polled[kFixed + links_.size() + i].revents != 0) take_spawned(spawned_[i]);
  }
  std::erase_if(spawned_, [](const Spawned& step) { return !step.srun.says; });
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
  const std::string frame = wire::framed(input);
  std::optional<std::size_t> only;
  if (options_.input_rank && *options_.input_rank < node_of_rank_.size()) {
    only = nodes_[node_of_rank_[*options_.input_rank]].link;
  }
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].over() || (only && *only != i)) continue;
    links_[i].wire.send_kept(frame);
    flush(links_[i]);
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
  if (grace_.until() && now >= *grace_.until()) grace_is_over();
  if (give_up_at_ && now >= *give_up_at_) {
    give_up_at_.reset();
    give_up_nodes();
  }
  if (kill_at_ && now >= *kill_at_) {
    kill_at_.reset();
    ending_ = Ending::killed;
    forward(SIGKILL);
    end_spawned();
  }
  if (left_ == 0 && !spawned_.empty()) spawned_outlive_us();
  if (wait_until_ && now >= *wait_until_ && first_exit_) {
    wait_until_.reset();
    const auto ago = std::chrono::duration_cast<seconds>(now - *first_exit_).count();
    if (left_ > 0 && !quit_ && ending_ == Ending::no && !options_.attached) {
      info(fmt::format("First task exited {}s ago", ago));
      tell_status();
      if (options_.wait && options_.wait->count() > 0) {
        info(fmt::format("Terminating StepId={}", step_name_));
        tell_abort();
        tell_cancelled("to SIGNAL Killed");
        end_step(SIGKILL);
      }
    }
  }
}

}  // namespace berth::command
