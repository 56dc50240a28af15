// The cluster and the jobs of the recorded samples, as the controller would send them.
#pragma once

#include <stdlib.h>
#include <time.h>

#include <string>

#include "wire/info.pb.h"
#include "wire/step_ids.h"

namespace berth::command {

inline constexpr std::int64_t kSampleTime = 1794731090;  // Sun Nov 15 08:24:50 2026 UTC

inline void use_utc() {
  setenv("TZ", "UTC", 1);
  tzset();
}

inline wire::JobInfo sample_job(std::uint32_t id, const char* name, const char* state,
                                const char* sluid) {
  wire::JobInfo job;
  job.set_id(id);
  job.set_name(name);
  job.set_uid(1001);
  job.set_gid(1001);
  job.set_user("alice");
  job.set_group("alice");
  job.set_state(state);
  job.set_reason("None");
  job.set_partition("debug");
  job.set_batch(true);
  job.set_requeue(true);
  job.set_submit_time(1794731087);
  job.set_node_count(1);
  job.set_cpus(1);
  job.set_tasks(1);
  job.set_min_cpus_node(1);
  job.set_over_subscribe("NO");
  job.set_exclusive("NO");
  job.set_work_dir("/corpus/work/samples");
  job.set_sluid(sluid);
  return job;
}

inline wire::JobsReply sample_jobs() {
  wire::JobsReply reply;
  reply.set_now(kSampleTime);
  reply.set_cluster_name("oracle");
  wire::JobInfo& running = *reply.add_jobs();
  running = sample_job(20778, "sample", "RUNNING", "s7YSM7F4Y5G400");
  running.set_priority(1);
  running.set_start_time(1794731088);
  running.set_end_time(1794731688);
  running.set_time_limit_minutes(10);
  running.set_nodes("gpu[1-2]");
  running.set_batch_host("gpu1");
  running.set_node_count(2);
  running.set_cpus(8);
  running.set_tasks(4);
  running.set_min_cpus_node(4);
  running.set_min_memory_node_mb(4096);
  running.set_command("/corpus/work/samples/b.sh");
  running.set_req_tres("cpu=8,mem=8G,node=2,billing=8");
  running.set_alloc_tres("cpu=8,mem=8G,node=2,billing=8");
  wire::JobInfo& held = *reply.add_jobs();
  held = sample_job(20779, "held", "PENDING", "s7YSM7F4Y5KN00");
  held.set_reason("JobHeldUser");
  held.set_cpus(2);
  held.set_tres_per_node("gres/gpu:2");
  held.set_min_memory_node_mb(1024);
  wire::JobInfo& array = *reply.add_jobs();
  array = sample_job(20780, "arr", "PENDING", "s7YSM7F4Y5R200");
  array.set_reason("JobHeldUser");
  array.set_array_job_id(20780);
  array.set_array_tasks("[1-4%2]");
  array.set_min_memory_node_mb(1024);
  wire::JobInfo& big = *reply.add_jobs();
  big = sample_job(20781, "toobig", "PENDING", "s7YSM7F4Y5T600");
  big.set_reason("Resources");
  big.set_partition("gpu_partition");
  big.set_priority(1);
  big.set_start_time(1794731688);
  big.set_node_count(6);
  big.set_cpus(6);
  big.set_sched_nodes("gpu[1-6]");

  wire::StepInfo& batch = *reply.add_steps();
  batch.set_job_id(20778);
  batch.set_step_id(wire::kBatchStep);
  batch.set_name("batch");
  batch.set_uid(1001);
  batch.set_user("alice");
  batch.set_partition("debug");
  batch.set_start_time(1794731088);
  batch.set_nodes("gpu1");
  batch.set_tasks(1);
  wire::StepInfo& step = *reply.add_steps();
  step = batch;
  step.set_step_id(1);
  step.set_name("stepname");
  step.set_start_time(1794731089);
  step.set_nodes("gpu[1-2]");
  step.set_tasks(4);
  return reply;
}

}  // namespace berth::command
