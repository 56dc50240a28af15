#include "controller/info_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/info_request.h"
#include "place/environment.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/pattern.h"
#include "text/words.h"
#include "wire/step_ids.h"

namespace berth::controller {
namespace {

using request::Opt;

std::string_view exclusive_word(const request::Request& request,
                                const cluster::Partition* partition) {
  const std::string_view asked = place::exclusive_word(request.exclusive);
  return asked == "NO" && partition != nullptr && partition->exclusive_nodes ? "NODE" : asked;
}

std::uint32_t number_of(std::string_view text) {
  return static_cast<std::uint32_t>(text::parse_number(text, UINT32_MAX).value_or(0));
}

/// Tasks see "gres/gpu:map:0,1" in SLURM_TRES_BIND; scontrol shows "gres/gpu:map_gpu:0,1".
std::string bind_words(std::string text) {
  for (const std::string_view kind : {"gpu:map:", "gpu:mask:"}) {
    const std::size_t at = text.find(kind);
    if (at != text.npos) text.insert(at + kind.size() - 1, "_gpu");
  }
  return text;
}

/// Without the generic resources that are not tracked.
std::string tracked_part(std::string_view tres, const TrackedTres& tracked) {
  std::string out;
  for (const std::string_view part : text::split(tres, ',')) {
    const std::string_view name = part.substr(0, part.find('='));
    if (name.starts_with("gres/") && std::ranges::find(tracked, name) == tracked.end()) continue;
    if (!out.empty()) out += ',';
    out += part;
  }
  return out;
}

void put_who(wire::JobInfo& out, const InfoSite& site, const job::Job& job) {
  out.set_id(job.id);
  out.set_name(job.what->job_name);
  out.set_uid(job.uid);
  out.set_gid(job.gid);
  out.set_user(site.users.name_of(job.uid));
  out.set_group(site.users.group_name(job.gid));
  out.set_account(job.what->account);
  out.set_qos(job.what->qos);
  out.set_wckey(job.what->wckey);
  out.set_reservation(std::string(job.shown_reservation()));
  out.set_licenses(job.what->licenses);
  if (job.running) out.set_licenses_taken(job.licenses_taken);
  if (job.gpu_uses) {
    for (const wire::GpuUse& use : job.gpu_uses->all) *out.add_gpu_use() = use;
  }
  if (job.gpu_idle_seconds) out.set_gpu_idle_seconds(*job.gpu_idle_seconds);
  out.set_comment(job.comment);
  out.set_admin_comment(job.admin_comment);
  out.set_extra(job.what->extra);
  out.set_sluid(job.sluid);
  out.set_alloc_node(job.what->host);
  out.set_alloc_sid(job.what->session);
  out.set_work_dir(job.what->directory);
  out.set_submit_line(job.what->submit_line);
  out.set_mail_user(std::string(job.what->text(Opt::mail_user)));
  out.set_mail_type(std::string(job.what->text(Opt::mail_type)));
  if (job.array) {
    out.set_array_job_id(job.array->job_id);
    out.set_array_throttle(job.array->throttle);
    if (job.array->task) {
      out.set_array_task_id(*job.array->task);
    } else {
      const std::string limit =
          job.array->throttle > 0 ? fmt::format("%{}", job.array->throttle) : "";
      out.set_array_tasks(fmt::format("[{}{}]", job.array->rest.ranges(), limit));
    }
  }
  if (job.het) {
    out.set_het_job_id(job.het->leader);
    out.set_het_offset(job.het->offset);
    out.set_het_set(fmt::format("{}-{}", job.het->leader, job.het->leader + job.het->size - 1));
  }
}

void put_state(wire::JobInfo& out, const job::Job& job) {
  out.set_state(std::string(job::base_name(job.base)));
  for (std::string& flag : job::flag_names(job.flags)) out.add_flags(std::move(flag));
  out.set_reason(job.reason);
  out.set_reason_text(job.reason_text);
  out.set_priority(job.priority);
  out.set_nice(job.nice);
  out.set_dependency(job.dependency);
  out.set_batch(job.batch);
  out.set_requeue(job.requeue);
  out.set_restarts(job.restarts);
  out.set_exit_status(job.exit_status);
  out.set_derived_exit_status(job.derived_exit_status);
  out.set_failed_node(job.failed_node);
  out.set_kill_on_invalid_dependency(job.what->kill_on_invalid_dependency);
  out.set_reboot(job.what->request.given.has(Opt::reboot));
}

/// The limit, or the one its partition is going to give it.
std::optional<std::uint32_t> time_limit(const job::Job& job, const cluster::Partition* partition) {
  if (job.time_limit_decided || job.time_limit_minutes || job.what->request.time_limit ||
      partition == nullptr) {
    return job.time_limit_minutes;
  }
  return partition->default_time_minutes ? partition->default_time_minutes
                                         : partition->max_time_minutes;
}

void put_times(wire::JobInfo& out, const job::Job& job, const cluster::Partition* partition) {
  if (const auto limit = time_limit(job, partition)) out.set_time_limit_minutes(*limit);
  if (job.what->request.time_min) out.set_time_min_minutes(*job.what->request.time_min);
  out.set_submit_time(job.submit_time);
  out.set_eligible_time(job.eligible_time != 0 ? job.eligible_time : job.not_before());
  out.set_accrue_time(job.eligible_time);
  out.set_deadline(job.deadline);
  out.set_last_sched_eval(job.last_evaluation);
  out.set_scheduler(job.backfilled ? "Backfill" : "Main");
  const bool waits = job.base == job::Base::pending;
  const job::Time planned = job.planned_start != 0               ? job.planned_start
                            : job.not_before() > job.submit_time ? job.not_before()
                                                                 : 0;
  const job::Time start = waits ? planned : job.start_time;
  out.set_start_time(start);
  if (job.end_time != 0) {
    out.set_end_time(job.end_time);
  } else if (start != 0 && job.time_limit_minutes) {
    out.set_end_time(start + std::int64_t{*job.time_limit_minutes} * 60 + job.seconds_suspended);
  }
  if (job.preempted) {
    out.set_preempt_time(job.preempted->at);
    if (job.base == job::Base::running && job.preempted->until != 0) {
      out.set_end_time(job.preempted->until);
    }
  }
  if (job.base == job::Base::suspended) {
    out.set_suspend_time(job.suspend_time);
    out.set_seconds_before_suspend(job.suspend_time - job.start_time - job.seconds_suspended);
  } else if (job.seconds_suspended > 0 && job.start_time != 0) {
    // Run time counts from a start that is later by what was lost.
    out.set_suspend_time(job.start_time + job.seconds_suspended);
  }
}

void put_request(wire::JobInfo& out, const job::Job& job, const AskedSize& size,
                 const cluster::Partition* partition, std::uint32_t max_switch_wait) {
  const request::Request& request = job.what->request;
  out.set_cpus_per_task(size.cpus_per_task);
  out.set_min_cpus_node(size.min_cpus_node);
  out.set_sockets_per_node(request.sockets_per_node.value_or(0));
  out.set_cores_per_socket(request.cores_per_socket.value_or(0));
  out.set_threads_per_core(request.threads_per_core.value_or(0));
  out.set_ntasks_per_node(size.counts.ntasks_per_node.value_or(0));
  out.set_ntasks_per_socket(request.ntasks_per_socket.value_or(0));
  out.set_ntasks_per_core(request.ntasks_per_core.value_or(0));
  if (!size.memory || size.memory->per == request::MemoryPer::node) {
    out.set_min_memory_node_mb(size.memory ? size.memory->mb : 0);
  } else if (size.memory->per == request::MemoryPer::cpu) {
    out.set_min_memory_cpu_mb(size.memory->mb);
  } else {
    out.set_mem_per_tres(fmt::format("gres/gpu:{}", size.memory->mb));
  }
  out.set_min_tmp_mb(request.tmp_mb.value_or(0));
  // A record of a refused request shows none: recorded so.
  if (job.reason != "BadConstraints") {
    out.set_features(request.constraint ? *request.constraint : request.prefer.value_or(""));
  }
  out.set_prefer(request.prefer.value_or(""));
  out.set_over_subscribe(request.oversubscribe ? "YES" : "NO");
  out.set_exclusive(std::string(exclusive_word(request, partition)));
  out.set_contiguous(request.contiguous);
  out.set_req_nodes(text::compress_hostlist(request.nodelist));
  out.set_exc_nodes(text::compress_hostlist(request.exclude));
  if (request.nodes) {
    out.set_max_nodes(std::min(request.nodes->max, request.ntasks.value_or(request.nodes->max)));
  }
  out.set_core_spec(number_of(job.what->text(Opt::core_spec)));
  out.set_segment_size(request.segment.value_or(0));
  if (request.switches) {
    const std::uint64_t most = max_switch_wait;
    out.set_switches(request.switches->count);
    out.set_switch_wait(
        static_cast<std::uint32_t>(std::min(request.switches->wait_seconds.value_or(most), most)));
  }
  out.set_batch_features(std::string(job.what->text(Opt::batch)));

  if (request.cpus_per_gpu)
    out.set_cpus_per_tres(fmt::format("gres/gpu:{}", *request.cpus_per_gpu));
  if (request.ntasks_per_gpu) out.set_ntasks_per_tres(std::to_string(*request.ntasks_per_gpu));
  if (size.counts.gpu_bind && !request.ntasks_per_gpu) {
    out.set_tres_bind(bind_words(size.counts.gpu_bind->text));
  }
  if (request.gpu_bind) out.set_tres_bind(bind_words(request.gpu_bind->text));
  out.set_tres_per_job(gres_ask_words(request.gres_per_job));
  out.set_tres_per_node(gres_ask_words(request.gres_per_node));
  out.set_tres_per_socket(gres_ask_words(request.gres_per_socket));
  out.set_tres_per_task(place::tres_per_task_text(request));
}

void put_program(wire::JobInfo& out, const job::Job& job, const std::string& user) {
  const request::Request& request = job.what->request;
  std::string command = job.what->command_path;
  if (!command.empty()) {
    for (std::size_t i = 1; i < request.argv.size(); ++i) command += " " + request.argv[i];
  }
  out.set_command(command);
  if (!job.batch) return;
  text::PatternValues values;
  values.job_id = std::to_string(job.id);
  values.job_name = job.what->job_name;
  values.user = user;
  values.node = job.nodes.empty() ? "" : job.nodes.front();
  values.restarts = std::to_string(job.restarts);
  values.sluid = job.sluid;
  if (job.array) {
    values.array_master = std::to_string(job.array->job_id);
    // The rest of an array has no index yet: the pattern stays to be seen.
    values.array_index = job.array->task ? std::to_string(*job.array->task) : "%a";
  }
  const auto shown = [&](const std::string& pattern) {
    return text::absolute(text::expand_pattern(pattern, values), job.what->directory);
  };
  const std::string output =
      request.output.value_or(job.array ? "slurm-%A_%a.out" : "slurm-%j.out");
  out.set_std_out_asked(output);
  out.set_std_out(shown(output));
  out.set_std_in_asked(request.input.value_or("/dev/null"));
  out.set_std_in(shown(request.input.value_or("/dev/null")));
  if (request.error) {
    out.set_std_err_asked(*request.error);
    out.set_std_err(shown(*request.error));
  }
}

void put_detail(wire::JobInfo& out, const InfoSite& site, const job::Job& job) {
  for (std::size_t i = 0; i < job.allocation.nodes.size(); ++i) {
    const cluster::NodeShare& share = job.allocation.nodes[i];
    if (share.node >= site.cluster.nodes.size()) continue;
    const cluster::Node& node = site.cluster.nodes[share.node];
    wire::NodeDetail& detail = *out.add_detail();
    detail.set_node(node.name);
    detail.set_cpu_ids(node.threads_of(share.cores).ranges());
    detail.set_memory_mb(share.memory_mb);
    detail.set_gres(gres_held_words(node, share));
  }
  out.set_gres_detail(gres_total_words(site.cluster, job.allocation));
}

void put_size(wire::JobInfo& out, const InfoSite& site, const job::Job& job, const AskedSize& size,
              const cluster::Partition* partition) {
  out.set_req_tres(tres_words(counts_of(size), site.tracked));
  const bool had_nodes =
      job.start_time != 0 && !job.allocation.nodes.empty() && job.base != job::Base::pending;
  if (!had_nodes) {
    out.set_node_count(job.reason == "BadConstraints" ? nodes_tried(size) : size.nodes);
    out.set_cpus(
        static_cast<std::uint32_t>(cpus_tried(site.cluster, job.what->request, partition, size)));
    // A job that ended without ever starting shows a count of tasks only when one was asked for.
    const bool shown = job.base == job::Base::pending || size.tasks_given;
    if (shown) out.set_tasks(size.tasks);
    return;
  }
  TresCounts held = counts_of(site.cluster, job.allocation);
  held.billing = true;
  out.set_alloc_tres(tres_words(held, site.tracked));
  const auto nodes = static_cast<std::uint32_t>(job.allocation.nodes.size());
  out.set_node_count(nodes);
  out.set_cpus(static_cast<std::uint32_t>(held.cpus));
  out.set_tasks(size.counts.tasks.value_or(nodes * size.counts.ntasks_per_node.value_or(1)));
  out.set_nodes(text::compress_hostlist(job.nodes));
  if (!job.nodes.empty()) out.set_batch_host(job.nodes.front());
  put_detail(out, site, job);
}

}  // namespace

wire::JobInfo job_info(const InfoSite& site, const job::Job& job, job::Time /*now*/) {
  wire::JobInfo out;
  const cluster::Partition* partition =
      site.cluster.find_partition(text::split(job.partition, ',').front());
  const AskedSize size = asked_size(site.cluster, job.what->request, partition);
  put_who(out, site, job);
  put_state(out, job);
  out.set_partition(job.partition);
  put_times(out, job, partition);
  put_request(out, job, size, partition, site.max_switch_wait);
  put_size(out, site, job, size, partition);
  out.set_sched_nodes(job.base == job::Base::pending ? job.planned_nodes : "");
  put_program(out, job, out.user());
  return out;
}

wire::StepInfo step_info(const InfoSite& site, const job::Job& job, const job::Step& step) {
  wire::StepInfo out;
  out.set_job_id(job.id);
  out.set_step_id(step.id);
  out.set_name(step.name);
  out.set_uid(job.uid);
  out.set_user(site.users.name_of(job.uid));
  out.set_state(step.ending ? "COMPLETING" : "RUNNING");
  out.set_partition(job.partition);
  out.set_start_time(step.start);
  if (step.time_limit_minutes) out.set_time_limit_minutes(*step.time_limit_minutes);
  out.set_nodes(text::compress_hostlist(step.nodes));
  out.set_node_count(static_cast<std::uint32_t>(step.nodes.size()));
  out.set_cpus(step.cpus);
  out.set_tasks(step.ntasks);
  if (step.id != wire::kBatchStep && step.id != wire::kInteractiveStep) {
    out.set_tres(tracked_part(step.tres, site.tracked));
  }
  if (job.array && job.array->task) {
    out.set_array_job_id(job.array->job_id);
    out.set_array_task_id(*job.array->task);
  }
  out.set_host(step.host);
  out.set_tres_per_node(step.tres_per_node);
  out.set_submit_line(step.submit_line);
  std::vector<std::string> over = step.nodes;
  std::erase_if(over, [&](const std::string& node) { return step.open_nodes.contains(node); });
  if (!over.empty()) {
    out.set_ended_nodes(text::compress_hostlist(over));
    *out.mutable_ended_figures() = step.usage.figures();
  }
  return out;
}

}  // namespace berth::controller
