// The agent's own clock on every step that is to end, for supervisors that do not do their work:
// they hang in a file system, or somebody has stopped them.
//
//   end, or the time limit ── KillWait, kGrace ──▶ its processes are killed, the supervisor is
//   asked
//        ── kAnswer, no word ──▶ the supervisor is killed: steps_lost.cpp goes on
//        ── it lives ──▶ its step is its business; it says which processes do not go
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "node/steps.h"
#include "node/unkillable.h"
#include "step/container.h"

namespace berth::node {
namespace {

constexpr std::chrono::seconds kGrace{2};
/// For a supervisor to say anything at all, on a machine that is busy with other things.
constexpr std::chrono::seconds kAnswer{10};
/// One that is stopped will not answer.
constexpr std::chrono::seconds kLook{1};
/// Tasks may have waited for those on other nodes before their time began.
constexpr std::chrono::seconds kLateBegin{60};
/// Between looks at a supervisor that lives, and whose step does not end.
constexpr std::chrono::seconds kAgain{30};
/// Without KillWait in the configuration.
constexpr std::uint32_t kDefaultKillWait = 30;
std::string name_of(const NodeStep& at) {
  return fmt::format("{}.{}", at.key.job, step::step_name(at.key.step));
}

}  // namespace

std::chrono::seconds Steps::kill_wait() const {
  const std::uint32_t said = here_.config.kill_wait_seconds();
  return std::chrono::seconds(said == 0 ? kDefaultKillWait : said);
}

void Steps::watch_end(Step& step, std::chrono::seconds left) {
  if (step.result) return;
  const auto when = net::Clock::now() + left + kGrace;
  if (step.watch_at && *step.watch_at <= when) return;
  here_.loop.cancel(step.watch);
  step.watch_at = when;
  step.watch = here_.loop.at(when, [this, at = step.at] { overdue(at); });
}

void Steps::watch_limit(Step& step) {
  const auto spec = wire::decode<wire::StepSpec>(step.spec);
  if (!spec || spec->time_limit_seconds() == 0) return;
  watch_end(step, std::chrono::seconds(spec->time_limit_seconds()) + kill_wait() + kLateBegin);
}

void Steps::overdue(const NodeStep& at) {
  Step* step = find(at);
  if (step == nullptr || step->result) return;
  step->watch_at.reset();
  step->ending = true;  // whatever becomes of its supervisor now, it is not started again
  if (step->clearing_since) return;  // there is no supervisor any more
  if (!step->ordered) return watch_end(*step, kAgain);
  if (step->stuck.empty()) {
    here_.log.error("step {} on {} should be over: its processes are killed", name_of(at), at.node);
  }
  kill_processes(*step);
  // Whatever it says shows that it lives.
  send(*step, wire::framed(wire::SuperviseMeasure()));
  expect_answer(at, net::Clock::now());
}

void Steps::expect_answer(const NodeStep& at, net::Clock::time_point asked) {
  Step* step = find(at);
  if (step == nullptr || step->result || step->clearing_since) return;
  if (step->heard >= asked) return watch_end(*step, kAgain);
  const std::vector<pid_t> supervisors =
      step::processes_holding(step->record, step::kRecordDescriptor);
  const bool stopped = std::ranges::any_of(supervisors, step::is_stopped);
  const auto since = net::Clock::now() - asked;
  if (since >= kAnswer || (stopped && since >= kLook)) {
    here_.log.error("step {} on {}: its supervisor does not answer and is killed: {}", name_of(at),
                    at.node, described(supervisors));
    return end_supervisor(at);
  }
  step->watch = here_.loop.after(kLook, [this, at, asked] { expect_answer(at, asked); });
}

void Steps::end_supervisor(const NodeStep& at) {
  Step* step = find(at);
  if (step == nullptr || step->result || step->clearing_since) return;
  const std::vector<pid_t> supervisors =
      step::processes_holding(step->record, step::kRecordDescriptor);
  for (const pid_t pid : supervisors) ::kill(pid, SIGKILL);
  // Its end is seen by its connection, and by its lock where it has none. One that not even SIGKILL
  // ends is a process of the step like others.
  const auto patience = std::chrono::seconds(std::max(1U, here_.config.unkillable_seconds()));
  step->watch = here_.loop.after(patience, [this, at] {
    Step* left = find(at);
    if (left == nullptr || left->result || left->clearing_since) return;
    const std::vector<pid_t> pids = step::processes_holding(left->record, step::kRecordDescriptor);
    if (!pids.empty()) take_stuck(*left, pids);
    end_supervisor(at);
  });
}

void Steps::kill_processes(const Step& step) {
  if (!step.cgroup.empty()) return step::kill_cgroup(step.cgroup);
  for (const pid_t pid : step::processes_marked("BERTH_STEP=" + step.mark)) ::kill(pid, SIGKILL);
}

void Steps::take_stuck(Step& step, const std::vector<pid_t>& pids) {
  if (!step.stuck.empty()) return;
  step.stuck = fmt::format("Kill task failed: step {}: {}", name_of(step.at), described(pids));
  here_.log.error("node {}: {}", step.at.node, step.stuck);
  if (events_.stuck) events_.stuck(step.at, step.stuck);
  run_unkillable_program(here_, {.node = step.at.node,
                                 .job = step.at.key.job,
                                 .step = step::step_name(step.at.key.step),
                                 .pids = pids});
}

void Steps::repeat_stuck() const {
  for (const auto& [at, step] : steps_) {
    if (!step.result && !step.stuck.empty() && events_.stuck) events_.stuck(at, step.stuck);
  }
}

}  // namespace berth::node
