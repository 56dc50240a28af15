// The least of what the commands show and change, until the files that do all of it are there.
#pragma once

#include "controller/caller.h"
#include "controller/figures.h"
#include "controller/setup.h"
#include "controller/users.h"
#include "job/launch.h"
#include "job/state.h"
#include "text/hostlist.h"
#include "wire/refusal.h"

namespace berth::controller {

inline wire::JobInfo job_info(const job::State& state, const job::Job& job, Users& users,
                              job::Time /*now*/) {
  wire::JobInfo info;
  info.set_id(job.id);
  info.set_name(job.what->job_name);
  info.set_uid(job.uid);
  info.set_gid(job.gid);
  info.set_user(users.name_of(job.uid));
  info.set_state(std::string(job::base_name(job.base)));
  for (std::string& flag : job::flag_names(job.flags)) info.add_flags(std::move(flag));
  info.set_reason(job.reason);
  info.set_reason_text(job.reason_text);
  info.set_partition(job.partition);
  info.set_priority(job.priority);
  if (job.array) {
    info.set_array_job_id(job.array->job_id);
    if (job.array->task) info.set_array_task_id(*job.array->task);
    if (!job.array->task) info.set_array_tasks("[" + job.array->rest.ranges() + "]");
  }
  info.set_exit_status(job.exit_status);
  if (job.time_limit_minutes) info.set_time_limit_minutes(*job.time_limit_minutes);
  info.set_submit_time(job.submit_time);
  info.set_start_time(job.start_time);
  info.set_end_time(job.end_time);
  info.set_nodes(text::compress_hostlist(job.nodes));
  info.set_node_count(static_cast<std::uint32_t>(std::max<std::size_t>(1, job.nodes.size())));
  for (const auto& share : job.allocation.nodes) info.set_cpus(info.cpus() + share.cpus);
  info.set_alloc_tres(job::tres_text(state.cluster(), job.allocation, true));
  info.set_work_dir(job.what->directory);
  return info;
}

inline wire::StepInfo step_info(const job::State& /*state*/, const job::Job& job,
                                const job::Step& step, Users& users) {
  wire::StepInfo info;
  info.set_job_id(job.id);
  info.set_step_id(step.id);
  info.set_name(step.name);
  info.set_uid(job.uid);
  info.set_user(users.name_of(job.uid));
  info.set_state("RUNNING");
  info.set_partition(job.partition);
  info.set_start_time(step.start);
  info.set_nodes(text::compress_hostlist(step.nodes));
  info.set_tasks(step.ntasks);
  return info;
}

inline wire::NodeInfo node_info(const job::State& state, cluster::NodeIndex index, Users&,
                                job::Time /*now*/) {
  wire::NodeInfo info;
  const cluster::Node& node = state.cluster().nodes[index];
  const job::NodeState& known = state.node(index);
  info.set_name(node.name);
  info.set_cpus(node.cpus());
  info.set_memory_mb(node.memory_mb);
  info.set_state(known.down           ? "DOWN"
                 : !known.registered  ? "UNKNOWN"
                 : known.jobs.empty() ? "IDLE"
                                      : "MIXED");
  if (!known.responding) info.add_flags("NOT_RESPONDING");
  if (known.drain) info.add_flags("DRAIN");
  info.set_reason(known.reason);
  for (const cluster::Partition& partition : state.cluster().partitions) {
    if (std::ranges::find(partition.nodes, index) != partition.nodes.end()) {
      info.add_partitions(partition.name);
    }
  }
  return info;
}

inline wire::PartitionInfo partition_info(const job::State& state,
                                          const cluster::Partition& partition, const Setup&) {
  wire::PartitionInfo info;
  info.set_name(partition.name);
  info.set_is_default(&partition == state.cluster().default_partition());
  info.set_state("UP");
  std::vector<std::string> names;
  for (const auto i : partition.nodes) names.push_back(state.cluster().nodes[i].name);
  info.set_nodes(text::compress_hostlist(names));
  info.set_total_nodes(static_cast<std::uint32_t>(names.size()));
  return info;
}

inline wire::ConfigReply config_reply(const Setup& setup, const std::string& host) {
  wire::ConfigReply reply;
  reply.set_conf_path(setup.conf_path);
  reply.set_controller_host(host);
  return reply;
}

inline wire::DiagnoseReply diagnose_reply(const job::State&, const Figures&, Users&, job::Time) {
  return {};
}

struct ChangeContext {
  const Setup& setup;
  Users& users;
  std::function<std::optional<wire::Asked>(std::uint64_t)> fetch;
};

inline wire::Done change(job::State&, const Caller&, const wire::Change&, const ChangeContext&,
                         job::Time) {
  wire::Done done;
  *done.mutable_refusal() = wire::to_refusal(fail(Code::unsupported, "not there yet").error());
  return done;
}

inline std::vector<std::string> apply_partition_records(const std::vector<wire::PartitionRecord>&,
                                                        const Setup&, cluster::Cluster&,
                                                        job::Policy&) {
  return {};
}

}  // namespace berth::controller
