// What tasks of a step need to meet: the variables that torch.distributed, Accelerate, DeepSpeed
// and others read when nobody has set them, and those by which torchrun finds the other nodes'
// torchruns.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/submit.pb.h"

namespace berth::launch {

/// For one task, each only where it is unset; none for a script or the daemons of an mpirun, whose
/// processes would take themselves for these ranks.
std::vector<std::pair<std::string, std::string>> rendezvous(const wire::StepSpec& spec,
                                                            const wire::TaskSpec& task);

/// SLURM_NTASKS_PER_NODE, which Lightning insists on, of SLURM_STEP_TASKS_PER_NODE: "4" of "4(x2)";
/// "" when nodes differ.
std::string tasks_per_node(std::string_view repetition_list);

/// "20000" or "20000-20003"; "" = none.
std::string port_text(const wire::StepSpec& spec);

}  // namespace berth::launch
