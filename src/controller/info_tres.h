// Trackable resources in words: "cpu=4,mem=8G,node=2,billing=4,gres/gpu=2", and generic resources
// as scontrol and sinfo write them: "gpu:a100:2(IDX:0-1)".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/usage.h"
#include "request/request.h"

namespace berth::controller {

/// AccountingStorageTRES: only these generic resources are counted in TRES texts.
using TrackedTres = std::vector<std::string>;  // "gres/gpu", "gres/gpu:a100"

struct TresCounts {
  std::uint64_t cpus = 0;
  std::uint64_t memory_mb = 0;
  std::optional<std::uint64_t> nodes;
  bool billing = false;
  std::vector<request::GresAsk> gres;  // may name a resource several times
};
/// "" when there is nothing at all.
std::string tres_words(const TresCounts& counts, const TrackedTres& tracked);

TresCounts counts_of(const cluster::Cluster& cluster, const cluster::Allocation& allocation);
/// What a node has.
TresCounts counts_of(const cluster::Node& node);

/// "gpu:a100:4(S:0-1)": as configured; "" when there is none.
std::string gres_words(const cluster::Node& node);
/// "gpu:a100:2(IDX:0-1),shard:0(0/4,0/4)": what is taken of it.
std::string gres_used_words(const cluster::Node& node, const cluster::NodeUsage& usage);
/// "gpu:a100:1(IDX:3)": GPUs that are out of service; "" = none.
std::string gres_drained_words(const cluster::Node& node);
/// "gpu:a100:2(IDX:0-1)": what one job holds on a node; "" when nothing.
std::string gres_held_words(const cluster::Node& node, const cluster::NodeShare& share);
/// "gpu:a100:4": what a job holds on all its nodes.
std::string gres_total_words(const cluster::Cluster& cluster,
                             const cluster::Allocation& allocation);

}  // namespace berth::controller
