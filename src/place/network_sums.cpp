#include "place/network_sums.h"

#include <algorithm>

namespace berth::place {

using cluster::NodeIndex;
using cluster::Topology;
using cluster::UnitIndex;

NetworkSums::NetworkSums(const SelectInput& in) : in_(in) {
  constexpr std::size_t kMostWeights = 8;
  const Topology& network = in.cluster.topology;
  const std::size_t units = network.units.size();
  const std::size_t kinds = in.ask.devices.size();
  const auto bucket_of = [&](NodeIndex node) {
    const UnitIndex leaf = network.leaf_of(node);
    return leaf == Topology::kNone ? units : std::size_t{leaf};
  };
  std::vector<Entry> found;
  std::vector<std::uint64_t> devices;
  begins_.assign(units + 2, 0);
  each_offer(in, [&](NodeIndex node, const Offer& offer) {
    const std::uint32_t weight = in.cluster.nodes[node].weight;
    found.push_back({node, weight, offer.cpus});
    for (std::size_t d = 0; d < kinds; ++d) devices.push_back(offer.devices[d]);
    ++begins_[bucket_of(node) + 1];
    if (weights_.empty() || weights_.back() != weight) weights_.push_back(weight);
  });
  for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
  entries_.resize(found.size());
  devices_.resize(devices.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t at = next[bucket_of(found[i].node)]++;
    entries_[at] = found[i];
    for (std::size_t d = 0; d < kinds; ++d) devices_[at * kinds + d] = devices[i * kinds + d];
  }
  std::ranges::sort(weights_);
  weights_.erase(std::ranges::unique(weights_).begin(), weights_.end());
  if (weights_.size() > kMostWeights) {
    weights_.erase(weights_.begin() + kMostWeights - 1, weights_.end() - 1);
  }
  count_up_to(kAnyWeight);
}

void NetworkSums::count_up_to(std::uint32_t weight) {
  if (!weights_.empty() && weight == weights_.back()) weight = kAnyWeight;  // that is all of them
  if (!sums_.empty() && weight == most_weight_) return;
  most_weight_ = weight;
  const Topology& network = in_.cluster.topology;
  const std::size_t kinds = in_.ask.devices.size();
  NetworkSum none;
  none.devices.assign(kinds);
  sums_.assign(network.units.size(), none);
  all_ = none;
  for (std::size_t i = 0; i < begins_[network.units.size()]; ++i) {
    const Entry& entry = entries_[i];
    if (!counts(entry)) continue;
    NetworkSum& sum = sums_[network.leaf_of(entry.node)];
    ++sum.nodes;
    sum.cpus += entry.cpus;
    for (std::size_t d = 0; d < kinds; ++d) sum.devices[d] += devices_[i * kinds + d];
  }
  for (const NodeIndex node : in_.required) {
    const UnitIndex leaf = network.leaf_of(node);
    if (leaf != Topology::kNone) ++sums_[leaf].required;
  }
  const auto add = [&](NetworkSum& to, const NetworkSum& sum) {
    to.nodes += sum.nodes;
    to.cpus += sum.cpus;
    to.required += sum.required;
    for (std::size_t d = 0; d < kinds; ++d) to.devices[d] += sum.devices[d];
  };
  for (UnitIndex i = 0; i < network.units.size(); ++i) {
    const cluster::NetworkUnit& unit = network.units[i];
    if (unit.level > 0) continue;
    add(all_, sums_[i]);
    for (auto above = unit.parent; above; above = network.units[*above].parent) {
      add(sums_[*above], sums_[i]);
    }
  }
}

bool NetworkSums::counts(const Entry& entry) const {
  // A required node counts whatever its weight.
  return entry.weight <= most_weight_ || std::ranges::binary_search(in_.required, entry.node);
}

std::span<const NetworkSums::Entry> NetworkSums::entries_of(std::size_t bucket) const {
  return {entries_.data() + begins_[bucket], begins_[bucket + 1] - begins_[bucket]};
}

std::vector<NodeIndex> NetworkSums::nodes_of(UnitIndex leaf) const {
  std::vector<NodeIndex> out;
  for (const Entry& entry : entries_of(leaf)) {
    if (counts(entry)) out.push_back(entry.node);
  }
  return out;
}

std::vector<NodeIndex> NetworkSums::strays() const {
  std::vector<NodeIndex> out;
  for (const Entry& entry : entries_of(in_.cluster.topology.units.size())) {
    if (counts(entry)) out.push_back(entry.node);
  }
  return out;
}

bool NetworkSums::holds(const NetworkSum& sum, const Ask& ask) const {
  if (sum.required < in_.required.size()) return false;
  if (sum.nodes < ask.min_nodes || sum.cpus < ask.total_cpus) return false;
  for (std::size_t d = 0; d < ask.devices.size(); ++d) {
    if (sum.devices[d] < ask.devices[d].per_job) return false;
  }
  return true;
}

}  // namespace berth::place
