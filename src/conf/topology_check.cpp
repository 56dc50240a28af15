// What is wrong with a network as a whole, whichever file describes it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "conf/topology_conf.h"

namespace berth::conf {
namespace {

class TreeCheck {
 public:
  TreeCheck(const TopologyConf& conf, Complaints& complaints)
      : conf_(conf), complaints_(complaints) {}

  void run() {
    if (conf_.switches.empty()) {
      complaints_.error({conf_.file, 0}, "a tree needs switches, and none is described");
      return;
    }
    for (std::size_t i = 0; i < conf_.switches.size(); ++i) {
      const SwitchLine& line = conf_.switches[i];
      const auto [at, fresh] = by_name_.emplace(line.name, i);
      if (!fresh) {
        complaints_.error(line.at,
                          fmt::format("switch {} is described twice, first in {}", shown(line.name),
                                      shown(conf_.switches[at->second].at)));
      }
      if (line.switches.empty() == line.nodes.empty()) {
        complaints_.error(line.at, fmt::format("switch {} needs Nodes= or Switches=, one of them",
                                               shown(line.name)));
      }
      nodes(line);
    }
    for (std::size_t i = 0; i < conf_.switches.size() && !complaints_.full(); ++i) children(i);
    if (!complaints_.failed()) circles();
  }

 private:
  void nodes(const SwitchLine& line) {
    for (const std::string& node : line.nodes) {
      const auto [at, fresh] = leaf_.emplace(node, &line);
      if (fresh) continue;
      complaints_.error(
          line.at, fmt::format("node {} is on two switches: {} and {} ({})", shown(node),
                               shown(line.name), shown(at->second->name), shown(at->second->at)));
      return;
    }
  }

  void children(std::size_t i) {
    const SwitchLine& line = conf_.switches[i];
    for (const std::string& name : line.switches) {
      const auto child = by_name_.find(name);
      if (child == by_name_.end()) {
        complaints_.error(line.at,
                          fmt::format("switch {} has the child {}, which no line describes",
                                      shown(line.name), shown(name)));
        return;
      }
      const auto [at, fresh] = parent_.emplace(child->second, i);
      if (fresh || at->second == i) continue;
      complaints_.error(line.at,
                        fmt::format("switch {} is below two switches: {} and {}", shown(name),
                                    shown(line.name), shown(conf_.switches[at->second].name)));
      return;
    }
  }

  /// Every switch has at most one parent here: whoever goes up for longer than there are switches
  /// goes in a circle.
  void circles() {
    std::vector<bool> reaches_a_top(conf_.switches.size(), false);
    for (std::size_t i = 0; i < conf_.switches.size(); ++i) {
      std::vector<std::size_t> way;
      std::size_t at = i;
      for (;; at = parent_.at(at)) {
        if (reaches_a_top[at] || !parent_.contains(at)) break;
        if (way.size() > conf_.switches.size()) {
          complaints_.error(conf_.switches[i].at,
                            fmt::format("switch {} is below itself: the switches form a circle",
                                        shown(conf_.switches[i].name)));
          return;
        }
        way.push_back(at);
      }
      reaches_a_top[at] = true;
      for (const std::size_t seen : way) reaches_a_top[seen] = true;
    }
  }

  const TopologyConf& conf_;
  Complaints& complaints_;
  std::map<std::string, std::size_t> by_name_;
  std::map<std::string, const SwitchLine*> leaf_;  // by node
  std::map<std::size_t, std::size_t> parent_;      // by switch
};

void check_blocks(TopologyConf& conf, Complaints& complaints) {
  if (conf.blocks.empty()) {
    complaints.error({conf.file, 0}, "topology/block needs blocks, and none is described");
    return;
  }
  std::set<std::string> names;
  std::map<std::string, const BlockLine*> block_of;
  std::size_t smallest = kMaxNetworkNodes;
  for (const BlockLine& line : conf.blocks) {
    if (!names.insert(line.name).second) {
      complaints.error(line.at, fmt::format("block {} is described twice", shown(line.name)));
    }
    if (line.nodes.empty()) {
      complaints.error(line.at, fmt::format("block {} has no Nodes=", shown(line.name)));
    }
    smallest = std::min(smallest, line.nodes.size());
    for (const std::string& node : line.nodes) {
      const auto [at, fresh] = block_of.emplace(node, &line);
      if (fresh) continue;
      complaints.error(
          line.at, fmt::format("node {} is in two blocks: {} and {} ({})", shown(node),
                               shown(line.name), shown(at->second->name), shown(at->second->at)));
      break;
    }
  }
  std::vector<std::uint32_t>& sizes = conf.block_sizes;
  if (complaints.failed()) return;
  if (sizes.empty()) sizes.push_back(static_cast<std::uint32_t>(smallest));
  std::ranges::sort(sizes);
  sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
  for (const std::uint32_t size : sizes) {
    if (size % sizes.front() == 0 && std::has_single_bit(size / sizes.front())) continue;
    complaints.error({conf.file, 0},
                     fmt::format("BlockSizes has {}, which is not {} times a power of two", size,
                                 sizes.front()));
  }
  for (const BlockLine& line : conf.blocks) {
    if (line.nodes.size() >= sizes.front()) continue;
    complaints.error(line.at, fmt::format("block {} has {} nodes, BlockSizes wants {} at least",
                                          shown(line.name), line.nodes.size(), sizes.front()));
  }
}

}  // namespace

void check_topology(TopologyConf& conf, Complaints& complaints) {
  if (conf.plugin == NetworkPlugin::tree) TreeCheck(conf, complaints).run();
  if (conf.plugin == NetworkPlugin::block) check_blocks(conf, complaints);
}

}  // namespace berth::conf
