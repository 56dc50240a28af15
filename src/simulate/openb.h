// The nodes of the openb trace (Alibaba, cluster-trace-gpu-v2023) as a configuration.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "conf/source.h"

namespace berth::simulate {

/// Shards of each GPU: pods that ask for a part of one get as many of these as it takes.
inline constexpr std::uint32_t kShards = 100;

/// "sn,cpu_milli,memory_mib,gpu,model" as slurm.conf and gres.conf: nodes keep their names, GPUs
/// have their model as type, nodes as feature, so that a pod may name several models.
Result<conf::MemorySource::Files> read_openb_nodes(std::string_view text, std::string_view name);

}  // namespace berth::simulate
