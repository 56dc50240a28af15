#include "site/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "text/hostlist.h"

namespace berth::site {
namespace {

using cluster::NetworkKind;
using cluster::NetworkUnit;
using cluster::Topology;
using cluster::UnitIndex;

class NetworkBuilder {
 public:
  NetworkBuilder(const conf::Config& config, cluster::Cluster& cluster,
                 conf::Complaints& complaints)
      : config_(config), conf_(*config.topology), cluster_(cluster), complaints_(complaints) {}

  void build() {
    Topology& out = cluster_.topology;
    out.name = conf_.name;
    out.kind = conf_.plugin == conf::NetworkPlugin::tree ? NetworkKind::tree : NetworkKind::block;
    const auto& words = config_.slurm.topology_parameters;
    out.only_when_asked =
        words && std::ranges::find(words->value, "TopoOptional") != words->value.end();
    if (out.kind == NetworkKind::tree) {
      switches();
    } else {
      blocks();
    }
    if (complaints_.failed()) return;
    out.finish(cluster_.nodes.size());
    check_strays();
  }

 private:
  std::vector<cluster::NodeIndex> nodes(const std::vector<std::string>& names,
                                        const conf::Location& at) {
    std::vector<cluster::NodeIndex> out;
    std::vector<std::string> unknown;
    for (const std::string& name : names) {
      if (const auto index = cluster_.find_node(name)) {
        out.push_back(*index);
      } else {
        unknown.push_back(name);
      }
    }
    if (!unknown.empty()) {
      complaints_.error(at, fmt::format("{} is not in slurm.conf: no NodeName line describes it",
                                        conf::shown(text::compress_hostlist(unknown))));
    }
    return out;
  }

  void switches() {
    std::vector<NetworkUnit>& units = cluster_.topology.units;
    std::map<std::string, UnitIndex> by_name;
    for (const conf::SwitchLine& line : conf_.switches) {
      NetworkUnit unit;
      unit.name = line.name;
      unit.link_speed = line.link_speed;
      unit.nodes = nodes(line.nodes, line.at);
      by_name[line.name] = static_cast<UnitIndex>(units.size());
      units.push_back(std::move(unit));
    }
    for (UnitIndex i = 0; i < units.size(); ++i) {
      for (const std::string& child : conf_.switches[i].switches) {
        UnitIndex at = by_name.at(child);
        if (units[at].parent) continue;  // named twice
        units[at].parent = i;
        units[i].children.push_back(at);
      }
    }
  }

  void blocks() {
    Topology& out = cluster_.topology;
    out.block_sizes = conf_.block_sizes;
    for (const conf::BlockLine& line : conf_.blocks) {
      NetworkUnit unit;
      unit.name = line.name;
      unit.nodes = nodes(line.nodes, line.at);
      out.units.push_back(std::move(unit));
    }
    cluster::join_blocks(out);
  }

  /// Nodes of slurm.conf on no switch. Those made by scontrol are on none.
  void check_strays() {
    std::set<std::string> made;
    for (const conf::NodeLine& line : config_.slurm.nodes) {
      if (line.at.file == "scontrol") made.insert(line.names.begin(), line.names.end());
    }
    std::vector<std::string> strays;
    for (cluster::NodeIndex i = 0; i < cluster_.nodes.size(); ++i) {
      const std::string& name = cluster_.nodes[i].name;
      if (cluster_.topology.leaf_of(i) == Topology::kNone && !made.contains(name)) {
        strays.push_back(name);
      }
    }
    if (strays.empty()) return;
    const std::string names = conf::shown(text::compress_hostlist(strays));
    if (cluster_.topology.kind == NetworkKind::tree) {
      complaints_.error({conf_.file, 0},
                        fmt::format("{} on no switch: add {} to the Nodes= of a SwitchName line",
                                    strays.size() == 1 ? names + " is" : names + " are",
                                    strays.size() == 1 ? "it" : "them"));
    } else {
      complaints_.warn({conf_.file, 0},
                       fmt::format("{} in no block: only jobs on one node can run there",
                                   strays.size() == 1 ? names + " is" : names + " are"));
    }
  }

  const conf::Config& config_;
  const conf::TopologyConf& conf_;
  cluster::Cluster& cluster_;
  conf::Complaints& complaints_;
};

}  // namespace

void add_network(const conf::Config& config, cluster::Cluster& cluster,
                 conf::Complaints& complaints) {
  if (!config.topology || config.topology->plugin == conf::NetworkPlugin::flat) return;
  NetworkBuilder(config, cluster, complaints).build();
}

}  // namespace berth::site
