#include "place/environment_values.h"

#include <algorithm>

#include "text/hostlist.h"
#include "text/tres.h"

namespace berth::place {
namespace {

struct Visible {
  const char* name;
  bool cluster::GpuVariables::* flag;
  bool takes_uuids;
};
constexpr Visible kVisible[] = {
    {"CUDA_VISIBLE_DEVICES", &cluster::GpuVariables::cuda, true},
    {"ROCR_VISIBLE_DEVICES", &cluster::GpuVariables::rocr, true},
    {"GPU_DEVICE_ORDINAL", &cluster::GpuVariables::opencl, false},
    {"ZE_AFFINITY_MASK", &cluster::GpuVariables::level_zero, false},
};

/// Some GPU of the node is told of by that variable.
bool tells_of(const cluster::Node& node, const Visible& variable) {
  const cluster::Gres* gres = node.find_gres("gpu");
  return gres != nullptr && std::ranges::any_of(gres->devices, [&](const cluster::Device& device) {
           return device.variables.*variable.flag;
         });
}

/// The part of a GPU's MPS units that the process may use, in percent.
std::uint64_t mps_percentage(const cluster::Node& node, const cluster::GresShare& mps) {
  const cluster::Gres* gres = node.find_gres("mps");
  const std::size_t device = mps.devices().next();
  if (gres == nullptr || device >= gres->devices.size()) return 1;
  const std::uint64_t all = gres->devices[device].units;
  if (all == 0) return 1;
  return std::max<std::uint64_t>(1, std::min(mps.units[device], all) * 100 / all);
}

/// Parts of a GPU have no index of their own with CUDA: on such a node all are found by name. So
/// they are with Flags=env_uuid. "" when one has none.
std::string uuid_list(const cluster::Node& node, const Bits& gpus) {
  const cluster::Gres* gres = node.find_gres("gpu");
  std::string out;
  for (const std::size_t gpu : gpus.members()) {
    const bool known = gres != nullptr && gpu < gres->devices.size();
    if (!known || gres->devices[gpu].uuid.empty()) return {};
    out += (out.empty() ? "" : ",") + gres->devices[gpu].uuid;
  }
  return out;
}

constexpr const char* kExternalLauncher = "--external-launcher";
constexpr const char* kSlurm = "slurm";

/// How mpiexec is told who starts its daemons, and with which further arguments.
struct HydraVariables {
  const char* bootstrap;
  const char* other_name;  // of the same choice
  const char* arguments;
};
constexpr HydraVariables kHydra[] = {
    {"HYDRA_BOOTSTRAP", "HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXTRA_ARGS"},
    {"I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_LAUNCHER", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"}};

}  // namespace

void put_network_address(Environment& env, const cluster::Cluster& cluster,
                         cluster::NodeIndex node) {
  const cluster::Topology& network = cluster.topology;
  env["SLURM_TOPOLOGY_ADDR"] = network.address(node, cluster.nodes[node].name);
  env["SLURM_TOPOLOGY_ADDR_PATTERN"] = network.address_pattern(node);
}

void put_job(Environment& env, const cluster::Cluster& cluster, const JobFacts& job) {
  std::vector<std::string> names;
  std::vector<std::uint32_t> cpus;
  for (const auto& share : job.allocation.nodes) {
    names.push_back(cluster.nodes[share.node].name);
    cpus.push_back(share.usable_cpus);
  }
  env["SLURM_JOB_ID"] = env["SLURM_JOBID"] = std::to_string(job.id);
  env["SLURM_JOB_NAME"] = job.name;
  env["SLURM_JOB_NODELIST"] = env["SLURM_NODELIST"] = text::compress_hostlist(names);
  env["SLURM_JOB_NUM_NODES"] = std::to_string(names.size());
  env["SLURM_JOB_CPUS_PER_NODE"] = repetition_list(cpus);
  env["SLURM_JOB_PARTITION"] = job.partition;
  env["SLURM_CLUSTER_NAME"] = cluster.name;
}

void put_memory(Environment& env, const std::optional<request::Memory>& memory) {
  if (!memory || memory->mb == 0) return;
  const char* name = "SLURM_MEM_PER_NODE";
  if (memory->per == request::MemoryPer::cpu) name = "SLURM_MEM_PER_CPU";
  if (memory->per == request::MemoryPer::gpu) name = "SLURM_MEM_PER_GPU";
  env[name] = std::to_string(memory->mb);
}

void put_launcher_arguments(Environment& env) {
  env["OMPI_MCA_plm_slurm_args"] = env["PRTE_MCA_plm_slurm_args"] = kExternalLauncher;
}

void put_hydra_arguments(Environment& env) {
  for (const HydraVariables& names : kHydra) {
    env[names.bootstrap] = kSlurm;
    env[names.arguments] = kExternalLauncher;
  }
}

std::vector<std::string> hydra_variables_against(const Environment& user) {
  std::vector<std::string> out;
  for (const HydraVariables& names : kHydra) {
    const auto other = [&](const char* name) {
      const auto at = user.find(name);
      return at != user.end() && at->second != kSlurm;
    };
    if (other(names.bootstrap) || other(names.other_name)) {
      out.insert(out.end(), {names.bootstrap, names.arguments});
    }
  }
  return out;
}

void drop_hydra_arguments(Environment& env) {
  const auto drop = [&](const char* name, std::string_view ours) {
    const auto at = env.find(name);
    if (at != env.end() && at->second == ours) env.erase(at);
  };
  for (const HydraVariables& names : kHydra) {
    drop(names.bootstrap, kSlurm);
    drop(names.arguments, kExternalLauncher);
  }
}

Bits visible_ids(const cluster::Cluster& cluster, const Bits& gpus, const Bits& step,
                 bool shared_fence) {
  if (!cluster.settings.constrain_devices) return gpus;
  if (!shared_fence) return Bits::first_n(gpus.count());
  Bits positions;
  gpus.each([&](std::size_t gpu) { positions.set(gpu == 0 ? 0 : step.count_in(0, gpu - 1)); });
  return positions;
}

Environment visible_variables(const cluster::Node& node, const Bits& gpus, const Bits& visible) {
  Environment out;
  const cluster::Gres* gres = node.find_gres("gpu");
  const std::vector<std::size_t> ids = visible.members();
  for (const Visible& variable : kVisible) {
    if (gres != nullptr && !tells_of(node, variable)) continue;
    Bits told;
    Bits told_ids;
    std::size_t position = 0;
    gpus.each([&](std::size_t gpu) {
      const std::size_t at = position++;
      const bool known = gres != nullptr && gpu < gres->devices.size();
      if (known && !(gres->devices[gpu].variables.*variable.flag)) return;
      told.set(gpu);
      if (at < ids.size()) told_ids.set(ids[at]);
    });
    if (told.empty() && gpus.any()) continue;  // they are of another vendor
    const std::string uuids = variable.takes_uuids ? uuid_list(node, told) : std::string();
    out[variable.name] = uuids.empty() ? told_ids.list() : uuids;
  }
  return out;
}

void put_visible_gpus(Environment& env, const cluster::Node& node, const cluster::NodeShare& share,
                      const Bits& gpus, const Bits& visible) {
  for (auto& [name, value] : visible_variables(node, gpus, visible)) env[name] = std::move(value);
  env["SLURM_GPUS_ON_NODE"] = std::to_string(share.gpus().count());
  if (const auto* shards = share.find("shard")) {
    env["SLURM_SHARDS_ON_NODE"] = std::to_string(shards->total());
  }
  if (const auto* memory = share.find(text::kGpuMemory)) {
    env["BERTH_GPU_MEM"] = std::to_string(memory->total());
  }
  if (const auto* mps = share.find("mps")) {
    env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(mps_percentage(node, *mps));
  }
}

void drop_gpus(Environment& env, const cluster::Node& node) {
  // Nobody looks after GPUs on a node that has none: the batch script's list of another node gets
  // through there, as recorded (het_batch).
  for (const Visible& variable : kVisible) {
    if (tells_of(node, variable)) env.erase(variable.name);
  }
  for (const char* name : {"SLURM_GPUS_ON_NODE", "SLURM_STEP_GPUS", "SLURM_SHARDS_ON_NODE",
                           "BERTH_GPU_MEM", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"}) {
    env.erase(name);
  }
}

}  // namespace berth::place
