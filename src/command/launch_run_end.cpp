// Signals, the end of a step before its tasks want it, and what is said about it.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <ctime>

#include "command/launch_run.h"
#include "command/launch_terminal.h"
#include "command/messages.h"
#include "text/hostlist.h"

namespace berth::command {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr auto kInterruptPause = seconds(1);

}  // namespace

void StepRun::take_signal(int signal) {
  switch (signal) {
    case SIGINT:
      return interrupt();
    case SIGWINCH:
      if (const auto window = window_of(STDIN_FILENO); window && options_.pty) {
        wire::WindowSize size;
        size.set_rows(window->rows);
        size.set_columns(window->columns);
        for (Link& link : links_) {
          if (!link.begun || link.over()) continue;
          link.wire.send(size);
          flush(link);
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
        end_spawned();
      }
      return;
    case SIGCONT:
      if (!options_.attached) info("got SIGCONT");
      return;
    case SIGCHLD:
      return;
    default:
      if (options_.ignored_signals.contains(signal)) return;
      forward(signal);
      for (const Spawned& step : spawned_) ::kill(step.srun.pid, signal);
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
  for (Link& link : links_) {
    if (!link.begun || link.over()) continue;
    link.wire.send(tell);
    flush(link);
  }
}

void StepRun::flush(Link& link) {
  if (auto sent = link.wire.ready(POLLOUT); !sent) link_lost(link, sent.error());
}

void StepRun::end_step(int first_signal) {
  ending_ = Ending::asked;
  end_spawned();
  // A node that has not answered yet finds nobody there when it does.
  for (Link& link : links_) {
    if (link.over()) continue;
    bool any = false;
    for (std::size_t i = 0; i < link.nodes.count; ++i) {
      Node& node = nodes_[link.nodes.first + i];
      if (node.state != State::starting) continue;
      any = true;
      failed_to_run_ = true;
      set_state(node, State::lost);
    }
    if (any && !link.over()) link.wire.send(wire::GiveUpStarting());
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

void StepRun::tell_cancelled(std::string_view why) {
  if (nodes_.empty()) return;
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%S", &local);
  say({Severity::error, fmt::format("*** STEP {} ON {} CANCELLED AT {} DUE {} ***", step_name_,
                                    nodes_.front().what.name, time.data(), why)},
      "slurmstepd");
}

void StepRun::tell_abort() {
  if (abort_told_) return;
  abort_told_ = true;
  info(fmt::format("Job step aborted: Waiting up to {} seconds for job step to finish.",
                   options_.kill_wait.count() + 2));
}

/// A machine that lost its power closes no connection.
void StepRun::give_up_nodes() {
  std::vector<std::string> names;
  for (Node& node : nodes_) {
    if (node.over()) continue;
    names.push_back(node.what.name);
    set_state(node, State::lost);
  }
  if (names.empty()) return;
  failed_to_run_ = true;
  error("Timed out waiting for job step to complete");
  say({Severity::plain,
       fmt::format("the job is over, and nothing is heard of {}", text::compress_hostlist(names))},
      "berth");
}

void StepRun::tell_exits() {
  tell_at_.reset();
  for (const std::string& line : exits_.lines(options_.reduce_exit_lines)) error(line);
}

void StepRun::tell_status() {
  std::set<std::uint32_t> running;
  std::set<std::uint32_t> ended;
  std::set<std::uint32_t> starting;
  for (const Node& node : nodes_) {
    for (const std::uint32_t rank : node.what.ranks) {
      if (exits_.has(rank)) {
        ended.insert(rank);
      } else if (node.state == State::running) {
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
