// Reading slurm.conf: which line is which, DEFAULT lines, global keys.
#include "conf/slurm_conf.h"

#include <fmt/format.h>

#include <array>
#include <unordered_map>

#include "conf/keys.h"
#include "conf/slurm_lines.h"
#include "conf/values.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::conf {
namespace {

constexpr std::array<std::string_view, 18> kSelectParameters = {"CR_CPU",
                                                                "CR_CPU_Memory",
                                                                "CR_Core",
                                                                "CR_Core_Memory",
                                                                "CR_Socket",
                                                                "CR_Socket_Memory",
                                                                "CR_Memory",
                                                                "CR_ONE_TASK_PER_CORE",
                                                                "CR_CORE_DEFAULT_DIST_BLOCK",
                                                                "CR_LLN",
                                                                "CR_Pack_Nodes",
                                                                "CR_NO_DIST_TOPO_BLOCK",
                                                                "BERTH_KEEP_GPUS_WHOLE",
                                                                "ENFORCE_BINDING_GRES",
                                                                "LL_SHARED_GRES",
                                                                "MULTIPLE_SHARING_GRES_PJ",
                                                                "ONE_TASK_PER_SHARING_GRES",
                                                                "NONE"};
constexpr std::array<std::string_view, 3> kSelectTypes = {"select/cons_tres", "select/cons_res",
                                                          "select/linear"};
constexpr std::array<std::string_view, 3> kTaskPlugins = {"task/affinity", "task/cgroup",
                                                          "task/none"};

/// The keys that begin a line of their own kind.
constexpr std::array<std::string_view, 5> kLineTypes = {"NodeName", "PartitionName", "DownNodes",
                                                        "NodeSet", "PowerAction"};

class SlurmReader {
 public:
  SlurmReader(SlurmConf& out, Complaints& complaints) : out_(out), complaints_(complaints) {}

  void line(const Line& line) {
    const std::span<const Pair> pairs(line.pairs);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (is(pairs[i], "NodeName")) return node(pairs.subspan(i));
      if (is(pairs[i], "PartitionName")) return partition(pairs.subspan(i));
      if (is(pairs[i], "DownNodes")) return down_nodes(pairs.subspan(i));
      if (is(pairs[i], "NodeSet")) return node_set(pairs.subspan(i));
      if (is(pairs[i], "PowerAction")) {
        complaints_.unused(pairs[i].at, "PowerAction");
        return;
      }
      global(pairs[i]);
    }
  }

  void finish() {
    // After another error it may stand in the part that was not read.
    if (!out_.cluster_name && !complaints_.failed()) {
      complaints_.error({out_.file, 0}, "ClusterName= is missing; Slurm does not start without it");
    }
    if (out_.limits.def_mem_per_cpu_mb && out_.limits.def_mem_per_node_mb) {
      complaints_.warn(out_.limits.def_mem_per_node_mb->at,
                       "DefMemPerNode and DefMemPerCPU exclude each other; DefMemPerCPU counts");
      out_.limits.def_mem_per_node_mb.reset();
    }
    check_preempt(out_.daemon.preempt, complaints_);
    for (const PartitionLine& line : out_.partitions) {
      check_preempt_of_partition(out_.daemon.preempt, line.name, line.rules, complaints_);
    }
  }

 private:
  void global(const Pair& pair) {
    note_repeat(pair);
    if (find_key(slurm_keys(), pair.key) == nullptr) {
      const bool of_node = find_key(node_keys(), pair.key) != nullptr;
      if (of_node || find_key(partition_keys(), pair.key) != nullptr) {
        complaints_.error(pair.at,
                          fmt::format("{} belongs on a {} line (which goes on in the next "
                                      "line only after a \\)",
                                      shown(pair.key), of_node ? "NodeName" : "PartitionName"));
        return;
      }
    }
    if (find_key(slurm_keys(), pair.key) != nullptr) {
      out_.given[text::to_lower(pair.key)] = pair.value;
    }
    if (used_key(slurm_keys(), pair, "slurm.conf", complaints_, kLineTypes) == nullptr) return;
    if (apply_daemon_pair(pair, out_.daemon, complaints_)) return;
    if (apply_limit_pair(pair, out_.limits, complaints_)) return;
    constexpr std::array<std::string_view, 5> kEnforce = {"NO", "ANY", "ALL", "YES", "0"};
    if (is(pair, "ClusterName")) cluster_name(pair);
    if (is(pair, "SelectType")) put(out_.select_type, one_of(pair, kSelectTypes, complaints_));
    if (is(pair, "SelectTypeParameters")) {
      put(out_.select_parameters, some_of(pair, kSelectParameters, complaints_));
    }
    if (is(pair, "TaskPlugin")) task_plugin(pair);
    if (is(pair, "MaxTasksPerNode")) {
      put(out_.max_tasks_per_node, number(pair, 1, 65533, complaints_));
    }
    if (is(pair, "MaxArraySize")) put(out_.max_array_size, number(pair, 0, 4000001, complaints_));
    if (is(pair, "MpiDefault")) out_.mpi_default = Located<std::string>{pair.value, pair.at};
    if (is(pair, "EnforcePartLimits")) {
      put(out_.enforce_part_limits, one_of(pair, kEnforce, complaints_));
    }
    if (is(pair, "GresTypes")) out_.gres_types = word_list(pair);
    if (is(pair, "TopologyPlugin")) topology_plugin(pair);
    if (is(pair, "TopologyParam")) topology_parameters(pair);
  }

  void topology_plugin(const Pair& pair) {
    constexpr std::array<std::string_view, 7> kPlugins = {
        "topology/flat", "topology/tree", "topology/block",  "topology/default",
        "topology/none", "topology/ring", "topology/torus3d"};
    auto plugin = one_of(pair, kPlugins, complaints_);
    if (!plugin) return;
    if (plugin->value == "topology/default" || plugin->value == "topology/none") {
      plugin->value = "topology/flat";
    }
    if (plugin->value == "topology/ring" || plugin->value == "topology/torus3d") {
      complaints_.error(pair.at, fmt::format("TopologyPlugin={} is not supported by berth; allowed "
                                             "are topology/flat, topology/tree, topology/block",
                                             plugin->value));
    }
    out_.topology_plugin = std::move(plugin);
  }

  void topology_parameters(const Pair& pair) {
    constexpr std::array<std::string_view, 6> kParameters = {"Dragonfly",        "RoutePart",
                                                             "RouteTree",        "TopoOptional",
                                                             "SwitchAsNodeRank", "BlockAsNodeRank"};
    auto given = some_of(pair, kParameters, complaints_);
    if (!given) return;
    for (const std::string& word : given->value) {
      if (word.starts_with("Route")) complaints_.unused(pair.at, "TopologyParam=" + word);
      if (word == "Dragonfly" || word.ends_with("AsNodeRank")) {
        complaints_.warn(
            pair.at, fmt::format("TopologyParam={} is not planned for: {}", word,
                                 word == "Dragonfly" ? "nodes are chosen as in any tree"
                                                     : "tasks are numbered in the order of nodes"));
      }
    }
    out_.topology_parameters = std::move(given);
  }

  void cluster_name(const Pair& pair) {
    if (pair.value.empty()) {
      complaints_.error(pair.at, "ClusterName= is empty");
      return;
    }
    out_.cluster_name = Located<std::string>{text::to_lower(pair.value), pair.at};
  }

  /// "affinity" is short for "task/affinity".
  void task_plugin(const Pair& pair) {
    Pair full = pair;
    full.value.clear();
    for (const std::string& word : word_list(pair).value) {
      if (!full.value.empty()) full.value += ',';
      if (word.find('/') == std::string::npos) full.value += "task/";
      full.value += word;
    }
    put(out_.task_plugins, some_of(full, kTaskPlugins, complaints_));
  }

  void node(std::span<const Pair> pairs) {
    warn_of_repeats(pairs, complaints_);
    const bool is_default = text::equal_ignoring_case(pairs[0].value, "DEFAULT");
    NodeLine line = node_defaults_;
    line.at = pairs[0].at;
    for (const Pair& pair : pairs.subspan(1)) apply_node_pair(pair, line, complaints_);
    if (is_default) {
      node_defaults_ = std::move(line);
      return;
    }
    if (text::equal_ignoring_case(pairs[0].value, "ALL")) {
      complaints_.error(line.at, "NodeName=ALL is not allowed: name the nodes");
      return;
    }
    line.names = hosts(pairs[0], "NodeName");
    if (names_.size() + line.names.size() > kMaxNodes) {
      complaints_.error(line.at, fmt::format("more than {} nodes", kMaxNodes));
      return;
    }
    if (!one_each(line)) return;
    for (const std::string& name : line.names) {
      const auto [at, fresh] = names_.emplace(name, line.at);
      if (!fresh) {
        complaints_.error(line.at, fmt::format("node {} is described twice; first in {}",
                                               shown(name), shown(at->second)));
        return;
      }
    }
    if (!line.names.empty()) out_.nodes.push_back(std::move(line));
  }

  bool one_each(const NodeLine& line) {
    const auto check = [&](const auto& list, std::string_view key) {
      if (!list || list->value.size() == 1 || list->value.size() == line.names.size()) return true;
      complaints_.error(
          list->at, fmt::format("{}= has {} entries for {} nodes; give one for each, or one", key,
                                list->value.size(), line.names.size()));
      return false;
    };
    return check(line.hostnames, "NodeHostname") && check(line.addresses, "NodeAddr") &&
           check(line.ports, "Port");
  }

  void partition(std::span<const Pair> pairs) {
    warn_of_repeats(pairs, complaints_);
    PartitionLine line = partition_defaults_;
    line.at = pairs[0].at;
    line.name = pairs[0].value;
    for (const Pair& pair : pairs.subspan(1)) apply_partition_pair(pair, line, complaints_);
    if (text::equal_ignoring_case(line.name, "DEFAULT")) {
      partition_defaults_ = std::move(line);
      return;
    }
    if (line.name.empty()) {
      complaints_.error(line.at, "PartitionName= is empty");
      return;
    }
    if (line.limits.def_mem_per_cpu_mb && line.limits.def_mem_per_node_mb) {
      complaints_.warn(line.at,
                       "DefMemPerNode and DefMemPerCPU exclude each other; DefMemPerCPU "
                       "counts");
      line.limits.def_mem_per_node_mb.reset();
    }
    if (const auto [at, fresh] = partition_at_.emplace(line.name, out_.partitions.size()); !fresh) {
      complaints_.warn(line.at,
                       fmt::format("partition {} is described twice; this line counts, not {}",
                                   shown(line.name), shown(out_.partitions[at->second].at)));
      out_.partitions[at->second] = std::move(line);
      return;
    }
    if (out_.partitions.size() == kMaxPartitions) {
      complaints_.error(line.at, fmt::format("more than {} partitions", kMaxPartitions));
      return;
    }
    out_.partitions.push_back(std::move(line));
  }

  void down_nodes(std::span<const Pair> pairs) {
    constexpr std::array<std::string_view, 5> kStates = {"DOWN", "DRAIN", "FAIL", "FAILING",
                                                         "FUTURE"};
    DownNodesLine line;
    line.at = pairs[0].at;
    line.names = hosts(pairs[0], "DownNodes");
    for (const Pair& pair : pairs.subspan(1)) {
      if (used_key(down_node_keys(), pair, "a DownNodes line", complaints_) == nullptr) continue;
      if (is(pair, "State")) put(line.state, one_of(pair, kStates, complaints_));
      if (is(pair, "Reason")) line.reason = Located<std::string>{pair.value, pair.at};
    }
    down_count_ += line.names.size();
    if (down_count_ > 4 * kMaxNodes) {
      complaints_.error(line.at, "DownNodes lines name far more nodes than there can be");
      return;
    }
    out_.down_nodes.push_back(std::move(line));
  }

  void node_set(std::span<const Pair> pairs) {
    NodeSetLine line;
    line.at = pairs[0].at;
    line.name = pairs[0].value;
    for (const Pair& pair : pairs.subspan(1)) {
      if (used_key(node_set_keys(), pair, "a NodeSet line", complaints_) == nullptr) continue;
      if (is(pair, "Nodes")) line.nodes = Located<std::string>{pair.value, pair.at};
      if (is(pair, "Feature")) line.feature = Located<std::string>{pair.value, pair.at};
    }
    if (line.name.empty() || (!line.nodes && !line.feature)) {
      complaints_.error(line.at, "a NodeSet line needs a name, and Nodes= or Feature=");
      return;
    }
    if (out_.node_sets.size() == kMaxPartitions) {
      complaints_.error(line.at, fmt::format("more than {} node sets", kMaxPartitions));
      return;
    }
    out_.node_sets.push_back(std::move(line));
  }

  std::vector<std::string> hosts(const Pair& pair, std::string_view key) {
    auto names = text::expand_hostlist(pair.value);
    if (!names) {
      complaints_.error(pair.at, names.error().what());
      return {};
    }
    if (names->empty()) complaints_.error(pair.at, fmt::format("{}= names no node", key));
    return std::move(*names);
  }

  void note_repeat(const Pair& pair) {
    // One line for each controller, each program.
    if (is(pair, "SlurmctldHost") || is(pair, "Prolog") || is(pair, "Epilog")) return;
    if (find_key(slurm_keys(), pair.key) == nullptr) return;
    const auto [at, fresh] = globals_.emplace(text::to_lower(pair.key), pair.at);
    if (fresh) return;
    complaints_.warn(pair.at, fmt::format("{} was given before, in {}; this one counts",
                                          shown(pair.key), shown(at->second)));
    at->second = pair.at;
  }

  SlurmConf& out_;
  Complaints& complaints_;
  NodeLine node_defaults_;
  PartitionLine partition_defaults_;
  std::unordered_map<std::string, Location> names_;
  std::unordered_map<std::string, Location> globals_;
  std::unordered_map<std::string, std::size_t> partition_at_;
  std::size_t down_count_ = 0;
};

}  // namespace

SlurmConf read_slurm_conf(const FileSource& source, Complaints& complaints, std::string_view name) {
  SlurmConf out;
  out.file = name;
  SlurmReader reader(out, complaints);
  const bool found =
      read_lines(source, name, {}, complaints, [&](const Line& line) { reader.line(line); });
  if (!found) {
    complaints.error({out.file, 0}, "no such file");
  } else {
    reader.finish();
  }
  return out;
}

}  // namespace berth::conf
