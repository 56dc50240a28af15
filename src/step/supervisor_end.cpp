// How a step ends.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "cgroup/tree.h"
#include "launch/errands.h"
#include "step/spool.h"
#include "step/supervisor.h"
#include "wire/step_ids.h"

namespace berth::step {
namespace {

constexpr std::chrono::milliseconds kLongestRetry{500};
/// How long a client may take to read the end of the output, and then to close.
constexpr std::chrono::seconds kLongestStay{300};
/// How long the lines of the supervisor may take to be written.
constexpr std::chrono::seconds kLongestWrite{2};

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}", local);
}

std::uint64_t microseconds(const timeval& t) {
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(t.tv_usec);
}

}  // namespace

void Supervisor::say(const std::string& text, bool as_it_is) {
  if (!clients_.empty()) {
    wire::SupervisorLine line;
    const Severity severity = as_it_is ? Severity::bare : Severity::error;
    line.mutable_line()->set_severity(static_cast<std::uint32_t>(severity));
    line.mutable_line()->set_text(text);
    for (auto& client : clients_) client->peer.send(line);
    return;
  }
  lines_ += (as_it_is ? "" : "slurmstepd: error: ") + text + '\n';
  write_lines();
}

void Supervisor::write_lines() {
  if (lines_.empty() || writer_ > 0) return;
  const std::string text = std::exchange(lines_, {});
  const auto to =
      std::ranges::find_if(tasks_, [](const Task& task) { return bool(task.err_file); });
  if (to == tasks_.end()) return;
  const int file = to->err_file->get();
  writer_ = container_.start_beside([&] { write_as_user(who_, file, text); });
  if (writer_ > 0) writer_until_ = Clock::now() + kLongestWrite;
}

void Supervisor::announce_end(const std::string& cause, bool now) {
  if (spec_.node_id() != 0) return;
  const std::string what =
      spec_.step_id() == wire::kBatchStep
          ? fmt::format("JOB {}", spec_.job_id())
          : fmt::format("STEP {}.{}", spec_.job_id(), step_name(spec_.step_id()));
  const std::string why = cause == "SIGNAL"
                              ? fmt::format("to SIGNAL {}", now ? "Killed" : "Terminated")
                              : "TO " + cause;
  say(fmt::format("*** {} ON {} CANCELLED AT {} DUE {} ***", what, spec_.node(), now_text(), why));
}

/// Signals first: nothing that is said may hold them up.
void Supervisor::end(const std::string& cause, bool now) {
  if (phase_ != Phase::running) return;
  const bool first = cause_.empty() && !cause.empty();
  if (first) cause_ = cause;
  const auto time = Clock::now();
  if (now) {
    kill_at_ = time;
    run_timers();
  } else if (!kill_at_ && !killed_) {
    kill_at_ = time + std::chrono::seconds(order_.kill_wait_seconds());
    container_.signal(SIGCONT, leaders());
    container_.signal(SIGTERM, leaders());
  }
  if (first) announce_end(cause, now);
}

void Supervisor::signal_step(int number, bool tasks_only) {
  if (number <= 0 || number >= NSIG || phase_ != Phase::running) return;
  signalled_to_end_ = signalled_to_end_ || number == SIGKILL || number == SIGTERM;
  if (number == SIGSTOP) tell_paused(true);
  if (number == SIGCONT) tell_paused(false);
  if (tasks_only) {
    for (const pid_t pid : leaders()) ::kill(pid, number);
  } else {
    container_.signal(number, leaders());
  }
}

void Supervisor::tell_paused(bool paused) {
  if (std::exchange(paused_, paused) == paused) return;
  wire::Errand errand;
  errand.set_from(spec_.node());
  errand.set_channel(launch::kPauseChannel);
  errand.set_data(std::string(paused ? launch::kPaused : launch::kGoesOn));
  for (auto& client : clients_) {
    if (client->owner) client->peer.send(errand);
  }
}

void Supervisor::reap() {
  for (;;) {
    siginfo_t next{};
    if (::waitid(P_ALL, 0, &next, WEXITED | WNOHANG | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      children_left_ = false;
      return;
    }
    const pid_t pid = next.si_pid;
    if (pid == 0) {
      children_left_ = true;
      return;
    }
    const auto task = std::ranges::find_if(
        tasks_, [&](const Task& one) { return one.pid == pid && !one.exited; });
    // The kernel tells what it has read and written until it is waited for.
    const bool looked_up = order_.gathers_bytes() && task != tasks_.end();
    const auto bytes = looked_up ? bytes_of(pid) : std::nullopt;
    int status = 0;
    rusage usage{};
    if (::wait4(pid, &status, WNOHANG, &usage) != pid) continue;
    usage_.set_user_microseconds(usage_.user_microseconds() + microseconds(usage.ru_utime));
    usage_.set_system_microseconds(usage_.system_microseconds() + microseconds(usage.ru_stime));
    if (task != tasks_.end()) task_exited(*task, status, usage, bytes);
    for (Task& one : tasks_) std::erase(one.epilogs, pid);
    if (pid == writer_) {
      container_.no_more_beside(std::exchange(writer_, 0));
      writer_until_.reset();
      write_lines();
    }
  }
}

void Supervisor::task_exited(Task& task, int status, const rusage& usage,
                             const std::optional<ProcessBytes>& bytes) {
  task.exited = true;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !killed_ && ran_out_of_memory()) {
    status = wire::kOutOfMemoryStatus;
  }
  if (WIFSIGNALED(status) && cause_ == wire::kGpuMemoryCause) status = wire::kOutOfMemoryStatus;
  if (const auto code = keys_.abort_code(task.spec->rank())) status = *code << 8;
  task.status = status;
  const auto most_kb = static_cast<std::uint64_t>(usage.ru_maxrss);
  usage_.set_total_rss_kb(usage_.total_rss_kb() + most_kb);
  if (most_kb > usage_.max_rss_kb()) {
    usage_.set_max_rss_kb(most_kb);
    usage_.set_max_rss_rank(task.spec->rank());
  }
  task.used = {.cpu = microseconds(usage.ru_utime) + microseconds(usage.ru_stime),
               .pages = static_cast<std::uint64_t>(usage.ru_majflt),
               .memory = most_kb * 1024,
               .memory_most = most_kb * 1024,
               .bytes_known = bytes.has_value(),
               .bytes = bytes.value_or(ProcessBytes())};
  note_task(*usage_.mutable_figures(), task.spec->rank(), task.used, false);
  task.in.reset();
  task.in_queue.clear();
  // What it wrote before it ended is shown before its end.
  for (Stream& stream : task.streams) read_stream(task, stream, true);
  wire::TasksExited exited;
  exited.add_ranks(task.spec->rank());
  exited.add_statuses(status);
  for (auto& client : clients_) client->peer.send(exited);
  start_epilogs(task);
}

bool Supervisor::ran_out_of_memory() {
  const std::string& file = order_.fence().memory_events();
  if (file.empty()) return false;
  const auto text = read_file(file);
  const std::uint64_t kills = text ? cgroup::count_named(*text, "oom_kill") : memory_kills_;
  if (kills > memory_kills_) {
    memory_kills_ = kills;
    if (spec_.oom_kill_step()) end("", true);
  }
  return memory_kills_ > 0;
}

void Supervisor::say_out_of_memory() {
  const std::string step = fmt::format("{}.{}", spec_.job_id(), step_name(spec_.step_id()));
  say(
      fmt::format("Detected {} oom_kill event{} in StepId={}. Some of the step tasks have been OOM "
                  "Killed.",
                  memory_kills_, memory_kills_ == 1 ? "" : "s", step));
  say(fmt::format("StepId={} may use {} MiB of memory on {}; ask for more with --mem", step,
                  order_.fence().memory_bytes() / 1048576, spec_.node()));
}

/// What programs make of the kernel's refusal seldom says whose limit it was.
void Supervisor::say_out_of_processes() {
  const std::string& file = order_.fence().process_events();
  const auto text = file.empty() ? std::nullopt : read_file(file);
  const std::uint64_t refused = text ? cgroup::count_named(*text, "max") : 0;
  if (refused == 0) return;
  say(
      fmt::format("StepId={}.{} may have {} processes and threads on {}: {} more could not be "
                  "started; SlurmdParameters=max_step_pids of slurm.conf is the limit",
                  spec_.job_id(), step_name(spec_.step_id()), order_.fence().most_processes(),
                  spec_.node(), refused));
}

void Supervisor::advance() {
  if (!launched_) return;
  if (phase_ == Phase::running) {
    const bool ended = std::ranges::all_of(
        tasks_, [](const Task& task) { return task.exited && task.epilogs.empty(); });
    if (!ended) return;
    // A script that is told to end leaves its sruns, which were told too: they have until KillWait
    // to say how their tasks ended.
    const bool told = kill_at_ && !killed_ && spec_.step_id() == wire::kBatchStep;
    if (told && children_left_) return;
    // Who reads a pipe gets all of it, unless the step has to be over.
    if (!killed_ && !files_.waiting().empty()) {
      if (signalled_to_end_ && !kill_at_) {
        kill_at_ = Clock::now() + std::chrono::seconds(order_.kill_wait_seconds());
      }
      return;
    }
    phase_ = Phase::clearing;
    if (ran_out_of_memory()) say_out_of_memory();
    say_out_of_processes();
    kill_at_.reset();
    limit_alarm_.reset();
    retry_at_.reset();
    stuck_at_ = Clock::now() + std::chrono::seconds(std::max(1U, order_.unkillable_seconds()));
  }
  if (phase_ != Phase::clearing) return;
  if (retry_at_ && Clock::now() < *retry_at_ && children_left_) return;
  reap();
  if (!children_left_ && container_.remove()) return finish();
  container_.kill();
  retry_at_ = Clock::now() + retry_delay_;
  retry_delay_ = std::min(retry_delay_ * 2, kLongestRetry);
}

wire::StepEnded Supervisor::result() const {
  wire::StepEnded ended;
  ended.set_node(spec_.node());
  ended.set_job_id(spec_.job_id());
  ended.set_attempt(spec_.attempt());
  ended.set_step_id(spec_.step_id());
  for (const Task& task : tasks_) {
    if (task.pid <= 0) continue;
    ended.add_ranks(task.spec->rank());
    ended.add_statuses(task.status);
  }
  *ended.mutable_usage() = usage_;
  ended.set_ended(std::time(nullptr));
  ended.set_trouble(trouble_);
  ended.set_node_unfit(node_unfit_);
  ended.set_cause(cause_);
  ended.set_out_of_memory(memory_kills_ > 0 || cause_ == wire::kGpuMemoryCause);
  return ended;
}

wire::StepEnded Supervisor::stuck_report() const {
  wire::StepEnded report = result();
  std::vector<pid_t> left = container_.pids();
  if (writer_ > 0) left.push_back(writer_);
  for (const pid_t pid : left) report.add_stuck_pids(static_cast<std::uint32_t>(pid));
  return report;
}

/// Not in the record: the step is not over before they are gone.
void Supervisor::report_stuck() {
  const wire::StepEnded report = stuck_report();
  if (report.stuck_pids().empty()) return;  // they went just now
  stuck_ = true;
  for (auto& agent : agents_) {
    agent->send(report);
    agent->flush();
  }
}

void Supervisor::tell_agents(const wire::StepEnded& ended) {
  crash_.reached("step.before_result");
  write_all(record_.get(), wire::framed(ended));
  crash_.reached("step.after_result");
  for (auto& agent : agents_) {
    agent->send(ended);
    agent->flush();
  }
}

void Supervisor::finish() {
  phase_ = Phase::over;
  retry_at_.reset();
  stuck_at_.reset();
  for (Task& task : tasks_) {
    for (Stream& stream : task.streams) {
      read_stream(task, stream, true);
      if (!stream.fd) continue;
      // Somebody outside holds the other end: what is there was read, the rest is not the step's.
      stream.fd.reset();
      pass_on(task, stream, stream.cutter.rest(), true);
    }
    task.out_file.reset();
    task.err_file.reset();
  }
  tell_agents(result());
  wire::NodeDone done;
  done.set_node(spec_.node());
  done.set_trouble(trouble_);
  for (auto& client : clients_) {
    client->peer.send(done);
    client->finished = true;
  }
  leave_at_ = Clock::now() + kLongestStay;
  drop_closed();
}

}  // namespace berth::step
