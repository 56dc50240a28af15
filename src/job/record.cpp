#include "job/record.h"

#include <algorithm>
#include <array>

#include "job/launch.h"
#include "job/ranges.h"

namespace berth::job {
namespace {

void put_array(wire::JobRecord& out, const Job& job) {
  if (!job.array) return;
  out.set_array_job_id(job.array->job_id);
  if (job.array->task) out.set_array_task_id(*job.array->task);
  out.set_array_rest(job.array->rest.ranges());
  out.set_array_throttle(job.array->throttle);
  out.set_array_min(job.array->min);
  out.set_array_max(job.array->max);
  out.set_array_count(job.array->count);
  out.set_array_step(job.array->step);
}

void put_preempted(wire::JobRecord& out, const Job& job) {
  out.set_preemptions(job.preemptions);
  out.set_keeps_no_cores(job.parked());
  if (!job.preempted) return;
  out.set_preempted_by(job.preempted->by);
  out.set_preempt_time(job.preempted->at);
  out.set_preempt_until(job.preempted->until);
  out.set_preempt_how(std::string(preempt_word(job.preempted->how)));
}

std::unique_ptr<Preempted> preempted_of(const wire::JobRecord& record) {
  if (record.preempted_by() == 0) return nullptr;
  Preempted out{record.preempted_by(), record.preempt_time(), record.preempt_until(),
                PreemptMode::cancel};
  for (const PreemptMode mode : {PreemptMode::requeue, PreemptMode::suspend}) {
    if (record.preempt_how() == preempt_word(mode)) out.how = mode;
  }
  return std::make_unique<Preempted>(out);
}

void put_gpu_idle(wire::JobRecord& out, const Job& job) {
  if (!job.gpu_idle_decided) return;
  wire::GpuIdleLimit& limit = *out.mutable_gpu_idle();
  if (job.gpu_idle_seconds) limit.set_seconds(*job.gpu_idle_seconds);
  limit.set_by_admin(job.gpu_idle_by_admin);
  if (!job.running) return;
  limit.set_counts_from(job.running->gpu_idle.counts_from);
  limit.set_warnings(job.running->gpu_idle.warnings);
  limit.set_last_warning(job.running->gpu_idle.last_warning);
}

Flags flags_of(const wire::JobRecord& record) {
  Flags flags;
  for (const std::string& name : record.flags()) {
    flags.completing = flags.completing || name == "COMPLETING";
    flags.configuring = flags.configuring || name == "CONFIGURING";
    flags.requeued = flags.requeued || name == "REQUEUED";
    flags.requeue_hold = flags.requeue_hold || name == "REQUEUE_HOLD";
    flags.special_exit = flags.special_exit || name == "SPECIAL_EXIT";
    flags.launch_failed = flags.launch_failed || name == "LAUNCH_FAILED";
  }
  return flags;
}

}  // namespace

wire::JobRecord to_record(const cluster::Cluster& cluster, const Job& job) {
  wire::JobRecord out;
  out.set_id(job.id);
  out.set_asked_blob(job.asked_blob);
  out.set_component(job.what ? job.what->component : 0);
  for (const std::string& word : job.overrides) out.add_overrides(word);
  out.set_uid(job.uid);
  out.set_gid(job.gid);
  out.set_token(job.token);
  out.set_interactive(job.interactive);
  out.set_detached(job.detached);
  out.set_state(std::string(base_name(job.base)));
  for (const std::string& name : flag_names(job.flags)) out.add_flags(name);
  out.set_reason(job.reason);
  out.set_reason_text(job.reason_text);
  out.set_priority(job.priority);
  out.set_priority_fixed(job.priority_fixed);
  out.set_nice(job.nice);
  out.set_attempt(job.attempt);
  out.set_restarts(job.restarts);
  out.set_submit_time(job.submit_time);
  out.set_begin_time(job.begin_time);
  out.set_begin_is_length(job.begin_is_length);
  out.set_eligible_time(job.eligible_time);
  out.set_start_time(job.start_time);
  out.set_end_time(job.end_time);
  out.set_suspend_time(job.suspend_time);
  out.set_seconds_suspended(job.seconds_suspended);
  out.set_exit_status(job.exit_status);
  out.set_derived_exit_status(job.derived_exit_status);
  put_array(out, job);
  if (job.het) {
    out.set_het_job_id(job.het->leader);
    out.set_het_offset(job.het->offset);
    out.set_het_size(job.het->size);
  }
  if (!job.allocation.nodes.empty()) *out.mutable_allocation() = to_wire(cluster, job.allocation);
  out.set_partition(job.partition);
  if (job.time_limit_minutes) out.set_time_limit_minutes(*job.time_limit_minutes);
  out.set_time_limit_set(job.time_limit_decided);
  put_gpu_idle(out, job);
  out.set_next_step(job.running ? job.running->steps.next_id() : job.next_step);
  out.set_cancelled(job.ended_by.has_value());
  out.set_ended_by(job.ended_by.value_or(0));
  out.set_held(job.held);
  out.set_held_by_admin(job.held_by_admin);
  out.set_comment(job.comment);
  out.set_admin_comment(job.admin_comment);
  out.set_failed_node(job.failed_node);
  out.set_sluid(job.sluid);
  if (job.running) {
    for (const std::string& name : job.running->not_gone) out.add_waiting_nodes(name);
  }
  out.set_dependency(job.dependency);
  out.set_deadline(job.deadline);
  out.set_deadline_is_length(job.deadline_is_length);
  out.set_requeue(job.requeue);
  out.set_end_cause(job.end_cause);
  out.set_accrue_since(job.accrue_since);
  out.set_accrued(job.accrued);
  out.set_switch_wait_since(job.switch_wait_since);
  job.waits.store(out);
  put_preempted(out, job);
  out.set_reservation(job.reservation);
  out.set_reservation_gone(job.reservation_gone);
  out.set_reservation_over(job.reservation_over);
  out.set_licenses_taken(job.licenses_taken);
  out.set_lease_seconds(static_cast<std::uint32_t>(job.lease));
  for (const auto& [node, until] : job.may_run_on) {
    wire::MayRunOn& one = *out.add_may_run_on();
    one.set_node(node);
    one.set_until(until);
  }
  if (job.gpu_uses) {
    for (const wire::GpuUse& use : job.gpu_uses->all) *out.add_gpu_use() = use;
  }
  return out;
}

Job from_record(const cluster::Cluster& cluster, const wire::JobRecord& record) {
  Job job;
  job.id = record.id();
  job.asked_blob = record.asked_blob();
  job.overrides = {record.overrides().begin(), record.overrides().end()};
  job.uid = record.uid();
  job.gid = record.gid();
  job.token = record.token();
  job.interactive = record.interactive();
  job.detached = record.detached();
  job.base = base_of(record.state()).value_or(Base::failed);
  job.flags = flags_of(record);
  job.reason = record.reason();
  job.reason_text = record.reason_text();
  job.priority = record.priority();
  job.priority_fixed = record.priority_fixed();
  job.nice = record.nice();
  job.attempt = record.attempt();
  job.restarts = record.restarts();
  job.submit_time = record.submit_time();
  job.begin_time = record.begin_time();
  job.begin_is_length = record.begin_is_length();
  job.eligible_time = record.eligible_time();
  job.start_time = record.start_time();
  job.end_time = record.end_time();
  job.suspend_time = record.suspend_time();
  job.seconds_suspended = record.seconds_suspended();
  job.exit_status = record.exit_status();
  job.derived_exit_status = record.derived_exit_status();
  if (record.has_array_job_id()) {
    job.array = std::make_unique<ArrayFacts>();
    job.array->job_id = record.array_job_id();
    if (record.has_array_task_id()) job.array->task = record.array_task_id();
    job.array->rest = parse_ranges(record.array_rest()).value_or(Bits());
    job.array->throttle = record.array_throttle();
    job.array->min = record.array_min();
    job.array->max = record.array_max();
    job.array->count = record.array_count();
    job.array->step = record.array_step();
  }
  if (record.has_het_job_id()) {
    job.het = std::make_unique<HetFacts>(
        HetFacts{record.het_job_id(), record.het_offset(), record.het_size()});
  }
  job.allocation = from_wire(cluster, record.allocation());
  for (const wire::NodeShare& share : record.allocation().nodes())
    job.nodes.push_back(share.node());
  job.partition = record.partition();
  cluster::bind_to(cluster, job.partition, job.allocation);
  if (record.has_time_limit_minutes()) job.time_limit_minutes = record.time_limit_minutes();
  job.time_limit_decided = record.time_limit_set();
  job.gpu_idle_decided = record.has_gpu_idle();
  job.gpu_idle_by_admin = record.gpu_idle().by_admin();
  if (record.gpu_idle().has_seconds()) job.gpu_idle_seconds = record.gpu_idle().seconds();
  job.next_step = record.next_step();
  if (record.cancelled()) job.ended_by = record.ended_by();
  job.held = record.held();
  job.held_by_admin = record.held_by_admin();
  job.comment = record.comment();
  job.admin_comment = record.admin_comment();
  job.failed_node = record.failed_node();
  job.sluid = record.sluid();
  job.dependency = record.dependency();
  job.deadline = record.deadline();
  job.deadline_is_length = record.deadline_is_length();
  job.end_cause = record.end_cause();
  job.accrue_since = record.accrue_since();
  job.accrued = record.accrued();
  job.switch_wait_since = record.switch_wait_since();
  job.waits = WaitLog::from(record);
  job.preempted = preempted_of(record);
  job.preemptions = record.preemptions();
  job.reservation = record.reservation();
  job.reservation_gone = record.reservation_gone();
  job.reservation_over = record.reservation_over();
  job.licenses_taken = record.licenses_taken();
  job.lease = record.lease_seconds();
  for (const wire::MayRunOn& one : record.may_run_on()) job.may_run_on[one.node()] = one.until();
  if (record.gpu_use_size() > 0) {
    job.gpu_uses = std::make_unique<GpuUses>();
    job.gpu_uses->all.assign(record.gpu_use().begin(), record.gpu_use().end());
  }
  return job;
}

/// By NodePower::Phase.
constexpr std::array<std::string_view, 5> kPhases = {"", "going", "powering_down", "off",
                                                     "powering_up"};

wire::NodeRecord to_record(const std::string& name, const NodeState& node) {
  wire::NodeRecord out;
  out.set_name(name);
  out.set_state(node.down ? "DOWN" : "");
  if (node.drain) out.add_flags("DRAIN");
  if (node.fail) out.add_flags("FAIL");
  if (node.invalid) out.add_flags("INVALID_REG");
  out.set_reason(node.reason);
  out.set_reason_uid(node.reason_uid);
  out.set_reason_time(node.reason_time);
  out.set_comment(node.comment);
  out.set_extra(node.extra);
  if (node.weight) out.set_weight(*node.weight);
  out.set_features_set(node.features.has_value());
  out.set_features(node.features.value_or(""));
  out.set_boot_time(node.boot_time);
  out.set_boot_id(node.boot_id);
  out.set_last_busy(node.last_busy);
  out.set_line(node.line);
  out.set_power(std::string(kPhases[static_cast<std::size_t>(node.power.phase)]));
  out.set_power_since(node.power.since);
  out.set_power_told(node.power.told);
  if (node.power.no_new_jobs) out.add_power_flags("no_new_jobs");
  if (node.power.up_next) out.add_power_flags("up_next");
  if (node.power.down_next) out.add_power_flags("down_next");
  out.mutable_found_gpus()->Add(node.found_gpus.begin(), node.found_gpus.end());
  for (const auto& [gpu, drained] : node.gpus_drained) {
    wire::GpuDrained& one = *out.add_gpus_drained();
    one.set_index(gpu);
    one.set_reason(drained.reason);
    one.set_by(drained.by);
  }
  return out;
}

void read_record(const wire::NodeRecord& record, NodeState& node) {
  node.down = record.state() == "DOWN";
  const auto has = [&](std::string_view flag) {
    return std::ranges::find(record.flags(), flag) != record.flags().end();
  };
  node.drain = has("DRAIN");
  node.fail = has("FAIL");
  node.invalid = has("INVALID_REG");
  node.reason = record.reason();
  node.reason_uid = record.reason_uid();
  node.reason_time = record.reason_time();
  node.comment = record.comment();
  node.extra = record.extra();
  if (record.has_weight()) node.weight = record.weight();
  if (record.features_set()) node.features = record.features();
  node.boot_time = record.boot_time();
  node.boot_id = record.boot_id();
  node.last_busy = record.last_busy();
  node.found_gpus.assign(record.found_gpus().begin(), record.found_gpus().end());
  node.line = record.line();
  for (std::size_t i = 0; i < kPhases.size(); ++i) {
    if (record.power() == kPhases[i]) node.power.phase = static_cast<NodePower::Phase>(i);
  }
  const auto power_has = [&](std::string_view flag) {
    return std::ranges::find(record.power_flags(), flag) != record.power_flags().end();
  };
  node.power.since = record.power_since();
  node.power.told = record.power_told();
  node.power.no_new_jobs = power_has("no_new_jobs");
  node.power.up_next = power_has("up_next");
  node.power.down_next = power_has("down_next");
  for (const wire::GpuDrained& one : record.gpus_drained()) {
    node.gpus_drained[one.index()] = {one.reason(), one.by()};
  }
}

}  // namespace berth::job
