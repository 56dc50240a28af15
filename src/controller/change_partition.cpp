// scontrol update, create and delete of PartitionName=.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "conf/keys.h"
#include "controller/change_conf.h"
#include "controller/change_update.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::controller {
namespace {

bool in_use(const job::State& state, const std::string& partition) {
  return std::any_of(state.jobs().begin(), state.jobs().end(), [&](const auto& entry) {
    const job::Job& job = entry.second;
    if (job::ended(job.base) && !job.flags.completing) return false;
    const auto names = text::split(job.partition, ',');
    return std::find(names.begin(), names.end(), partition) != names.end();
  });
}

/// "Nodes+=gpu3", "Nodes-=gpu3": the list that results.
Result<std::string> changed_nodes(const job::State& state, const std::string& partition,
                                  const std::string& value) {
  if (!value.starts_with('+') && !value.starts_with('-')) return value;
  const cluster::Partition* known = state.cluster().find_partition(partition);
  std::set<std::string> names;
  if (known != nullptr) {
    for (const cluster::NodeIndex node : known->nodes) {
      names.insert(state.cluster().nodes[node].name);
    }
  }
  auto given = text::expand_hostlist(std::string_view(value).substr(1));
  if (!given) {
    return fail(Code::invalid_node_name, std::string(slurm_text(Code::invalid_node_name)),
                std::string(given.error().what()));
  }
  for (const std::string& name : *given) {
    if (value.front() == '+') {
      names.insert(name);
    } else {
      names.erase(name);
    }
  }
  return text::compress_hostlist(std::vector<std::string>(names.begin(), names.end()));
}

/// The key in slurm.conf's spelling: scontrol allows it to be cut short.
std::string whole_key(const std::string& word) {
  for (const conf::Key& key : conf::partition_keys()) {
    if (text::equal_ignoring_case(word, key.name)) return std::string(key.name);
  }
  std::string found;
  for (const conf::Key& key : conf::partition_keys()) {
    if (!is_key(word, key.name, 4)) continue;
    if (!found.empty()) return word;  // could be several
    found = key.name;
  }
  return found.empty() ? word : found;
}

void put_key(wire::PartitionRecord& record, const std::string& name, const std::string& value) {
  for (wire::Variable& key : *record.mutable_keys()) {
    if (text::equal_ignoring_case(key.name(), name)) {
      key.set_value(value);
      return;
    }
  }
  wire::Variable& key = *record.add_keys();
  key.set_name(name);
  key.set_value(value);
}

Result<wire::PartitionRecord> record_of(const job::State& state, const wire::Change& ask,
                                        const std::string& name, bool exists) {
  wire::PartitionRecord record;
  const auto old = state.partition_records().find(name);
  if (old != state.partition_records().end() && !old->second.deleted()) record = old->second;
  record.set_name(name);
  if (ask.action() == "delete") {
    record.clear_keys();
    record.set_deleted(true);
    return record;
  }
  record.set_created(record.created() || !exists);
  for (const wire::Variable& key : ask.keys()) {
    if (is_key(key.name(), "PartitionName", 4)) continue;
    const std::string whole = whole_key(key.name());
    std::string value = key.value();
    if (whole == "Nodes") {
      auto nodes = changed_nodes(state, name, value);
      if (!nodes) return pass(std::move(nodes.error()));
      value = std::move(*nodes);
    }
    put_key(record, whole, value);
  }
  return record;
}

}  // namespace

Result<void> change_partition(job::State& state, const Caller& caller, const wire::Change& ask,
                              const ChangeContext& context, job::Time now) {
  if (!caller.privileged) return pass(job::job_error(job::JobFault::not_yours));
  const std::string name = selected(ask, "PartitionName", 4);
  const bool exists = state.cluster().find_partition(name) != nullptr;
  const bool creates = ask.action() == "create";
  if (name.empty() || name.find(',') != std::string::npos || exists == creates) {
    return fail(Code::invalid_partition, std::string(slurm_text(Code::invalid_partition)),
                exists && creates ? fmt::format("{} is there already; use update", name) : "");
  }
  if (ask.action() == "delete" && in_use(state, name)) {
    return fail(Code::bad_value, "Partition is in use", "cancel its jobs, or set State=DOWN");
  }
  auto record = record_of(state, ask, name, exists);
  if (!record) return pass(std::move(record.error()));
  std::vector<wire::PartitionRecord> records;
  for (const auto& [other, kept] : state.partition_records()) {
    if (other != name) records.push_back(kept);
  }
  cluster::Cluster cluster = context.setup.cluster;
  job::Policy policy = context.setup.policy;
  std::vector<std::string> before;
  partition_lines(records, context.setup, cluster, before);
  records.push_back(*record);
  const std::vector<std::string> troubles =
      apply_partition_records(records, context.setup, cluster, policy);
  // Troubles of other partitions were there before; only a new one is the fault of this change.
  if (troubles.size() > before.size()) {
    return fail(Code::bad_value, "Invalid partition specification", troubles.back());
  }
  state.keep_partition(std::move(*record));
  state.reconfigure(std::move(cluster), std::move(policy), now);
  return {};
}

}  // namespace berth::controller
