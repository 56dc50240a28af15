// What Nodes= of a partition stands for, and the partition's limits.
#include "site/partitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "site/limits.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::site {
namespace {

constexpr std::size_t kMaxMembers = std::size_t{1} << 24;  // nodes of all partitions together

class NodeLists {
 public:
  NodeLists(const conf::SlurmConf& conf, const cluster::Cluster& cluster,
            conf::Complaints& complaints)
      : cluster_(cluster), complaints_(complaints) {
    for (const conf::NodeSetLine& line : conf.node_sets) {
      std::vector<bool> members(cluster.nodes.size());
      if (line.feature) add_feature(line.feature->value, members);
      if (line.nodes) add(*line.nodes, members);
      if (!sets_.emplace(line.name, positions(members)).second) {
        complaints_.warn(line.at, fmt::format("node set {} is described twice; the first counts",
                                              conf::shown(line.name)));
      }
      if (complaints_.full() || too_much_) return;
    }
  }

  std::vector<cluster::NodeIndex> resolve(const conf::Located<std::string>& text) {
    std::vector<bool> members(cluster_.nodes.size());
    add(text, members);
    return positions(members);
  }

 private:
  void add(const conf::Located<std::string>& text, std::vector<bool>& members) {
    for (const std::string_view item : items(text.value)) {
      if (text::equal_ignoring_case(item, "ALL")) {
        members.assign(members.size(), true);
      } else if (const auto set = sets_.find(item); set != sets_.end()) {
        for (const cluster::NodeIndex node : set->second) members[node] = true;
      } else if (item.starts_with("feature{") && item.ends_with('}')) {
        add_feature(item.substr(8, item.size() - 9), members);
      } else if (!add_hosts(item, text.at, members)) {
        return;
      }
    }
  }

  void add_feature(std::string_view feature, std::vector<bool>& members) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (cluster_.nodes[i].has_feature(feature)) members[i] = true;
    }
  }

  bool add_hosts(std::string_view item, const conf::Location& at, std::vector<bool>& members) {
    const auto names = text::expand_hostlist(item);
    if (!names) {
      complaints_.error(at, names.error().what());
      return false;
    }
    looked_up_ += names->size();
    if (looked_up_ > kMaxMembers) {
      complaints_.error(at, "the partitions name too many nodes in all");
      too_much_ = true;
      return false;
    }
    for (const std::string& name : *names) {
      const auto node = cluster_.find_node(name);
      if (!node) {
        unknown(name, at);
        return false;
      }
      members[*node] = true;
    }
    return true;
  }

  void unknown(const std::string& name, const conf::Location& at) {
    std::vector<std::string> known;
    for (const auto& [set, nodes] : sets_) known.push_back(set);
    for (const cluster::Node& node : cluster_.nodes) known.push_back(node.name);
    const std::string near = text::nearest(name, known);
    complaints_.error(at, fmt::format("no NodeName line describes {}{}", conf::shown(name),
                                      near.empty() ? "" : fmt::format("; did you mean {}?", near)));
  }

  std::vector<cluster::NodeIndex> positions(const std::vector<bool>& members) {
    std::vector<cluster::NodeIndex> out;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i]) out.push_back(static_cast<cluster::NodeIndex>(i));
    }
    looked_up_ += out.size();
    return out;
  }

  /// Parts between commas outside brackets.
  static std::vector<std::string_view> items(std::string_view list) {
    std::vector<std::string_view> out;
    std::size_t start = 0;
    bool inside = false;
    for (std::size_t i = 0; i <= list.size(); ++i) {
      if (i < list.size() && list[i] == '[') inside = true;
      if (i < list.size() && list[i] == ']') inside = false;
      if (i < list.size() && (list[i] != ',' || inside)) continue;
      const std::string_view item = text::trim(list.substr(start, i - start));
      if (!item.empty() && item != "(null)") out.push_back(item);
      start = i + 1;
    }
    return out;
  }

  const cluster::Cluster& cluster_;
  conf::Complaints& complaints_;
  std::map<std::string, std::vector<cluster::NodeIndex>, std::less<>> sets_;
  std::size_t looked_up_ = 0;
  bool too_much_ = false;
};

cluster::PartitionState state_of(const conf::PartitionLine& line) {
  const std::string state = line.state ? line.state->value : "UP";
  if (state == "DOWN") return cluster::PartitionState::down;
  if (state == "DRAIN") return cluster::PartitionState::drain;
  if (state == "INACTIVE") return cluster::PartitionState::inactive;
  return cluster::PartitionState::up;
}

std::optional<std::uint32_t> minutes(const conf::Maybe<text::TimeLimit>& limit) {
  if (!limit || limit->value.unlimited) return std::nullopt;
  return limit->value.minutes;
}

cluster::Partition partition_of(const conf::PartitionLine& line, bool least_loaded) {
  cluster::Partition out;
  out.name = line.name;
  out.is_default = line.is_default && line.is_default->value;
  out.state = state_of(line);
  out.max_time_minutes = minutes(line.max_time);
  out.default_time_minutes = minutes(line.default_time);
  out.min_nodes = line.min_nodes ? line.min_nodes->value : 0;
  out.max_nodes = conf::value_of(line.max_nodes);
  out.max_cpus_per_node = conf::value_of(line.max_cpus_per_node);
  out.max_cpus_per_socket = conf::value_of(line.max_cpus_per_socket);
  set_limits(line.limits, out);
  out.exclusive_nodes = (line.exclusive && line.exclusive->value == "NODE") ||
                        (line.over_subscribe && line.over_subscribe->value == "EXCLUSIVE");
  out.least_loaded = line.least_loaded ? line.least_loaded->value : least_loaded;
  return out;
}

}  // namespace

void add_partitions(const conf::SlurmConf& conf, cluster::Cluster& cluster,
                    conf::Complaints& complaints) {
  NodeLists lists(conf, cluster, complaints);
  const bool least_loaded =
      conf.select_parameters && std::ranges::find(conf.select_parameters->value, "CR_LLN") !=
                                    conf.select_parameters->value.end();
  const conf::PartitionLine* default_line = nullptr;
  for (const conf::PartitionLine& line : conf.partitions) {
    if (complaints.full()) return;
    cluster::Partition partition = partition_of(line, least_loaded);
    if (line.nodes) partition.nodes = lists.resolve(*line.nodes);
    if (partition.is_default && default_line != nullptr) {
      complaints.warn(line.at, fmt::format("both {} and {} are Default=YES; {} counts",
                                           conf::shown(default_line->name), conf::shown(line.name),
                                           conf::shown(line.name)));
      for (cluster::Partition& other : cluster.partitions) other.is_default = false;
    }
    if (partition.is_default) default_line = &line;
    cluster.partitions.push_back(std::move(partition));
  }
}

}  // namespace berth::site
