// Messages that begin a job on its nodes and tell its owner.
#include "job/launch.h"

#include <fmt/format.h>

#include <algorithm>

#include "job/step_spec.h"
#include "place/environment.h"
#include "place/environment_values.h"
#include "text/hostlist.h"
#include "wire/step.pb.h"
#include "wire/step_ids.h"

namespace berth::job {
namespace {

/// What a part of a GPU is a part of: nodes watch that jobs keep to theirs.
void add_wholes(const cluster::Node& node, wire::NodeShare& share) {
  for (wire::GresShare& part : *share.mutable_gres()) {
    const cluster::Gres* gres = node.find_gres(part.name());
    if (gres == nullptr || !gres->shares_gpu) continue;
    for (const cluster::Device& device : gres->devices) part.add_whole(device.units);
  }
}

void add(google::protobuf::RepeatedPtrField<wire::Variable>& out, const std::string& name,
         const std::string& value) {
  wire::Variable* one = out.Add();
  one->set_name(name);
  one->set_value(value);
}

}  // namespace

void put_user(wire::StepSpec& spec, const User& user) {
  spec.set_uid(user.uid);
  spec.set_gid(user.gid);
  spec.clear_groups();
  for (const std::uint32_t group : user.groups) spec.add_groups(group);
  spec.set_user(user.name);
  spec.set_home(user.home);
  spec.set_shell(user.shell);
  add(*spec.mutable_common(), "SLURM_JOB_USER", user.name);
  add(*spec.mutable_common(), "SLURM_JOB_GROUP", user.group);
}

std::vector<wire::Variable> prolog_environment(const State& state, const Job& job,
                                               std::string_view node, const User& user,
                                               bool epilog) {
  request::Environment env;
  env["SLURM_JOB_ID"] = env["SLURM_JOBID"] = std::to_string(job.id);
  env["SLURM_JOB_UID"] = std::to_string(job.uid);
  env["SLURM_JOB_GID"] = std::to_string(job.gid);
  env["SLURM_JOB_USER"] = user.name;
  env["SLURM_JOB_GROUP"] = user.group;
  env["SLURM_JOB_PARTITION"] = job.partition;
  env["SLURM_JOB_ACCOUNT"] = job.what->account;
  env["SLURM_JOB_CONSTRAINTS"] = job.what->request.constraint.value_or("");
  env["SLURM_JOB_COMMENT"] = job.comment;
  env["SLURM_JOB_WORK_DIR"] = job.what->directory;
  env["SLURM_JOB_NAME"] = job.what->job_name;
  env["SLURM_JOB_NODELIST"] = text::compress_hostlist(job.nodes);
  env["SLURM_JOB_RESTART_COUNT"] = std::to_string(job.restarts);
  env["SLURM_CLUSTER_NAME"] = state.policy().cluster_name;
  env["SLURM_CONF"] = state.policy().conf_path;
  env["SLURMD_NODENAME"] = std::string(node);
  env["SLURM_SCRIPT_CONTEXT"] = epilog ? "epilog_slurmd" : "prolog_slurmd";
  for (const cluster::NodeShare& share : job.allocation.nodes) {
    if (state.cluster().nodes[share.node].name != node) continue;
    if (const Bits gpus = share.gpus(); gpus.any()) {
      env["SLURM_JOB_GPUS"] = gpus.list();
      // Scripts stand outside the fence of the job: they count as the node does.
      env.merge(place::visible_variables(state.cluster().nodes[share.node], gpus, gpus));
    }
  }
  if (epilog) {
    env["SLURM_JOB_EXIT_CODE"] = std::to_string(job.exit_status);
    env["SLURM_JOB_EXIT_CODE2"] =
        fmt::format("{}:{}", job.exit_status >> 8, job.exit_status & 0x7f);
    env["SLURM_JOB_DERIVED_EC"] = std::to_string(job.derived_exit_status);
  }
  std::vector<wire::Variable> out;
  for (const auto& [name, value] : env) {
    if (value.empty()) continue;
    wire::Variable one;
    one.set_name(name);
    one.set_value(value);
    out.push_back(std::move(one));
  }
  return out;
}

wire::BeginJob begin_job(const State& state, const Job& job, std::string_view node,
                         const wire::Asked& asked, const User& user, std::uint64_t epoch,
                         Time expires, std::string nonce) {
  wire::BeginJob out;
  out.set_node(std::string(node));
  out.set_job_id(job.id);
  out.set_attempt(job.attempt);
  out.set_epoch(epoch);
  out.set_uid(job.uid);
  out.set_gid(job.gid);
  out.set_user(user.name);
  out.set_lease_seconds(static_cast<std::uint32_t>(job.lease));
  for (const cluster::NodeShare& share : job.allocation.nodes) {
    if (state.cluster().nodes[share.node].name == node) {
      *out.mutable_share() = to_wire(state.cluster(), share);
      add_wholes(state.cluster().nodes[share.node], *out.mutable_share());
    }
  }
  const bool first = !job.nodes.empty() && job.nodes.front() == node;
  if (!job.batch || !first || (job.het && job.het->offset > 0)) return out;
  BatchLaunch batch = batch_launch(state, job, asked, user);
  batch.spec.set_epoch(epoch);
  batch.spec.set_expires(expires);
  batch.spec.set_nonce(std::move(nonce));
  wire::Launch& launch = *out.mutable_batch();
  launch.mutable_ticket()->set_node(std::string(node));
  launch.mutable_ticket()->set_spec(batch.spec.SerializeAsString());
  *launch.mutable_program() = std::move(batch.program);
  return out;
}

wire::JobGrant job_grant(const State& state, const Job& job, const User& user) {
  wire::JobGrant out;
  std::vector<const Job*> parts;
  if (job.het) {
    for (const JobId id : state.records_of(job.het->leader)) parts.push_back(state.find(id));
  } else {
    parts.push_back(&job);
  }
  const Job& leader = *parts.front();
  out.set_job_id(leader.id);
  out.set_user(user.name);
  out.set_start_time(leader.start_time);
  out.set_conf_path(state.policy().conf_path);
  std::vector<place::JobFacts> facts;
  bool ready = true;
  for (const Job* part : parts) {
    wire::Component* component = out.add_components();
    component->set_job_id(part->id);
    component->set_nodes(text::compress_hostlist(part->nodes));
    for (const std::string& name : part->nodes) component->add_node_names(name);
    component->set_partition(part->partition);
    *component->mutable_allocation() = to_wire(state.cluster(), part->allocation);
    ready = ready && part->running && part->running->ready;
    if (part->running) facts.push_back(part->running->facts);
  }
  out.set_ready(ready);
  if (facts.size() != parts.size()) return out;
  request::Environment env = place::salloc_environment(state.cluster(), facts.front());
  if (facts.size() > 1) {
    // The same by component; what only a batch script has is not salloc's.
    const request::Environment whole = place::het_batch_environment(state.cluster(), facts);
    for (const auto& [name, value] : whole) {
      if (name == "SLURM_HET_SIZE" || name.find("_GROUP_") != name.npos) env[name] = value;
    }
  }
  env["SLURM_SUBMIT_DIR"] = leader.what->directory;
  env["SLURM_SUBMIT_HOST"] = leader.what->host;
  env["SLURM_CLUSTER_NAME"] = state.policy().cluster_name;
  env["SLURM_CONF"] = state.policy().conf_path;
  for (const auto& [name, value] : env) add(*out.mutable_environment(), name, value);
  return out;
}

}  // namespace berth::job
