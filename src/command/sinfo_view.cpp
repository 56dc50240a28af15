#include "command/sinfo_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "command/columns.h"
#include "command/node_clock_text.h"
#include "text/hostlist.h"

namespace berth::command {
namespace {

constexpr std::string_view kSinfoFormat = "%#P %.5a %.10l %.6D %.6t %N";
constexpr std::string_view kSummary = "%#P %.5a %.10l %.16F %N";
constexpr std::string_view kSinfoLong = "%#P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %.11i %N";
constexpr std::string_view kByNodeFormat = "%#N %.6D %.#P %6t";
constexpr std::string_view kByNodeLong = "%#N %.6D %.#P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E";
constexpr std::string_view kReasons = "%20E %9u %19H %N";
constexpr std::string_view kReasonsLong = "%20E %12U %19H %6t %N";
constexpr std::size_t kLeastWidth = 9;  // of a "#" column

std::string_view default_format(const SinfoOptions& options) {
  if (options.summary) return kSummary;
  if (options.reasons) return options.long_format ? kReasonsLong : kReasons;
  if (options.by_node) return options.long_format ? kByNodeLong : kByNodeFormat;
  return options.long_format ? kSinfoLong : kSinfoFormat;
}

std::string_view default_sort(const SinfoOptions& options) {
  if (options.by_node) return "N";
  if (options.reasons) return "-t";
  return "#P,-t";
}

bool wanted(const SinfoOptions& options, const wire::NodeInfo& node) {
  if (node.state() == "FUTURE" && !options.future_too) return false;
  if (options.filters_nodes && !holds(options.nodes, node.name())) return false;
  if (options.dead && !has_flag(node, "NOT_RESPONDING")) return false;
  if (options.responding && has_flag(node, "NOT_RESPONDING")) return false;
  if (options.reasons && node.reason().empty()) return false;
  return matches(options.states, node);
}

/// With a reason of its own, which is for its GPUs as well.
bool out_of_service(const wire::NodeInfo& node) {
  return node.state() == "DOWN" || has_flag(node, "DRAIN") || has_flag(node, "FAIL");
}

/// What the lines of one listing are told apart by: the fields shown, and the node with -N.
struct ShownFields {
  const SinfoOptions& options;
  const Shown& shown;
  std::vector<std::size_t> fields;
};

void key_of_shown(const NodeGroup& one, const void* context, std::string& key) {
  const auto& what = *static_cast<const ShownFields*>(context);
  if (what.options.by_node && !one.nodes.empty()) {
    key += one.nodes.front()->name();
    key += '\n';
  }
  for (const std::size_t field : what.fields) {
    node_fields()[field].show(one, what.shown, key);
    key += '\n';
  }
}

}  // namespace

std::vector<NodeGroup> group_nodes(const SinfoOptions& options, const wire::NodesReply& reply,
                                   GroupKey key, const void* context) {
  std::unordered_map<std::string_view, std::int64_t> position;
  for (int i = 0; i < reply.nodes_size(); ++i) position.emplace(reply.nodes(i).name(), i);
  // The nodes of each partition, in the order of the reply.
  std::unordered_map<std::string_view, std::vector<std::int64_t>> members;
  for (int i = 0; i < reply.nodes_size(); ++i) {
    for (const std::string& partition : reply.nodes(i).partitions())
      members[partition].push_back(i);
  }
  std::vector<NodeGroup> groups;
  std::unordered_map<std::string, std::size_t> known;
  std::string text;
  for (int p = 0; p < reply.partitions_size(); ++p) {
    const wire::PartitionInfo& partition = reply.partitions(p);
    const bool named = holds(options.partitions, partition.name());
    if (!options.partitions.empty() && !named) continue;
    if (partition.hidden() && !options.hidden_too && !named) continue;
    bool any = false;
    for (const std::int64_t i : members[partition.name()]) {
      const wire::NodeInfo& node = reply.nodes(static_cast<int>(i));
      if (!wanted(options, node)) continue;
      any = true;
      NodeGroup one{&partition, p, {&node}, i};
      text.clear();
      key(one, context, text);
      const auto [at, is_new] = known.emplace(text, groups.size());
      if (is_new) {
        groups.push_back(std::move(one));
        continue;
      }
      NodeGroup& group = groups[at->second];
      // Where partitions are not shown, a node of several of them is still one node.
      if (group.partition != &partition &&
          std::ranges::find(group.nodes, &node) != group.nodes.end()) {
        continue;
      }
      group.first_node = std::min(group.first_node, i);
      group.nodes.push_back(&node);
    }
    if (any || options.by_node || options.reasons) continue;
    NodeGroup empty{&partition, p, {}, 0};
    text.clear();
    key(empty, context, text);
    if (known.emplace(text, groups.size()).second) groups.push_back(std::move(empty));
  }
  return groups;
}

std::vector<std::string> reasons_beside(const SinfoOptions& options,
                                        const wire::NodesReply& reply) {
  std::vector<std::string> out;
  SinfoOptions all = options;
  all.reasons = false;  // the nodes themselves need none
  for (const wire::NodeInfo& node : reply.nodes()) {
    const auto& parts = node.partitions();
    const bool shown =
        options.partitions.empty() || std::ranges::any_of(parts, [&](const std::string& name) {
          return holds(options.partitions, name);
        });
    if (!shown || out_of_service(node) || !wanted(all, node)) continue;
    for (const std::string& words : node.gpus_out()) {
      out.push_back(fmt::format("{}: {}", node.name(), words));
    }
    if (const std::string clock = clock_words(node); !clock.empty()) {
      out.push_back(fmt::format("{}: its clock is {}", node.name(), clock));
    }
  }
  return out;
}

Result<std::string> sinfo_text(const SinfoOptions& options, const wire::NodesReply& reply,
                               const Shown& shown) {
  const std::span<const Field<NodeGroup>> table = node_fields();
  FieldNames names = names_of(table, "Invalid node format specification");
  names.all_capital = " |";
  Result<Format> format =
      options.long_fields
          ? parse_long_format(*options.long_fields, names)
          : parse_format(options.format.value_or(std::string(default_format(options))), names);
  if (!format) return pass(std::move(format.error()));
  Result<std::vector<SortKey>> keys =
      parse_sort(options.sort.value_or(std::string(default_sort(options))), names);
  if (!keys) return pass(std::move(keys.error()));

  ShownFields what{options, shown, {}};
  for (const Column& column : format->columns) {
    const Grouping grouping = grouping_of(column.field);
    if (grouping == Grouping::same || (grouping == Grouping::exact && options.exact)) {
      what.fields.push_back(column.field);
    }
  }
  std::vector<NodeGroup> groups = group_nodes(options, reply, key_of_shown, &what);
  sort_rows<NodeGroup>(table, *keys, shown, groups, false,
                       [](const NodeGroup& group) { return group.partition_order; });
  widen<NodeGroup>(table, *format, groups, shown, kLeastWidth);

  std::string out;
  if ((options.long_format && options.header) || options.iterate_seconds != 0) {
    out += date_line(shown.now) + "\n";
  }
  if (options.clusters) out += fmt::format("CLUSTER: {}\n", shown.cluster);
  if (options.header) append_header(table, *format, out);
  for (const NodeGroup& group : groups) append_row(table, *format, group, shown, out);
  return out;
}

}  // namespace berth::command
