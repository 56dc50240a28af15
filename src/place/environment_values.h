// Variables that batch scripts and tasks have in common, each written in one place.
#pragma once

#include <optional>

#include "place/environment.h"

namespace berth::place {

/// Identity, nodes and CPUs of the job.
void put_job(Environment& env, const cluster::Cluster& cluster, const JobFacts& job);
/// Where a node is in the network: SLURM_TOPOLOGY_ADDR and its pattern.
void put_network_address(Environment& env, const cluster::Cluster& cluster,
                         cluster::NodeIndex node);
/// SLURM_MEM_PER_NODE, _CPU or _GPU; nothing for "all memory" or none.
void put_memory(Environment& env, const std::optional<request::Memory>& memory);
/// What makes mpirun start its daemons with srun --external-launcher.
void put_launcher_arguments(Environment& env);
/// The same for mpiexec of MPICH and of Intel MPI (Hydra).
void put_hydra_arguments(Environment& env);
/// Those of Hydra that somebody who has chosen another way of starting daemons must not get.
std::vector<std::string> hydra_variables_against(const Environment& user);
/// Takes away what put_hydra_arguments has put.
void drop_hydra_arguments(Environment& env);

/// The ids by which a process finds `gpus`, devices of the `step`: their own, or counted from 0
/// when devices are fenced off (inside the step when tasks share its fence, else inside the task).
Bits visible_ids(const cluster::Cluster& cluster, const Bits& gpus, const Bits& step,
                 bool shared_fence);
/// CUDA_VISIBLE_DEVICES and its like, those that the node's GPUs are told of by. `gpus` are device
/// indices, `visible` the ids by which they are found.
Environment visible_variables(const cluster::Node& node, const Bits& gpus, const Bits& visible);
/// The same in an environment, and the counts of GPUs and shards held on the node.
void put_visible_gpus(Environment& env, const cluster::Node& node, const cluster::NodeShare& share,
                      const Bits& gpus, const Bits& visible);
/// Takes away the variables that name GPUs of a step.
void drop_gpus(Environment& env, const cluster::Node& node);

}  // namespace berth::place
