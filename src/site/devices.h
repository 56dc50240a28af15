// The generic resources of a node: slurm.conf says how many, gres.conf says which and where.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "conf/complaints.h"
#include "conf/gres_conf.h"
#include "conf/slurm_conf.h"

namespace berth::site {

/// What is not known about the GPUs of a node.
enum class Unknown { nothing, no_gres_conf, autodetect, no_line };

struct Devices {
  std::vector<cluster::Gres> gres;
  Unknown unknown = Unknown::nothing;
  std::string autodetect;  // the method, for Unknown::autodetect
};

/// The resources of a node of this shape. `lines` are the lines of gres.conf that apply to it, in
/// order; `has_gres_conf` tells an absent file from one without such lines. `node_name` stands in
/// messages for all nodes of the line.
Devices node_devices(const conf::NodeLine& line, const cluster::Node& shape,
                     std::span<const conf::GresLine* const> lines, bool has_gres_conf,
                     std::string_view node_name, conf::Complaints& complaints);

/// Splits `total` units over the GPUs as evenly as they go, earlier ones first: shard and mps.
cluster::Gres shared_over_gpus(std::string name, std::uint64_t total, const cluster::Gres& gpus);

}  // namespace berth::site
