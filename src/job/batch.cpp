// The batch script as its job runs it: variables, files, limits.
#include <fmt/format.h>

#include <algorithm>

#include "job/launch.h"
#include "job/step_spec.h"
#include "place/environment.h"
#include "request/kills_step.h"
#include "text/words.h"
#include "wire/step_ids.h"

namespace berth::job {
namespace {

using request::Environment;
using request::Opt;

std::vector<place::JobFacts> facts_of(const State& state, const Job& job) {
  std::vector<place::JobFacts> out;
  const auto ids = job.het ? state.records_of(job.het->leader) : std::vector<JobId>{job.id};
  for (const JobId id : ids) {
    const Job* part = state.find(id);
    if (part != nullptr && part->running) out.push_back(part->running->facts);
  }
  return out;
}

bool always_passed(const std::string& name) {
  return name.starts_with("SLURM_") || name.starts_with("SPANK_");
}

/// What --export lets through of the environment of sbatch.
Environment exported(const Job& job, const wire::Asked& asked, const User& user) {
  Environment given;
  for (const wire::Variable& variable : asked.environment())
    given[variable.name()] = variable.value();
  // sbatch has chosen already, and names what only the request was read by.
  if (asked.hidden_size() > 0) {
    for (const std::string& name : asked.hidden()) given.erase(name);
    return given;
  }
  const std::string text = job.what->request.export_env.value_or("ALL");
  if (text::equal_ignoring_case(text, "ALL")) return given;
  Environment out;
  bool everything = false;
  const bool nothing =
      text::equal_ignoring_case(text, "NONE") || text::equal_ignoring_case(text, "NIL");
  if (!nothing) {
    for (const std::string_view item : text::split(text, ',')) {
      const auto equals = item.find('=');
      const std::string name(item.substr(0, equals));
      if (item == "ALL") {
        everything = true;
      } else if (equals != item.npos) {
        out[name] = std::string(item.substr(equals + 1));
      } else if (const auto at = given.find(name); at != given.end()) {
        out[name] = at->second;
      }
    }
  }
  for (const auto& [name, value] : given) {
    if (everything || always_passed(name)) out.emplace(name, value);
  }
  if (everything || text::equal_ignoring_case(text, "NIL")) return out;
  // A login of the user, as far as it is known here.
  out.emplace("HOME", user.home);
  out.emplace("USER", user.name);
  out.emplace("LOGNAME", user.name);
  out.emplace("SHELL", user.shell);
  out.emplace("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
  out["SLURM_GET_USER_ENV"] = "1";
  return out;
}

/// Variables of an allocation that sbatch was called in must not be taken for this job's.
void drop_other_job(Environment& env) {
  std::erase_if(env, [](const auto& entry) {
    const std::string& name = entry.first;
    if (name.starts_with("SLURMD_")) return true;
    if (!name.starts_with("SLURM_")) return false;
    constexpr std::string_view kUserOwn[] = {
        "SLURM_CONF",          "SLURM_TIME_FORMAT",  "SLURM_EXIT_ERROR",   "SLURM_DEBUG_FLAGS",
        "SLURM_CPU_FREQ_REQ",  "SLURM_HINT",         "SLURM_UNBUFFEREDIO", "SLURM_LABELIO",
        "SLURM_KILL_BAD_EXIT", "SLURM_WAIT",         "SLURM_MPI_TYPE",     "SLURM_EXIT_IMMEDIATE",
        "SLURM_CPU_BIND",      "SLURM_GET_USER_ENV", "SLURM_EXACT",        "SLURM_OVERLAP"};
    return std::ranges::find(kUserOwn, name) == std::end(kUserOwn);
  });
}

Environment batch_variables(const State& state, const Job& job, const wire::Asked& asked,
                            const User& user) {
  Environment env = exported(job, asked, user);
  drop_other_job(env);
  const Environment set = place::het_batch_environment(state.cluster(), facts_of(state, job));
  place::add_job_variables(env, set);
  for (const char* gpu :
       {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"}) {
    if (!set.contains(gpu)) env.erase(gpu);  // devices of where sbatch ran
  }
  put_job_facts(env, state.policy(), job);
  env["SLURM_JOB_USER"] = user.name;
  env["SLURM_RESTART_COUNT"] = std::to_string(job.restarts);
  if (!job.dependency.empty()) env["SLURM_JOB_DEPENDENCY"] = job.dependency;
  if (const auto mode = job.what->text(Opt::open_mode); !mode.empty()) {
    env["SLURM_OPEN_MODE"] = std::string(1, mode.front());
  }
  if (!env.contains("TMPDIR")) env["TMPDIR"] = "/tmp";
  return env;
}

wire::StdioSpec file(std::string pattern) {
  wire::StdioSpec out;
  out.set_kind(pattern == "/dev/null" || pattern == "none" ? "none" : "file");
  out.set_pattern(std::move(pattern));
  return out;
}

void put_files(wire::Program& program, const Job& job) {
  const request::Request& request = job.what->request;
  const std::string standard = job.array ? "slurm-%A_%a.out" : "slurm-%j.out";
  const std::string output = request.output.value_or(standard);
  *program.mutable_stdout() = file(output);
  *program.mutable_stderr() = file(request.error.value_or(output));
  *program.mutable_stdin() = file(request.input.value_or("/dev/null"));
}

}  // namespace

std::string wrapped_script(std::string_view command) {
  return fmt::format("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{}\n", command);
}

BatchLaunch batch_launch(const State& state, const Job& job, const wire::Asked& asked,
                         const User& user) {
  BatchLaunch out;
  const cluster::Cluster& cluster = state.cluster();
  const cluster::NodeShare& share = job.allocation.nodes.front();
  const cluster::Node& node = cluster.nodes[share.node];
  wire::StepSpec& spec = out.spec;
  spec.set_job_id(job.id);
  spec.set_attempt(job.attempt);
  spec.set_lease_seconds(static_cast<std::uint32_t>(job.lease));
  spec.set_step_id(wire::kBatchStep);
  spec.set_node(node.name);
  spec.set_ntasks(1);
  spec.set_node_count(1);
  spec.set_name("batch");
  spec.set_counted(false);
  spec.set_oom_kill_step(request::out_of_memory_kills_step(job.what->request));
  spec.set_created(job.start_time - state.adopted());
  spec.set_partition(job.partition);
  spec.set_account(job.what->account);
  spec.set_sluid(job.sluid);
  *spec.mutable_share() = to_wire(cluster, share);
  *spec.mutable_job_share() = spec.share();
  put_user(spec, user);
  spec.clear_common();
  wire::TaskSpec& task = *spec.add_tasks();
  task.set_bound(cluster.settings.task_affinity);
  task.set_cpus(node.threads_of(share.cores).ranges());
  for (const std::size_t gpu : share.gpus().members()) {
    task.add_gpus(static_cast<std::uint32_t>(gpu));
  }

  wire::Program& program = out.program;
  const Submission& what = *job.what;
  Environment variables = batch_variables(state, job, asked, user);
  program.mutable_environment()->Reserve(static_cast<int>(variables.size()));
  while (!variables.empty()) {
    auto entry = variables.extract(variables.begin());
    wire::Variable* one = program.add_environment();
    one->set_name(std::move(entry.key()));
    one->set_value(std::move(entry.mapped()));
  }
  if (what.request.wrap) {
    program.set_script(wrapped_script(*what.request.wrap));
    program.add_argv("slurm_script");
  } else {
    program.set_script(asked.script());
    for (const std::string& word : what.request.argv) program.add_argv(word);
    if (program.argv().empty()) program.add_argv("slurm_script");
  }
  program.set_step_started_by_batch(true);
  program.set_interactive_env(true);
  program.set_directory(what.directory);
  program.set_umask(asked.umask());
  *program.mutable_limits() = asked.limits();
  program.set_niceness(asked.niceness());
  program.set_job_name(what.job_name);
  if (job.array) {
    program.set_array_job_id(job.array->job_id);
    if (job.array->task) program.set_array_task_id(*job.array->task);
  }
  const std::string_view mode = what.text(Opt::open_mode);
  program.set_append(mode.empty() ? state.policy().job_file_append : mode.front() == 'a');
  put_files(program, job);
  if (share.memory_mb > 0 && cluster.settings.memory_is_consumed) {
    program.set_memory_limit_mb(static_cast<std::uint32_t>(share.memory_mb));
  }
  return out;
}

}  // namespace berth::job
