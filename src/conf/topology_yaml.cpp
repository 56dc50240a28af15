// Reading topology.yaml, with libyaml. The file may describe several networks; berth uses the one
// for the whole cluster.
#include <fmt/format.h>
#include <yaml.h>

#include <memory>

#include "conf/topology_conf.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::conf {
namespace {

constexpr std::string_view kYamlFile = "topology.yaml";

Location location_of(const yaml_mark_t& mark) {
  return {std::string(kYamlFile), static_cast<int>(mark.line) + 1};
}

class YamlReader {
 public:
  YamlReader(yaml_document_t& document, TopologyConf& out, Complaints& complaints)
      : document_(document), out_(out), complaints_(complaints) {}

  void run() {
    const yaml_node_t* root = yaml_document_get_root_node(&document_);
    if (root == nullptr || root->type != YAML_SEQUENCE_NODE) {
      complaints_.error({std::string(kYamlFile), 0},
                        "the file must be a list of networks, each with topology: NAME and one of "
                        "tree:, block:, flat:");
      return;
    }
    const yaml_node_t* chosen = nullptr;
    std::size_t networks = 0;
    each_item(*root, [&](const yaml_node_t& item) {
      ++networks;
      const yaml_node_t* is_default = field(item, "cluster_default");
      if (chosen == nullptr && is_default != nullptr && truth(*is_default)) chosen = &item;
    });
    if (chosen == nullptr && networks == 1)
      each_item(*root, [&](const yaml_node_t& item) { chosen = &item; });
    if (chosen == nullptr) {
      complaints_.error({std::string(kYamlFile), 0},
                        "no network has cluster_default: true, so it is not said which one to use");
      return;
    }
    if (networks > 1) {
      complaints_.warn(location_of(chosen->start_mark),
                       "several networks are described; this one is used for all partitions");
    }
    network(*chosen);
  }

 private:
  [[nodiscard]] const yaml_node_t* node(int index) const {
    return yaml_document_get_node(&document_, index);
  }

  template <class Take>
  void each_item(const yaml_node_t& list, Take take) const {
    for (const yaml_node_item_t* at = list.data.sequence.items.start;
         at < list.data.sequence.items.top; ++at) {
      if (const yaml_node_t* item = node(*at)) take(*item);
    }
  }

  template <class Take>
  void each_pair(const yaml_node_t& map, Take take) const {
    for (const yaml_node_pair_t* at = map.data.mapping.pairs.start; at < map.data.mapping.pairs.top;
         ++at) {
      const yaml_node_t* key = node(at->key);
      const yaml_node_t* value = node(at->value);
      if (key != nullptr && value != nullptr) take(text_of(*key), *key, *value);
    }
  }

  [[nodiscard]] const yaml_node_t* field(const yaml_node_t& map, std::string_view name) const {
    const yaml_node_t* out = nullptr;
    if (map.type != YAML_MAPPING_NODE) return out;
    each_pair(map, [&](const std::string& key, const yaml_node_t&, const yaml_node_t& value) {
      if (key == name) out = &value;
    });
    return out;
  }

  static std::string text_of(const yaml_node_t& value) {
    if (value.type != YAML_SCALAR_NODE) return {};
    return {reinterpret_cast<const char*>(value.data.scalar.value), value.data.scalar.length};
  }

  static bool truth(const yaml_node_t& value) {
    const std::string text = text::to_lower(text_of(value));
    return text == "true" || text == "yes" || text == "on";
  }

  void unknown(const std::string& key, const yaml_node_t& at, std::string_view allowed) {
    complaints_.error(location_of(at.start_mark),
                      fmt::format("{} is not known here; allowed are {}", shown(key), allowed));
  }

  void network(const yaml_node_t& item) {
    if (item.type != YAML_MAPPING_NODE) {
      complaints_.error(location_of(item.start_mark), "a network needs topology: NAME");
      return;
    }
    each_pair(item, [&](const std::string& key, const yaml_node_t& at, const yaml_node_t& value) {
      if (key == "topology") {
        out_.name = text_of(value);
      } else if (key == "tree" || key == "block") {
        out_.plugin = key == "tree" ? NetworkPlugin::tree : NetworkPlugin::block;
        units(value, key == "tree");
      } else if (key == "ring" || key == "torus3d") {
        complaints_.error(
            location_of(at.start_mark),
            fmt::format("{} is not supported by berth; allowed are tree, block, flat", key));
      } else if (key != "cluster_default" && key != "flat") {
        unknown(key, at, "topology, cluster_default, tree, block, flat");
      }
    });
  }

  /// What is below tree: or block:.
  void units(const yaml_node_t& map, bool tree) {
    if (map.type != YAML_MAPPING_NODE) {
      complaints_.error(location_of(map.start_mark),
                        tree ? "tree: needs switches:" : "block: needs blocks:");
      return;
    }
    each_pair(map, [&](const std::string& key, const yaml_node_t& at, const yaml_node_t& value) {
      if (value.type != YAML_SEQUENCE_NODE) {
        complaints_.error(location_of(at.start_mark), fmt::format("{}: needs a list", shown(key)));
      } else if (key == "switches" && tree) {
        each_item(value, [&](const yaml_node_t& one) { unit(one, true); });
      } else if (key == "blocks" && !tree) {
        each_item(value, [&](const yaml_node_t& one) { unit(one, false); });
      } else if (key == "block_sizes" && !tree) {
        each_item(value, [&](const yaml_node_t& one) { size(one); });
      } else {
        unknown(key, at, tree ? "switches" : "blocks, block_sizes");
      }
    });
  }

  void size(const yaml_node_t& value) {
    const auto number = text::parse_number(text_of(value), kMaxNetworkUnits);
    if (number && *number > 0) {
      out_.block_sizes.push_back(static_cast<std::uint32_t>(*number));
      return;
    }
    complaints_.error(location_of(value.start_mark), "block_sizes: allowed are counts of nodes");
  }

  void unit(const yaml_node_t& map, bool tree) {
    const Location at = location_of(map.start_mark);
    if (map.type != YAML_MAPPING_NODE || ++units_ > kMaxNetworkUnits) {
      complaints_.error(at, map.type != YAML_MAPPING_NODE ? "a switch or block needs its name"
                                                          : "too many switches");
      return;
    }
    SwitchLine a_switch;
    BlockLine a_block;
    a_switch.at = a_block.at = at;
    each_pair(map, [&](const std::string& key, const yaml_node_t& where, const yaml_node_t& value) {
      if (key == "switch" && tree) {
        a_switch.name = text_of(value);
      } else if (key == "block" && !tree) {
        a_block.name = text_of(value);
      } else if (key == "children" && tree) {
        a_switch.switches = names(value);
      } else if (key == "nodes") {
        (tree ? a_switch.nodes : a_block.nodes) = names(value);
      } else {
        unknown(key, where, tree ? "switch, children, nodes" : "block, nodes");
      }
    });
    if ((tree ? a_switch.name : a_block.name).empty()) {
      complaints_.error(at,
                        tree ? "the switch has no switch: NAME" : "the block has no block: NAME");
    }
    if (tree) {
      out_.switches.push_back(std::move(a_switch));
    } else {
      out_.blocks.push_back(std::move(a_block));
    }
  }

  std::vector<std::string> names(const yaml_node_t& value) {
    auto out = text::expand_hostlist(text_of(value));
    if (!out) {
      complaints_.error(location_of(value.start_mark), out.error().what());
      return {};
    }
    named_ += out->size();
    if (named_ > kMaxNetworkNodes) {
      complaints_.error(location_of(value.start_mark),
                        "the lines name too many nodes and switches in all");
      return {};
    }
    return std::move(*out);
  }

  yaml_document_t& document_;
  TopologyConf& out_;
  Complaints& complaints_;
  std::size_t units_ = 0;
  std::size_t named_ = 0;
};

}  // namespace

std::optional<TopologyConf> read_topology_yaml(const FileSource& source, Complaints& complaints) {
  const auto text = source.read(kYamlFile);
  if (!text) {
    complaints.error({std::string(kYamlFile), 0}, text.error().what());
    return std::nullopt;
  }
  if (!*text) return std::nullopt;
  TopologyConf out;
  out.file = kYamlFile;
  yaml_parser_t parser;
  if (yaml_parser_initialize(&parser) == 0) return std::nullopt;
  const std::unique_ptr<yaml_parser_t, decltype(&yaml_parser_delete)> parser_end(
      &parser, yaml_parser_delete);
  yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>((*text)->data()),
                               (*text)->size());
  yaml_document_t document;
  if (yaml_parser_load(&parser, &document) == 0) {
    complaints.error(
        location_of(parser.problem_mark),
        fmt::format("this is not YAML: {}",
                    parser.problem == nullptr ? "the text is not readable" : parser.problem));
    return std::nullopt;
  }
  const std::unique_ptr<yaml_document_t, decltype(&yaml_document_delete)> document_end(
      &document, yaml_document_delete);
  YamlReader(document, out, complaints).run();
  if (!complaints.failed()) check_topology(out, complaints);
  return out;
}

}  // namespace berth::conf
