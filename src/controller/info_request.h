// What a job asks for, before it has nodes, as ReqTRES, NumCPUs and NumTasks show it.
#pragma once

#include <cstdint>

#include "cluster/cluster.h"
#include "controller/info_tres.h"
#include "job/asked_size.h"
#include "request/request.h"

namespace berth::controller {

using job::asked_size;
using job::AskedSize;

/// NumCPUs of a job that has no nodes: what the search for nodes tries, which under
/// --gres-flags=enforce-binding is a core near each of the GPUs.
std::uint64_t cpus_tried(const cluster::Cluster& cluster, const request::Request& request,
                         const cluster::Partition* partition, const AskedSize& size);
/// NumNodes of a job that was refused: enough for --ntasks-per-node, whatever -N said.
std::uint32_t nodes_tried(const AskedSize& size);

/// ReqTRES.
TresCounts counts_of(const AskedSize& size);

/// "gres/gpu:a100:2,gres/shard:1".
std::string gres_ask_words(const std::vector<request::GresAsk>& asks);

}  // namespace berth::controller
