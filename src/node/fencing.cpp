// What fencing.h promises.
#include "node/fencing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "node/gpu_shares.h"
#include "step/container.h"
#include "text/cpumask.h"
#include "text/number.h"
#include "wire/step_ids.h"

namespace berth::node {
namespace {

/// Those that live as long as the job, or start what belongs to it: the whole job's share is
/// theirs.
bool has_the_jobs_share(const wire::StepSpec& spec) {
  return spec.launcher() || spec.step_id() == wire::kBatchStep ||
         spec.step_id() == wire::kExternStep || spec.step_id() == wire::kInteractiveStep;
}

/// Of a machine that does not say how many processes it can number.
constexpr std::uint64_t kUsualPids = 32768;

std::uint64_t number_in(cgroup::Kernel& kernel, const std::string& file, std::uint64_t otherwise) {
  std::string text = kernel.read(file).value_or("");
  if (text.ends_with('\n')) text.pop_back();
  return text::parse_number(text, UINT64_MAX).value_or(otherwise);
}

bool can_limit_processes(cgroup::Kernel& kernel, const cgroup::Hierarchies& here,
                         cgroup::Plugin plugin, const Cgroups& groups) {
  std::vector<std::string> troubles;
  const cgroup::Means means = cgroup::choose_means(here, plugin, {.processes = true}, troubles);
  const cgroup::Tree trial(kernel, here, means, false,
                           {.v2_base = groups.base(), .v1_name = groups.v1_name()}, troubles);
  return trial.fences();
}

}  // namespace

Fencing::Fencing(cgroup::Kernel& kernel, const FenceConf& conf, const wire::NodeConfig& said,
                 const Cgroups& groups, const device::Machine& machine, bool emulated)
    : by_job_(!emulated), machine_(&machine) {
  const conf::CgroupConf limits = conf.limits.value_or(conf::CgroupConf());
  cgroup::Wants wants{.devices = limits.constrain_devices,
                      .memory = limits.constrain_ram || limits.constrain_swap,
                      .cores = limits.constrain_cores,
                      .processes = !emulated && conf.step_pids.value_or(1) > 0 &&
                                   cgroup::plugin_named(limits.plugin) != cgroup::Plugin::disabled};
  step_pids_ = conf.step_pids;
  if (!emulated) {
    // What the controller tells tasks (GPUs counted from 0) is only true behind a fence.
    const auto compare = [&](bool there, bool here, const char* what) {
      if (!there || here) return true;
      missing_.push_back(fmt::format(
          "the controller's cgroup.conf limits {}, the one of this node does not", what));
      return false;
    };
    refuses_gpus_ = !compare(said.constrain_devices(), wants.devices, "devices");
    compare(said.constrain_memory(), wants.memory, "memory");
    compare(said.constrain_cores(), wants.cores, "cores");
    const bool fenced = wants.devices || wants.memory || wants.cores;
    if (fenced && conf.nodes.empty()) {
      missing_.push_back(
          "the slurm.conf of this machine does not name it: its devices are unknown");
      refuses_gpus_ = true;
    }
  }
  if (emulated) wants.memory = wants.cores = false;
  if (!wants.any()) return;

  for (const cluster::Node& node : conf.nodes) {
    nodes_.emplace(node.name,
                   read_node(node, machine, wants.devices && !emulated, conf.missing_gpus));
  }
  const bool some =
      std::ranges::any_of(nodes_, [](const auto& entry) { return !entry.second.all.empty(); });
  if (emulated && !some) wants.devices = false;
  if (!wants.any()) return;
  const cgroup::Hierarchies here = cgroup::hierarchies_here();
  const cgroup::Plugin plugin = cgroup::plugin_named(limits.plugin);
  if (!conf.step_pids && wants.processes) {
    // Nobody asked for it: where it cannot be had the node is as good as others without it.
    wants.processes = can_limit_processes(kernel, here, plugin, groups);
  }
  if (!wants.any()) return;
  const cgroup::Means means = cgroup::choose_means(here, plugin, wants, missing_);
  tree_ = cgroup::Tree(kernel, here, means, limits.constrain_swap,
                       {.v2_base = groups.base(), .v1_name = groups.v1_name()}, missing_);
  machine_pids_ = number_in(kernel, "/proc/sys/kernel/pid_max", kUsualPids);
  machine_pids_ =
      std::min(machine_pids_, number_in(kernel, "/proc/sys/kernel/threads-max", machine_pids_));
  devices_ = tree_.means().devices != cgroup::Version::none;
  refuses_gpus_ = refuses_gpus_ || (!emulated && wants.devices && !devices_);
  cores_ = tree_.means().cores != cgroup::Version::none;
  if (tree_.means().memory != cgroup::Version::none) {
    memory_ = {.ram = limits.constrain_ram,
               .swap = limits.constrain_swap,
               .allowed_ram_percent = limits.allowed_ram_percent,
               .allowed_swap_percent = limits.allowed_swap_percent,
               .max_ram_percent = limits.max_ram_percent,
               .max_swap_percent = limits.max_swap_percent,
               .min_ram_mb = limits.min_ram_mb};
  }
  gpus_ = cgroup::gpu_devices_here();
  Devices known = gpus_.there;
  for (const auto& [name, node] : nodes_) known.insert(node.all.begin(), node.all.end());
  tree_.know_devices({known.begin(), known.end()});
}

Fencing::Node Fencing::read_node(const cluster::Node& node, const device::Machine& machine,
                                 bool all_files, const Bits& missing_gpus) {
  Node out;
  out.shape = node;
  for (const cluster::Gres& gres : node.gres) {
    if (gres.shares_gpu) continue;
    std::vector<Devices>& list = out.gres[gres.name];
    for (std::size_t i = 0; i < gres.devices.size(); ++i) {
      const cluster::Device& device = gres.devices[i];
      std::vector<std::string> files = device.other_files;
      if (!device.file.empty()) files.push_back(device.file);
      const bool found_by_berth = gres.name == "gpu" && machine.gpus.size() == gres.devices.size();
      if (files.empty() && found_by_berth) files.push_back(machine.gpus[i].file);
      Devices ids;
      for (const std::string& file : files) {
        if (const auto id = cgroup::device_of(file)) ids.insert(*id);
      }
      if (files.empty() && gres.name == "gpu" && all_files && !missing_gpus.test(i)) {
        refuses_gpus_ = true;
        missing_.push_back(fmt::format(
            "ConstrainDevices: no file of GPU {} is known: name it in gres.conf (File=)", i));
      }
      out.all.insert(ids.begin(), ids.end());
      list.push_back(std::move(ids));
    }
  }
  return out;
}

std::string Fencing::trouble() const {
  return fmt::format("{}", fmt::join(missing_, "; "));
}

/// Of a task: those of the share but for the GPUs, of which it has its own.
Fencing::Devices Fencing::devices_of(const Node& node, const wire::NodeShare& share,
                                     const wire::TaskSpec* task) {
  Devices own;
  const auto take = [&](const std::vector<Devices>& list, std::size_t index) {
    if (index < list.size()) own.insert(list[index].begin(), list[index].end());
  };
  const auto gpus = node.gres.find("gpu");
  for (const wire::GresShare& gres : share.gres()) {
    const auto at = node.gres.find(gres.name());
    const bool of_gpus = at == node.gres.end() || at == gpus;  // shard and mps: the GPU's number
    const auto& from = of_gpus ? gpus : at;
    if (from == node.gres.end() || (of_gpus && task != nullptr)) continue;
    for (int i = 0; i < gres.units_size(); ++i) {
      if (gres.units(i) > 0) take(from->second, static_cast<std::size_t>(i));
    }
  }
  if (task != nullptr && gpus != node.gres.end()) {
    for (const std::uint32_t gpu : task->gpus()) take(gpus->second, gpu);
  }
  return own;
}

cgroup::Limits Fencing::limits_of(const Node& node, const wire::NodeShare& share) const {
  cgroup::Limits limits;
  cgroup::limit_memory(memory_, share.memory_mb(), machine_->memory_mb, limits);
  const auto cores = text::parse_id_set(share.cores());
  if (cores_ && cores && cores->any()) {
    limits.cpus = machine_->os_cpus(node.shape.threads_of(*cores)).ranges();
  }
  return limits;
}

std::uint64_t Fencing::process_limit(const Node& node, const wire::StepSpec& spec,
                                     const wire::NodeShare& share) const {
  const auto tasks = static_cast<std::uint64_t>(spec.tasks_size());
  // All tasks can be started, whatever is allowed.
  if (step_pids_) return std::max(*step_pids_, 2 * tasks);
  const auto cores = text::parse_id_set(share.cores());
  const std::uint64_t cpus = cores ? node.shape.threads_of(*cores).count() : 0;
  return cgroup::usual_process_limit(tasks, cpus, machine_pids_);
}

void Fencing::ask_for_devices(const Node& node, const wire::StepSpec& spec,
                              cgroup::StepAsk& ask) const {
  const wire::NodeShare& share = has_the_jobs_share(spec) ? spec.job_share() : spec.share();
  const Devices own = devices_of(node, share, nullptr);
  ask.devices = cgroup::device_rules(gpus_, own, node.all);
  if (by_job_) {
    const Devices jobs = devices_of(node, spec.job_share(), nullptr);
    ask.job_devices = cgroup::device_rules(gpus_, jobs, node.all);
  }
  if (has_the_jobs_share(spec) || spec.shared_devices()) return;
  std::vector<std::vector<cgroup::DeviceRule>> tasks;
  bool differ = false;
  for (const wire::TaskSpec& task : spec.tasks()) {
    const Devices its = devices_of(node, share, &task);
    differ = differ || its != own;
    tasks.push_back(cgroup::device_rules(gpus_, its, node.all));
  }
  if (differ) ask.tasks = std::move(tasks);
}

Result<std::optional<wire::StepFence>> Fencing::put_up(const wire::StepSpec& spec,
                                                       const std::string& cgroup) {
  return put_up(spec, step::step_name(spec.step_id()), cgroup);
}

Result<std::optional<wire::StepFence>> Fencing::put_up_beside(const wire::BeginJob& job,
                                                              const std::string& name,
                                                              const std::string& cgroup) {
  wire::StepSpec spec;
  spec.set_node(job.node());
  spec.set_uid(job.uid());
  spec.set_job_id(job.job_id());
  spec.set_step_id(wire::kExternStep);
  *spec.mutable_job_share() = job.share();
  return put_up(spec, name, cgroup);
}

Result<std::optional<wire::StepFence>> Fencing::put_up(const wire::StepSpec& spec,
                                                       const std::string& name,
                                                       const std::string& cgroup) {
  const auto at = nodes_.find(spec.node());
  const bool gpus = gpus_in(spec.share()).any() || gpus_in(spec.job_share()).any();
  if (refuses_gpus_ && gpus) {
    return fail(Code::io,
                fmt::format("node {} cannot keep jobs to their GPUs: {}", spec.node(), trouble()));
  }
  if (at == nodes_.end() || !tree_.fences()) return std::nullopt;
  const Node& node = at->second;
  cgroup::StepAsk ask;
  ask.uid = spec.uid();
  ask.job = spec.job_id();
  ask.step = name_of(spec.node(), name);
  ask.cgroup = cgroup;
  ask.of_job = limits_of(node, spec.job_share());
  ask.of_step = has_the_jobs_share(spec) ? ask.of_job : limits_of(node, spec.share());
  if (!ask.of_step.memory) ask.of_step.memory = ask.of_job.memory;
  if (limits_processes()) {
    const bool whole = has_the_jobs_share(spec);
    ask.of_step.processes = process_limit(node, spec, whole ? spec.job_share() : spec.share());
  }
  if (devices_) ask_for_devices(node, spec, ask);
  auto fence = tree_.put_up(ask);
  if (!fence) return pass(std::move(fence.error()));
  wire::StepFence out;
  for (std::string& group : fence->join) out.add_join(std::move(group));
  for (const cgroup::StepFence::Task& task : fence->tasks) {
    wire::TaskFence& one = *out.add_tasks();
    one.set_cgroup(task.cgroup);
    for (const std::string& group : task.join) one.add_join(group);
  }
  for (std::string& group : fence->remove) out.add_remove(std::move(group));
  out.set_memory_events(fence->memory_events);
  out.set_process_events(fence->process_events);
  out.set_most_processes(ask.of_step.processes.value_or(0));
  out.set_memory_bytes(ask.of_step.memory.value_or(ask.of_step.memory_and_swap.value_or(0)));
  return out;
}

bool Fencing::clear(const Which& which) const {
  bool all = true;
  for (const cgroup::Found& found : tree_.found()) {
    if (which(found.job, found.step)) all = step::clear_cgroup(found.path) && all;
  }
  return all;
}

}  // namespace berth::node
