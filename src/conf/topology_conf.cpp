// Reading topology.conf.
#include "conf/topology_conf.h"

#include <fmt/format.h>

#include "conf/keys.h"
#include "conf/slurm_lines.h"
#include "conf/values.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::conf {
namespace {

constexpr std::string_view kConfFile = "topology.conf";

class TopologyReader {
 public:
  TopologyReader(TopologyConf& out, Complaints& complaints) : out_(out), complaints_(complaints) {}

  void line(const Line& line) {
    warn_of_repeats(line.pairs, complaints_);
    SwitchLine a_switch;
    BlockLine a_block;
    a_switch.at = a_block.at = line.pairs.front().at;
    for (const Pair& pair : line.pairs) {
      if (used_key(topology_keys(), pair, kConfFile, complaints_) != nullptr) {
        apply(pair, a_switch, a_block);
      }
    }
    if (complaints_.failed()) return;
    if (out_.switches.size() + out_.blocks.size() >= kMaxNetworkUnits) {
      complaints_.error(a_switch.at, fmt::format("more than {} switches", kMaxNetworkUnits));
    } else if (!a_switch.name.empty() && !a_block.name.empty()) {
      complaints_.error(a_switch.at, "a line describes a switch or a block, not both");
    } else if (!a_switch.name.empty()) {
      a_switch.nodes = std::move(nodes_);
      out_.switches.push_back(std::move(a_switch));
    } else if (!a_block.name.empty()) {
      a_block.nodes = std::move(nodes_);
      out_.blocks.push_back(std::move(a_block));
    } else if (line.pairs.size() != 1 || !is(line.pairs.front(), "BlockSizes")) {
      complaints_.error(a_switch.at, "the line has no SwitchName= and no BlockName=");
    }
    nodes_.clear();
  }

 private:
  void apply(const Pair& pair, SwitchLine& a_switch, BlockLine& a_block) {
    if (is(pair, "SwitchName")) a_switch.name = pair.value;
    if (is(pair, "BlockName")) a_block.name = pair.value;
    if (is(pair, "Switches")) list(pair, a_switch.switches);
    if (is(pair, "Nodes")) list(pair, nodes_);
    if (is(pair, "LinkSpeed")) {
      if (const auto speed = number(pair, 0, UINT32_MAX - 2, complaints_)) {
        a_switch.link_speed = speed->value;
      }
    }
    if (is(pair, "BlockSizes")) sizes(pair);
  }

  void list(const Pair& pair, std::vector<std::string>& to) {
    auto names = text::expand_hostlist(pair.value);
    if (!names) {
      complaints_.error(pair.at, names.error().what());
      return;
    }
    named_ += names->size();
    if (named_ > kMaxNetworkNodes) {
      complaints_.error(pair.at, "the lines name too many nodes and switches in all");
      return;
    }
    to = std::move(*names);
  }

  void sizes(const Pair& pair) {
    out_.block_sizes.clear();
    for (const std::string& word : word_list(pair).value) {
      if (const auto size = number({pair.key, word, pair.at}, 1, kMaxNetworkUnits, complaints_)) {
        out_.block_sizes.push_back(size->value);
      }
    }
  }

  TopologyConf& out_;
  Complaints& complaints_;
  std::vector<std::string> nodes_;  // of the line that is read
  std::size_t named_ = 0;
};

std::string_view plugin_name(NetworkPlugin plugin) {
  switch (plugin) {
    case NetworkPlugin::flat:
      return "topology/flat";
    case NetworkPlugin::tree:
      return "topology/tree";
    case NetworkPlugin::block:
      return "topology/block";
  }
  return "topology/flat";
}

}  // namespace

std::optional<TopologyConf> read_topology(const FileSource& source, NetworkPlugin plugin,
                                          const Location& plugin_at, std::string_view cluster_name,
                                          Complaints& complaints) {
  if (auto yaml = read_topology_yaml(source, complaints)) return yaml;
  if (plugin == NetworkPlugin::flat) return std::nullopt;
  TopologyConf out;
  out.file = kConfFile;
  out.plugin = plugin;
  TopologyReader reader(out, complaints);
  if (!read_lines(source, kConfFile, cluster_name, complaints,
                  [&](const Line& line) { reader.line(line); })) {
    complaints.error(plugin_at,
                     fmt::format("TopologyPlugin={} needs topology.conf beside slurm.conf, and "
                                 "there is none",
                                 plugin_name(plugin)));
    return std::nullopt;
  }
  if (!complaints.failed()) check_topology(out, complaints);
  return out;
}

}  // namespace berth::conf
