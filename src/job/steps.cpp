// What nodes say about steps: started (perhaps before a restart), ended; and what that means for
// the job.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "job/launch.h"
#include "job/memory.h"
#include "job/step_spec.h"
#include "text/hostlist.h"
#include "wire/step_figures.h"
#include "wire/step_ids.h"

namespace berth::job {
namespace {

/// A step of which only the node's spec is left: what it holds there.
place::StepPlan plan_of(const cluster::Cluster& cluster, const wire::StepSpec& spec,
                        const place::StepPlan* before) {
  place::StepPlan plan;
  if (before != nullptr) plan = *before;
  plan.verdict = place::StepVerdict::starts;
  plan.id = spec.step_id();
  plan.ntasks = spec.ntasks();
  plan.counted = spec.counted();
  plan.launcher = spec.launcher();
  const auto index = cluster.find_node(spec.node());
  if (!index) return plan;
  place::StepNode node;
  node.share = from_wire(spec.share(), *index);
  for (const wire::TaskSpec& task : spec.tasks()) node.ranks.push_back(task.rank());
  plan.nodes.push_back(std::move(node));
  return plan;
}

void adopt(State::Memory& m, Job& job, const wire::StepSpec& spec) {
  Running& running = *job.running;
  const std::uint32_t next = running.steps.next_id();
  const place::StepPlan* before = nullptr;
  for (const place::StepPlan& plan : running.steps.running()) {
    if (plan.id == spec.step_id()) before = &plan;
  }
  const place::StepPlan plan = plan_of(m.cluster, spec, before);
  running.steps.finish(spec.step_id());
  if (spec.step_id() < wire::kInteractiveStep) {
    running.steps.start(plan);
  }
  running.steps.number_from(
      spec.step_id() < wire::kInteractiveStep ? std::max(next, spec.step_id() + 1) : next);
  Step& step = running.open_steps[spec.step_id()];
  step.id = spec.step_id();
  step.name = spec.name();
  step.start = spec.created() + m.adopted;
  if (spec.has_time_limit_seconds()) {
    step.time_limit_minutes = spec.time_limit_seconds() / 60;
    step.limit_at = step.start + spec.time_limit_seconds();
  }
  if (std::ranges::find(step.nodes, spec.node()) == step.nodes.end()) {
    step.nodes.push_back(spec.node());
    step.cpus += spec.share().cpus();
  }
  if (spec.port() > 0 && !step.ports) {
    step.ports = m.ports.adopt(m.policy.emulated ? "" : spec.master(), spec.port(), spec.ports());
  }
  step.open_nodes.insert(spec.node());
  step.ntasks = spec.ntasks();
  step.tres_per_node = spec.tres_per_node();
  step.tres = tres_of_step(m.cluster, plan);
  for (const wire::TaskSpec& task : spec.tasks()) {
    if (task.rank() >= spec.ntasks()) continue;
    if (step.task_nodes.size() <= task.rank()) step.task_nodes.resize(task.rank() + 1);
    step.task_nodes[task.rank()] = spec.node();
  }
}

/// `node`: which of several; "" = the step has no other.
void add_usage(wire::StepUsage& sum, const wire::StepUsage& more, std::string_view node) {
  sum.set_user_microseconds(sum.user_microseconds() + more.user_microseconds());
  sum.set_system_microseconds(sum.system_microseconds() + more.system_microseconds());
  sum.set_total_rss_kb(sum.total_rss_kb() + more.total_rss_kb());
  if (more.max_rss_kb() > sum.max_rss_kb()) {
    sum.set_max_rss_kb(more.max_rss_kb());
    sum.set_max_rss_rank(more.max_rss_rank());
  }
  if (more.has_figures()) wire::add_figures(*sum.mutable_figures(), more.figures(), node);
}

bool listed(const std::vector<std::uint32_t>& codes, std::int32_t status) {
  const auto code = static_cast<std::uint32_t>((status >> 8) & 0xff);
  return (status & 0x7f) == 0 && std::ranges::find(codes, code) != codes.end();
}

/// RequeueExit and RequeueExitHold.
bool starts_again(const State::Memory& m, const Job& job, const Step& step) {
  if (!job.requeue || job.het || step.out_of_memory || step.system_failure) return false;
  return listed(m.policy.requeue_exit, step.exit_status) ||
         listed(m.policy.requeue_exit_hold, step.exit_status);
}

/// The script is over, and with it the job.
void end_batch(State::Memory& m, Job& job, const Step& step, Time now) {
  if (job.flags.completing || !job.running) {              // already over for another reason
    const bool requeued = job.end_cause == "JOB REQUEUE";  // and perhaps cancelled since
    if (ended(job.base) && !requeued) m.set_exit(job, step.exit_status);
    return;
  }
  if (step.node_unfit) {
    m.launch_failed_on(job, step.nodes.front(), now);
    return;
  }
  job.exit_status = step.exit_status;
  if (starts_again(m, job, step)) {
    const bool held = listed(m.policy.requeue_exit_hold, step.exit_status);
    m.end_to_requeue(job, held, held, "", now);
    return;
  }
  if (step.out_of_memory) {
    if (job.exit_status == 0) job.exit_status = wire::kOutOfMemoryStatus;
    m.end_whole(job, Base::out_of_memory, "OutOfMemory", "", false, now);
  } else if (step.system_failure && step.exit_status == 0) {
    m.end_whole(job, Base::failed, "SystemFailure", "", false, now);
  } else {
    m.end_whole(job, step.exit_status == 0 ? Base::completed : Base::failed,
                exit_reason(step.exit_status), "", false, now);
  }
}

}  // namespace

void State::step_started(const wire::StepSpec& spec, std::string_view node, Time /*now*/) {
  Memory& m = *m_;
  Job* job = m.find(spec.job_id());
  const std::string name(node);
  if (job == nullptr || spec.node() != node || !m.runs_on(*job, spec.attempt(), node)) {
    m.effect(EndStep{spec.job_id(), spec.attempt(), spec.step_id(), {name}, "", true});
    return;
  }
  const auto at = job->running->open_steps.find(spec.step_id());
  const bool known = at != job->running->open_steps.end() &&
                     std::ranges::find(at->second.nodes, name) != at->second.nodes.end();
  if (!known) adopt(m, *job, spec);
  Step& step = job->running->open_steps.at(spec.step_id());
  step.started_nodes.insert(name);
  if (step.ending) {
    m.effect(EndStep{job->id, job->attempt, step.id, {name}, step.cause, false});
  }
  m.arm(*job);
}

void State::step_ended(const wire::StepEnded& message, Time now) {
  Memory& m = *m_;
  m.effect(Forget{message.node(), message.job_id(), message.attempt(), message.step_id()});
  if (message.node_unfit()) m.drain_unfit(message.node(), message.trouble(), now);
  Job* job = m.find(message.job_id());
  if (job == nullptr) return;
  if (!job->running || job->attempt != message.attempt()) {
    m.end_late_step(*job, message, now);
    return;
  }
  // The node has ended it by itself: the lease of its job was over.
  if (message.cause() == "NODE FAILURE" && !job->flags.completing &&
      m.runs_on(*job, message.attempt(), message.node())) {
    m.fail_on_node(*job, message.node(), now);
    if (!job->running) return;
  }
  const auto at = job->running->open_steps.find(message.step_id());
  if (at == job->running->open_steps.end()) return;
  Step& step = at->second;
  if (step.open_nodes.erase(message.node()) == 0) return;
  Memory::add_end(step, message);
  // Its part there was ended for the GPU memory it took: the rest would wait for it in vain.
  if (message.cause() == wire::kGpuMemoryCause && !step.ending) {
    m.end_open_step(*job, step.id, std::string(wire::kGpuMemoryCause));
  }
  if (!step.open_nodes.empty()) return;
  m.close_step(*job, step, now);
}

std::string_view State::Memory::end_state(const Job& job, const Step& step) {
  if (step.cause == "TIME LIMIT") return "TIMEOUT";
  if (step.system_failure && step.exit_status == 0) return "NODE_FAIL";
  if (step.out_of_memory) return "OUT_OF_MEMORY";
  // Without a cause its srun has left: mostly because the tasks had ended, of which the nodes tell
  // a moment later. Only those that a signal has ended were still there.
  const bool by_itself = step.cause.empty() && (step.exit_status & 0x7f) == 0;
  if (step.ending && !by_itself) return "CANCELLED";
  // The end of its job took it along: scancel, a time limit, the end of the script. A shell whose
  // command was ended first (its srun, say) ends by itself, with 128 and the signal's number.
  const int code = (step.exit_status >> 8) & 0xff;
  const int signal = code > 128 ? code - 128 : step.exit_status & 0x7f;
  const bool job_over = job.flags.completing || !job.running;
  if (job_over && (signal == SIGTERM || signal == SIGKILL)) return "CANCELLED";
  return step.exit_status == 0 ? "COMPLETED" : "FAILED";
}

void State::Memory::add_end(Step& step, const wire::StepEnded& message) {
  for (const std::int32_t status : message.statuses()) {
    step.exit_status = std::max(step.exit_status, status);
  }
  step.node_unfit = step.node_unfit || message.node_unfit();
  if (!message.trouble().empty() && message.statuses().empty() && !message.node_unfit()) {
    step.exit_status = std::max(step.exit_status, 53);  // could not be started: "0:53"
  }
  step.system_failure = step.system_failure || message.system_failure() || message.node_unfit();
  step.out_of_memory = step.out_of_memory || message.out_of_memory();
  add_usage(step.usage, message.usage(), step.nodes.size() > 1 ? message.node() : std::string());
}

void State::Memory::store_step(const Job& job, const Step& step, std::string_view state, Time end) {
  wire::StepRecord out;
  out.set_job_id(job.id);
  out.set_attempt(job.attempt);
  out.set_step_id(step.id);
  out.set_name(step.name);
  out.set_state(std::string(state));
  out.set_start_time(step.start);
  out.set_end_time(end);
  out.set_exit_status(step.exit_status);
  out.set_tasks(step.ntasks);
  out.set_cpus(step.cpus);
  out.set_nodes(text::compress_hostlist(step.nodes));
  out.set_node_count(static_cast<std::uint32_t>(step.nodes.size()));
  out.set_tres(step.tres);
  out.set_submit_line(step.submit_line);
  wire::StepUse& use = *out.mutable_use();
  use.set_user_microseconds(step.usage.user_microseconds());
  use.set_system_microseconds(step.usage.system_microseconds());
  use.set_max_rss_kb(step.usage.max_rss_kb());
  use.set_max_rss_rank(step.usage.max_rss_rank());
  use.set_total_rss_kb(step.usage.total_rss_kb());
  if (step.usage.has_figures()) *use.mutable_figures() = step.usage.figures();
  dirty_steps.push_back(std::move(out));
}

void State::Memory::close_step(Job& job, Step& step, Time now) {
  const Step done = std::move(step);
  job.running->open_steps.erase(done.id);
  job.running->steps.finish(done.id);
  store_step(job, done, end_state(job, done), now);
  ++version;
  if (done.id == wire::kBatchStep) {
    end_batch(*this, job, done, now);
    return;
  }
  if (done.exit_status > job.derived_exit_status) {
    job.derived_exit_status = done.exit_status;
    dirty_jobs.insert(job.id);
  }
  arm(job);
  if (!job.flags.completing) retry_waiting(job, now);
}

}  // namespace berth::job
