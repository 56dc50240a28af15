// The end of a step that is heard of after the end of its job: its agent was away. What the node
// reports is the truth; the record that was written without it is written again.
#include <algorithm>

#include "job/memory.h"

namespace berth::job {

void State::Memory::keep_late_steps(Job& job) {
  job.late.reset();
  if (job.running->open_steps.empty()) return;
  job.late = std::make_unique<LateSteps>();
  job.late->attempt = job.attempt;
  job.late->steps = std::move(job.running->open_steps);
  job.running->open_steps.clear();
}

void State::Memory::end_late_step(Job& job, const wire::StepEnded& message, Time now) {
  if (!job.late || job.late->attempt != message.attempt()) return;
  const auto at = job.late->steps.find(message.step_id());
  if (at == job.late->steps.end()) return;
  Step& step = at->second;
  if (step.open_nodes.erase(message.node()) == 0) return;
  add_end(step, message);
  // The node tells it by its own clock.
  const NodeState* node = find_node(message.node());
  const Time off = node == nullptr ? 0 : node->clock_ahead;
  // What is written down is by the clock of when the job was over.
  const Time last = now - job.clock_moved;
  const Time told = std::clamp<Time>(message.ended(), 0, now + NodeState::kMostAhead);
  const Time end =
      told == 0 ? last : std::max(step.start, std::min(told - off - job.clock_moved, last));
  const std::uint32_t attempt = std::exchange(job.attempt, job.late->attempt);
  store_step(job, step, end_state(job, step), end);
  job.attempt = attempt;
  if (step.exit_status > job.derived_exit_status && ended(job.base)) {
    job.derived_exit_status = step.exit_status;
    touch(job);
  }
  if (!step.open_nodes.empty()) return;
  job.late->steps.erase(at);
  if (job.late->steps.empty()) job.late.reset();
}

}  // namespace berth::job
