#include "job/step_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "job/launch.h"
#include "place/step_het.h"
#include "wire/step_ids.h"

namespace berth::job {
namespace {

/// Each type and count a node of the step has, as scontrol show step prints it: "gres/gpu:2".
std::string per_node_text(const place::StepPlan& plan) {
  if (plan.nodes.empty()) return {};
  std::string out;
  for (const cluster::GresShare& gres : plan.nodes.front().share.gres) {
    out += fmt::format("{}gres/{}:{}", out.empty() ? "" : ",", gres.name, gres.total());
  }
  return out;
}

wire::TaskSpec task_spec(const place::TaskPlan& task) {
  wire::TaskSpec out;
  out.set_rank(task.rank);
  out.set_local_id(task.local_id);
  out.set_bound(task.bound);
  out.set_cpus(task.cpus.ranges());
  for (const std::size_t gpu : task.gpus.members()) out.add_gpus(static_cast<std::uint32_t>(gpu));
  for (const Message& message : task.messages) {
    wire::Line* line = out.add_messages();
    line->set_severity(static_cast<std::uint32_t>(message.severity));
    line->set_text(message.text);
  }
  return out;
}

const cluster::NodeShare* share_of(const Job& job, cluster::NodeIndex node) {
  for (const cluster::NodeShare& share : job.allocation.nodes) {
    if (share.node == node) return &share;
  }
  return nullptr;
}

wire::StepSpec node_spec(const SpecInput& input, const place::StepPlan& whole, const SpecPart& part,
                         std::size_t node_id, const std::vector<std::string>& names) {
  const cluster::Cluster& cluster = *input.cluster;
  const place::StepNode& at = whole.nodes[node_id];
  const Job& job = *part.job;
  wire::StepSpec out;
  out.set_job_id(job.id);
  out.set_attempt(job.attempt);
  out.set_lease_seconds(static_cast<std::uint32_t>(job.lease));
  out.set_step_id(whole.id);
  out.set_node(names[node_id]);
  out.set_node_id(static_cast<std::uint32_t>(node_id));
  out.set_uid(job.uid);
  out.set_gid(job.gid);
  *out.mutable_share() = to_wire(cluster, at.share);
  if (const cluster::NodeShare* share = share_of(job, at.share.node)) {
    *out.mutable_job_share() = to_wire(cluster, *share);
  }
  out.set_ntasks(whole.ntasks);
  out.set_node_count(static_cast<std::uint32_t>(whole.nodes.size()));
  if (input.time_limit_minutes) out.set_time_limit_seconds(*input.time_limit_minutes * 60);
  out.set_name(input.name);
  out.set_counted(part.plan->counted);
  out.set_launcher(part.plan->launcher);
  out.set_shared_devices(part.plan->allow_task_sharing);
  out.set_tres_per_node(per_node_text(*part.plan));
  out.set_cpus_per_task(part.plan->cpus_per_task.value_or(0));
  out.set_created(input.now - input.adopted);
  out.set_partition(job.partition);
  out.set_account(job.what->account);
  out.set_sluid(job.sluid);
  return out;
}

void put(wire::Variable* out, const std::string& name, const std::string& value) {
  out->set_name(name);
  out->set_value(value);
}

}  // namespace

void put_job_facts(request::Environment& env, const Policy& policy, const Job& job) {
  const Time limit = job.time_limit_minutes ? Time{*job.time_limit_minutes} * 60 : kYear;
  env["SLURM_JOB_START_TIME"] = std::to_string(job.start_time);
  env["SLURM_JOB_END_TIME"] = std::to_string(job.start_time + limit);
  env["SLURM_JOB_UID"] = std::to_string(job.uid);
  env["SLURM_JOB_GID"] = std::to_string(job.gid);
  env["SLURM_JOB_SLUID"] = job.sluid;
  env["SLURM_SUBMIT_DIR"] = job.what->directory;
  env["SLURM_SUBMIT_HOST"] = job.what->host;
  env["SLURM_CLUSTER_NAME"] = policy.cluster_name;
  env["SLURM_PRIO_PROCESS"] = "0";
  if (!policy.conf_path.empty()) env["SLURM_CONF"] = policy.conf_path;
  if (!job.what->account.empty()) env["SLURM_JOB_ACCOUNT"] = job.what->account;
  if (!job.what->qos.empty()) env["SLURM_JOB_QOS"] = job.what->qos;
  if (!job.reservation.empty()) env["SLURM_JOB_RESERVATION"] = job.reservation;
  if (!job.what->licenses.empty()) env["SLURM_JOB_LICENSES"] = job.what->licenses;
  if (job.array && job.array->task) {
    env["SLURM_ARRAY_JOB_ID"] = std::to_string(job.array->job_id);
    env["SLURM_ARRAY_TASK_ID"] = std::to_string(*job.array->task);
    env["SLURM_ARRAY_TASK_COUNT"] = std::to_string(job.array->count);
    env["SLURM_ARRAY_TASK_MIN"] = std::to_string(job.array->min);
    env["SLURM_ARRAY_TASK_MAX"] = std::to_string(job.array->max);
    env["SLURM_ARRAY_TASK_STEP"] = std::to_string(job.array->step);
  }
}

void put_differences(wire::StepSpec& spec, request::Environment common,
                     const std::vector<request::Environment>& own,
                     const request::Environment& inherited) {
  if (own.empty()) return;
  // What all tasks have with the same value need not be told of each.
  request::Environment shared = own.front();
  for (const request::Environment& task : own) {
    std::erase_if(shared, [&](const auto& entry) {
      const auto at = task.find(entry.first);
      return at == task.end() || at->second != entry.second;
    });
  }
  request::Environment differing;  // with the value of tasks that say nothing of it
  for (const request::Environment& task : own) {
    for (const auto& [name, value] : task) {
      if (shared.contains(name)) continue;
      const auto at = common.find(name);
      if (at == common.end()) continue;
      differing.insert(common.extract(at));
    }
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    wire::TaskSpec& out = *spec.mutable_tasks(static_cast<int>(i));
    for (const auto& [name, value] : own[i]) {
      if (!shared.contains(name)) put(out.add_variables(), name, value);
    }
    for (const auto& [name, value] : differing) {
      if (!own[i].contains(name)) put(out.add_variables(), name, value);
    }
  }
  for (const auto& [name, value] : shared) common[name] = value;
  for (const auto& [name, value] : common) {
    const auto at = inherited.find(name);
    if (at == inherited.end() || at->second != value) put(spec.add_common(), name, value);
  }
  for (const auto& [name, value] : inherited) {
    if (!common.contains(name)) spec.add_unset(name);
  }
}

std::vector<wire::StepSpec> step_specs(const SpecInput& input) {
  const cluster::Cluster& cluster = *input.cluster;
  std::vector<place::StepPlan> plans;
  std::vector<place::JobFacts> facts;
  for (const SpecPart& part : input.parts) plans.push_back(*part.plan);
  for (const SpecPart& part : input.parts) {
    const bool again = std::ranges::any_of(
        facts, [&](const place::JobFacts& known) { return known.id == part.job->id; });
    if (!again) facts.push_back(part.job->running->facts);
  }
  place::JobFacts job = place::join_jobs(facts);
  // A step in a later component alone still belongs to the job that the user knows.
  if (const Job& first = *input.parts.front().job; first.het) job.id = first.het->leader;
  request::Environment inherited;
  if (!input.own_job) {
    for (const wire::Variable& variable : input.ask->environment()) {
      inherited[variable.name()] = variable.value();
    }
  }
  std::vector<wire::StepSpec> out;
  std::size_t node_id = 0;
  for (std::size_t p = 0; p < input.parts.size(); ++p) {
    const place::StepPlan whole = place::join_components(plans, p);
    std::vector<std::string> names;
    for (const place::StepNode& node : whole.nodes) {
      names.push_back(cluster.nodes[node.share.node].name);
    }
    request::Environment base = inherited;
    // A batch script has these already; salloc's command and an srun of its own do not.
    request::Environment known;
    put_job_facts(known, *input.policy, *input.parts.front().job);
    base.insert(known.begin(), known.end());
    base["SLURM_UMASK"] = fmt::format("{:04o}", input.ask->umask());
    const place::StepEnvironment environment(cluster, job, whole, base);
    for (std::size_t n = 0; n < input.parts[p].plan->nodes.size(); ++n, ++node_id) {
      wire::StepSpec spec = node_spec(input, whole, input.parts[p], node_id, names);
      std::vector<request::Environment> own;
      for (const std::uint32_t rank : whole.nodes[node_id].ranks) {
        const place::TaskPlan& task = whole.tasks[rank];
        *spec.add_tasks() = task_spec(task);
        own.push_back(environment.own(task));
      }
      put_differences(spec, environment.of_node(static_cast<std::uint32_t>(node_id)), own,
                      inherited);
      out.push_back(std::move(spec));
    }
  }
  return out;
}

std::string tres_of_step(const cluster::Cluster& cluster, const place::StepPlan& plan) {
  // The shell of salloc is launched in the same way, but is what the job is for.
  if (plan.launcher && plan.id != wire::kInteractiveStep) return {};
  cluster::Allocation held;
  for (const place::StepNode& node : plan.nodes) held.nodes.push_back(node.share);
  return tres_text(cluster, held, false);
}

void open_step(Step& step, const SpecInput& input, const place::StepPlan& plan, std::size_t part,
               const std::vector<wire::StepSpec>& specs) {
  const cluster::Cluster& cluster = *input.cluster;
  step.id = input.parts.front().plan->id;
  step.name = input.name;
  step.start = input.now;
  step.time_limit_minutes = input.time_limit_minutes;
  if (input.time_limit_minutes) step.limit_at = input.now + Time{*input.time_limit_minutes} * 60;
  for (const place::StepNode& node : plan.nodes) {
    step.nodes.push_back(cluster.nodes[node.share.node].name);
    step.open_nodes.insert(step.nodes.back());
    step.cpus += node.share.cpus;
  }
  step.ntasks += plan.ntasks;
  step.tres = tres_of_step(cluster, plan);
  step.tres_per_node = per_node_text(plan);
  step.submit_line = input.ask->submit_line();
  step.host = input.ask->host();
  if (part == 0) {
    for (const wire::StepSpec& spec : specs) {
      for (const wire::TaskSpec& task : spec.tasks()) {
        if (step.task_nodes.size() <= task.rank()) step.task_nodes.resize(task.rank() + 1);
        step.task_nodes[task.rank()] = spec.node();
      }
    }
  }
}

}  // namespace berth::job
