// What the candidates of a job add up to on each switch or block.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "place/select.h"

namespace berth::place {

struct NetworkSum {
  std::uint32_t nodes = 0;  // that could be used
  std::uint64_t cpus = 0;
  SmallVector<std::uint64_t, 2> devices;  // by DeviceAsk
  std::uint32_t required = 0;             // required nodes
};

class NetworkSums {
 public:
  /// Looks at each candidate once.
  explicit NetworkSums(const SelectInput& in);

  /// Counts only nodes of this weight and below from now on.
  void count_up_to(std::uint32_t weight);
  /// Weights that differ, ascending; the first few and the last where there are many.
  [[nodiscard]] const std::vector<std::uint32_t>& weights() const { return weights_; }

  [[nodiscard]] const NetworkSum& of(cluster::UnitIndex unit) const { return sums_[unit]; }
  /// Everything that hangs on some leaf.
  [[nodiscard]] const NetworkSum& all() const { return all_; }
  /// The counted nodes of a leaf, ascending.
  [[nodiscard]] std::vector<cluster::NodeIndex> nodes_of(cluster::UnitIndex leaf) const;
  /// The counted nodes on no leaf, ascending.
  [[nodiscard]] std::vector<cluster::NodeIndex> strays() const;
  /// In numbers it holds the ask; required nodes are all there.
  [[nodiscard]] bool holds(const NetworkSum& sum, const Ask& ask) const;

 private:
  struct Entry {
    cluster::NodeIndex node;
    std::uint32_t weight;
    std::uint32_t cpus;
  };
  [[nodiscard]] bool counts(const Entry& entry) const;
  [[nodiscard]] std::span<const Entry> entries_of(std::size_t bucket) const;

  const SelectInput& in_;
  std::vector<Entry> entries_;          // by leaf, then ascending
  std::vector<std::uint64_t> devices_;  // of each entry, one after another
  std::vector<std::size_t> begins_;     // of each leaf's entries; the last bucket: strays
  std::vector<NetworkSum> sums_;        // by unit
  NetworkSum all_;
  std::vector<std::uint32_t> weights_;
  static constexpr std::uint32_t kAnyWeight = ~std::uint32_t{0};
  std::uint32_t most_weight_ = kAnyWeight;
};

}  // namespace berth::place
