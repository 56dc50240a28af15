// scontrol create and delete of NodeName=.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "controller/change_conf.h"
#include "controller/change_update.h"
#include "controller/created_nodes.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::controller {
namespace {

/// Values that one word of a line cannot hold would be read as something else later.
bool holds_blank(const std::string& value) {
  return value.find_first_of(" \t\n\"#\\") != std::string::npos;
}

Result<std::vector<std::string>> names_given(const wire::Change& ask) {
  auto names = text::expand_hostlist(selected(ask, "NodeName", 4));
  if (!names || names->empty()) {
    return fail(Code::invalid_node_name, std::string(slurm_text(Code::invalid_node_name)),
                names ? "no name was given" : std::string(names.error().what()));
  }
  return std::move(*names);
}

Result<std::string> keys_given(const wire::Change& ask) {
  constexpr std::array<std::string_view, 2> kStates = {"CLOUD", "FUTURE"};
  std::string keys;
  for (const wire::Variable& key : ask.keys()) {
    if (is_key(key.name(), "NodeName", 4)) continue;
    if (holds_blank(key.value())) {
      return fail(Code::bad_value, fmt::format("Invalid {} value: {}", key.name(), key.value()));
    }
    if (text::equal_ignoring_case(key.name(), "State") &&
        std::ranges::none_of(kStates, [&](std::string_view word) {
          return text::equal_ignoring_case(word, key.value());
        })) {
      return fail(Code::bad_value, fmt::format("Invalid node state specified: {}", key.value()),
                  "a node is created with State=CLOUD or State=FUTURE");
    }
    keys += fmt::format(" {}={}", key.name(), key.value());
  }
  return keys;
}

/// The cluster of the setup with what scontrol did to partitions.
void take_into_force(job::State& state, Setup setup, ChangeContext& context, job::Time now) {
  cluster::Cluster cluster = setup.cluster;
  job::Policy policy = setup.policy;
  std::vector<wire::PartitionRecord> records;
  for (const auto& [name, record] : state.partition_records()) records.push_back(record);
  apply_partition_records(records, setup, cluster, policy);
  state.reconfigure(std::move(cluster), std::move(policy), now);
  context.setup = std::move(setup);
  context.nodes_changed = true;
}

}  // namespace

Result<void> add_nodes(job::State& state, const std::vector<CreatedNode>& added,
                       ChangeContext& context, job::Time now) {
  std::vector<CreatedNode> nodes = created_nodes(state);
  nodes.insert(nodes.end(), added.begin(), added.end());
  auto setup = with_nodes(context.setup, nodes);
  if (!setup) return pass(std::move(setup.error()));
  take_into_force(state, std::move(*setup), context, now);
  for (const CreatedNode& node : added) state.keep_node(node.name, node.line, now);
  return {};
}

Result<void> create_nodes(job::State& state, const Caller& caller, const wire::Change& ask,
                          ChangeContext& context, job::Time now) {
  if (!caller.privileged) return pass(job::job_error(job::JobFault::not_yours));
  const auto names = names_given(ask);
  if (!names) return pass(names.error());
  const auto keys = keys_given(ask);
  if (!keys) return pass(keys.error());
  std::vector<CreatedNode> added;
  for (const std::string& name : *names) {
    if (state.cluster().find_node(name)) {
      return fail(Code::invalid_node_name, std::string(slurm_text(Code::invalid_node_name)),
                  fmt::format("{} is there already", name));
    }
    added.push_back({name, fmt::format("NodeName={}{}", name, *keys)});
  }
  return add_nodes(state, added, context, now);
}

Result<void> delete_nodes(job::State& state, const Caller& caller, const wire::Change& ask,
                          ChangeContext& context, job::Time now) {
  if (!caller.privileged) return pass(job::job_error(job::JobFault::not_yours));
  const auto names = names_given(ask);
  if (!names) return pass(names.error());
  for (const std::string& name : *names) {
    const job::NodeState* node = state.find_node(name);
    if (node == nullptr) {
      return fail(Code::invalid_node_name, std::string(slurm_text(Code::invalid_node_name)),
                  fmt::format("there is no node {}", name));
    }
    if (node->line.empty()) {
      return fail(
          Code::invalid_node_name, std::string(slurm_text(Code::invalid_node_name)),
          fmt::format("{} is in slurm.conf: take it out there, then scontrol reconfigure", name));
    }
    if (!node->jobs.empty()) {
      return fail(Code::nodes_busy, std::string(slurm_text(Code::nodes_busy)),
                  fmt::format("job {} is on {}", *node->jobs.begin(), name));
    }
  }
  const std::set<std::string> gone(names->begin(), names->end());
  std::vector<CreatedNode> nodes = created_nodes(state);
  std::erase_if(nodes, [&](const CreatedNode& node) { return gone.contains(node.name); });
  auto setup = with_nodes(context.setup, nodes);
  if (!setup) return pass(std::move(setup.error()));
  for (const std::string& name : *names) state.drop_node(name);
  take_into_force(state, std::move(*setup), context, now);
  return {};
}

}  // namespace berth::controller
