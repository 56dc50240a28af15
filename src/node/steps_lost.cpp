// Supervisors that are found again, and those that are gone without a word.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <ctime>
#include <thread>

#include "node/steps.h"
#include "step/container.h"
#include "step/launch_failure.h"
#include "wire/step_ids.h"

namespace berth::node {
namespace {

constexpr std::chrono::milliseconds kLongestRetryDelay{500};
/// For supervisors that are between their start and their first task when an agent finds them.
constexpr std::chrono::seconds kUndecided{10};

wire::StepSpec bare_spec(const NodeStep& at) {
  wire::StepSpec spec;
  spec.set_node(at.node);
  spec.set_job_id(at.key.job);
  spec.set_attempt(at.key.attempt);
  spec.set_step_id(at.key.step);
  return spec;
}

std::vector<StepKey> step_records(const std::string& path) {
  std::vector<StepKey> keys;
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr) return keys;
  while (const dirent* entry = ::readdir(folder)) {
    if (const auto key = step::read_record_name(entry->d_name)) keys.push_back(*key);
  }
  ::closedir(folder);
  return keys;
}

Error ended_unstarted() {
  return step::launch_failure(step::LaunchPart::supervisor,
                              "berth-stepd ended before it started anything")
      .error();
}

}  // namespace

bool Steps::supervisor_lives(const Step& step) const {
  return step::is_held(step.record);
}

wire::StepEnded Steps::failed(const Step& step) const {
  wire::StepEnded ended;
  ended.set_node(step.at.node);
  ended.set_job_id(step.at.key.job);
  ended.set_attempt(step.at.key.attempt);
  ended.set_step_id(step.at.key.step);
  ended.set_system_failure(true);
  ended.set_ended(std::time(nullptr));
  return ended;
}

void Steps::never_ran(const NodeStep& at) {
  const Step& step = steps_.at(at);
  here_.loop.cancel(step.timer);
  step::remove_step(step.record);
  drop_groups(step);
  forget_begun(at);
  steps_.erase(at);
}

/// A supervisor whose agent died has its order, and its record soon tells of the first task; or it
/// notices that there will be none, and goes. To say "it runs" of one that goes would make the end
/// of a job out of what never began, so that moment is waited for.
bool Steps::lives_on(const Step& step, net::Clock::time_point until) const {
  for (;;) {
    const bool lives = supervisor_lives(step);
    const step::StepRecord record = step::read_step_record(step.record);
    if (!lives || record.started || record.result) return lives;
    if (net::Clock::now() >= until) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::vector<StepKey> Steps::adopt(const std::string& node) {
  std::vector<StepKey> unstarted;
  const auto until = net::Clock::now() + kUndecided;
  for (const StepKey& key : step_records(here_.spool + '/' + node)) {
    const NodeStep at{node, key};
    Step& step = add(at, {});
    const bool lives =
        key.step == wire::kBatchStep ? lives_on(step, until) : supervisor_lives(step);
    step::StepRecord record = step::read_step_record(step.record);
    step.spec = record.spec.empty() ? bare_spec(at).SerializeAsString() : std::move(record.spec);
    step.ordered = true;
    if (record.result) {
      step.result = std::move(record.result);
      continue;
    }
    if (step.result) continue;  // it is lost with the machine
    if (!lives && !record.started) {
      never_ran(at);
      if (key.step == wire::kBatchStep) unstarted.push_back(key);
      continue;
    }
    here_.log.info("found step {}.{} of node {}: {}", key.job, step::step_name(key.step), node,
                   lives ? "its supervisor runs" : "its supervisor is gone");
    watch_limit(step);  // anew: nobody knows when it began
    // In the loop: whoever is told of an end must be there first.
    here_.loop.post([this, at] { connect(at); });
  }
  return unstarted;
}

void Steps::lost_with_the_machine(const NodeStep& at) {
  Step* known = find(at);
  if (known == nullptr) {
    known = &add(at, bare_spec(at).SerializeAsString());
  }
  if (!known->result) known->result = failed(*known);
}

void Steps::again(Step& step, void (Steps::*what)(const NodeStep&)) {
  here_.loop.cancel(step.timer);
  step.timer = here_.loop.after(step.delay, [this, at = step.at, what] { (this->*what)(at); });
  step.delay = std::min(step.delay * 2, kLongestRetryDelay);
}

void Steps::connect(const NodeStep& at) {
  Step* step = find(at);
  if (step == nullptr || step->result || step->link) return;
  if (Fd fd = step::connect_in(step::directory_of(step->record), step::kControlSocket)) {
    step->delay = std::chrono::milliseconds(10);
    watch(*step, std::move(fd));
    for (const std::string& frame : std::exchange(step->waiting, {})) step->link->send_bytes(frame);
    return;
  }
  // It may not have come as far as its socket yet, or be gone.
  if (supervisor_lives(*step)) return again(*step, &Steps::connect);
  link_lost(at);
}

void Steps::link_lost(const NodeStep& at) {
  Step* step = find(at);
  if (step == nullptr) return;
  step->link.reset();
  answer_questions(*step, nullptr);
  if (step->confirmed) return forget(at);
  if (step->result) return;
  if (supervisor_lives(*step)) return again(*step, &Steps::connect);
  const step::StepRecord record = step::read_step_record(step->record);
  if (record.result) return take_result(at, *record.result);
  if (!record.started && step->launching && !step->ending) {
    return launch_failed(at, ended_unstarted());
  }
  if (!record.started && at.key.step != wire::kBatchStep) return died_unstarted(at);
  here_.log.error("the supervisor of step {}.{} on {} died; its processes are ended", at.key.job,
                  step::step_name(at.key.step), at.node);
  step->clearing_since = net::Clock::now();
  step->delay = std::chrono::milliseconds(2);
  clear(at);
}

/// srun dials again, with the same ticket. Once that is the second try; what an agent before this
/// one left when it died with the order does not count.
void Steps::died_unstarted(const NodeStep& at) {
  const Step& step = steps_.at(at);
  here_.log.info("step {}.{} on {} had not begun", at.key.job, step::step_name(at.key.step),
                 at.node);
  const bool counts = step.spawned && !step.ending;
  never_ran(at);
  if (!counts || died_unstarted_.try_emplace(at).second) return;
  died_unstarted_[at] = step::failed_twice(ended_unstarted());
  const std::string why(died_unstarted_[at]->what());
  here_.log.error("step {}.{} cannot start on {}: {}", at.key.job, step::step_name(at.key.step),
                  at.node, why);
  if (events_.unfit) events_.unfit(at, why);
}

void Steps::clear(const NodeStep& at) {
  Step* step = find(at);
  if (step == nullptr || step->result) return;
  std::vector<pid_t> left;
  if (!step->cgroup.empty()) {
    if (!drop_groups(*step)) left = step::members_of(step->cgroup);
    if (left.empty() && ::access(step->cgroup.c_str(), F_OK) == 0) left.push_back(0);
  } else {
    left = step::processes_marked("BERTH_STEP=" + step->mark);
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
  }
  if (!left.empty()) {
    const auto patience = std::chrono::seconds(std::max(1U, here_.config.unkillable_seconds()));
    const bool late = net::Clock::now() - *step->clearing_since > patience;
    std::erase(left, 0);
    if (late && !left.empty()) take_stuck(*step, left);
    return again(*step, &Steps::clear);
  }
  const wire::StepEnded ended = failed(*step);
  step::append_record(step->record, wire::framed(ended));
  take_result(at, ended);
}

}  // namespace berth::node
