#include "schedule/reserve_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "place/prepared.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::schedule {
namespace {

using Nodes = std::vector<NodeIndex>;
using reservation::Flag;

std::unexpected<Error> bad_name(std::string hint) {
  return fail(Code::invalid_node_name, std::string(slurm_text(Code::invalid_node_name)),
              std::move(hint));
}

std::unexpected<Error> bad_partition(std::string hint) {
  return fail(Code::invalid_partition, std::string(slurm_text(Code::invalid_partition)),
              std::move(hint));
}

Result<Nodes> all_nodes(const cluster::Cluster& cluster, const cluster::Partition* partition,
                        Reservation& out) {
  const bool of_partition = out.flags.has(Flag::part_nodes);
  if (of_partition && out.partition.empty()) {
    return bad_partition("PART_NODES needs PartitionName=");
  }
  out.flags.put(Flag::all_nodes, !of_partition);
  out.flags.put(Flag::spec_nodes);
  if (!out.partition.empty() && partition != nullptr) return partition->nodes;
  Nodes nodes;
  for (NodeIndex i = 0; i < cluster.nodes.size(); ++i) nodes.push_back(i);
  return nodes;
}

/// A list, or "+list" and "-list" of what it has.
Result<Nodes> named_nodes(const cluster::Cluster& cluster, std::string_view text,
                          Reservation& out) {
  const bool adds = text.starts_with('+');
  const bool drops = text.starts_with('-');
  std::set<NodeIndex> nodes;
  if (adds || drops) {
    if (!out.allocation.whole_nodes) {
      return bad_name("it has cores or devices of nodes: say Nodes= and CoreCnt= or TRES= anew");
    }
    for (const cluster::NodeShare& share : out.allocation.nodes) nodes.insert(share.node);
  }
  const auto names = text::expand_hostlist(text.substr(adds || drops ? 1 : 0));
  if (!names) return bad_name(std::string(names.error().what()));
  for (const std::string& name : *names) {
    const auto index = cluster.find_node(name);
    if (!index) return bad_name(fmt::format("there is no node {}", name));
    if (drops) {
      nodes.erase(*index);
    } else {
      nodes.insert(*index);
    }
  }
  if (nodes.empty()) return bad_name("no node would be left");
  out.flags.put(Flag::spec_nodes);
  out.flags.put(Flag::all_nodes, false);
  return Nodes(nodes.begin(), nodes.end());
}

}  // namespace

Result<Nodes> candidate_nodes(const job::State& state, const reservation::Ask& ask,
                              Reservation& out) {
  const cluster::Cluster& cluster = state.cluster();
  const cluster::Partition* partition =
      out.partition.empty() ? cluster.default_partition() : cluster.find_partition(out.partition);
  if (!out.partition.empty() && partition == nullptr) {
    return bad_partition(fmt::format("there is no partition {}", out.partition));
  }
  if (ask.nodes) {
    return text::equal_ignoring_case(*ask.nodes, "ALL") ? all_nodes(cluster, partition, out)
                                                        : named_nodes(cluster, *ask.nodes, out);
  }
  if (partition == nullptr) return Nodes();
  out.partition = partition->name;
  Nodes nodes = partition->nodes;
  request::Request request;
  request.partitions = {partition->name};
  if (!out.features.empty()) request.constraint = out.features;
  const place::Prepared prepared(cluster, request);
  std::erase_if(nodes, [&](NodeIndex node) {
    return !cluster.nodes[node].usable || (!out.features.empty() && !prepared.may_use(node));
  });
  // Idle ones first, so that few have to be waited for.
  std::ranges::stable_sort(nodes, [&](NodeIndex a, NodeIndex b) {
    const bool idle_a = state.usage().at(a).idle();
    const bool idle_b = state.usage().at(b).idle();
    return idle_a != idle_b ? idle_a : cluster.nodes[a].weight < cluster.nodes[b].weight;
  });
  return nodes;
}

}  // namespace berth::schedule
