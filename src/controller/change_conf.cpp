// What change_conf.h promises.
#include "controller/change_conf.h"

#include <fmt/format.h>

#include <algorithm>

#include "conf/slurm_lines.h"
#include "site/partitions.h"

namespace berth::controller {
namespace {

using Lines = std::vector<conf::PartitionLine>;

Lines::iterator find_line(Lines& lines, const std::string& name) {
  return std::find_if(lines.begin(), lines.end(),
                      [&](const conf::PartitionLine& line) { return line.name == name; });
}

/// What placement needs of slurm.conf besides the lines.
conf::SlurmConf surroundings_of(const Setup& setup, Lines lines) {
  conf::SlurmConf conf;
  conf.file = setup.config.slurm.file;
  conf.select_parameters = setup.config.slurm.select_parameters;
  conf.node_sets = setup.config.slurm.node_sets;
  conf.partitions = std::move(lines);
  return conf;
}

void put_keys(conf::PartitionLine& line, const wire::PartitionRecord& record,
              conf::Complaints& complaints) {
  for (const wire::Variable& key : record.keys()) {
    const conf::Pair pair{key.name(), key.value(), {"scontrol", 0}};
    conf::apply_partition_pair(pair, line, complaints);
  }
}

/// The line with the keys of the record, or why not.
Result<conf::PartitionLine> with_keys(conf::PartitionLine line, const wire::PartitionRecord& record,
                                      const Setup& setup, const cluster::Cluster& cluster) {
  conf::Complaints complaints;
  put_keys(line, record, complaints);
  conf::check_preempt_of_partition(setup.keys().preempt, line.name, line.rules, complaints);
  if (complaints.failed()) return std::unexpected(complaints.as_error());
  // A key that slurm.conf may have and berth does not use must not be taken in silence here.
  for (const conf::UnusedKeys& unused : complaints.unused_keys()) {
    return fail(Code::unsupported, fmt::format("Update of {} is not supported by berth",
                                               unused.keys.empty() ? "" : unused.keys.front()));
  }
  cluster::Cluster probe = cluster;
  probe.partitions.clear();
  site::add_partitions(surroundings_of(setup, {line}), probe, complaints);
  if (complaints.failed()) return std::unexpected(complaints.as_error());
  return line;
}

}  // namespace

conf::PartitionLine partition_line(const Setup& setup, const std::string& name,
                                   const wire::PartitionRecord* record) {
  conf::PartitionLine line;
  for (const conf::PartitionLine& known : setup.config.slurm.partitions) {
    if (known.name == name) line = known;
  }
  line.name = name;
  conf::Complaints complaints;
  if (record != nullptr && !record->deleted()) put_keys(line, *record, complaints);
  return line;
}

std::vector<conf::PartitionLine> partition_lines(const std::vector<wire::PartitionRecord>& records,
                                                 const Setup& setup,
                                                 const cluster::Cluster& cluster,
                                                 std::vector<std::string>& troubles) {
  Lines lines = setup.config.slurm.partitions;
  for (const wire::PartitionRecord& record : records) {
    const auto at = find_line(lines, record.name());
    if (record.deleted()) {
      if (at != lines.end()) lines.erase(at);
      continue;
    }
    if (at == lines.end() && !record.created()) {
      troubles.push_back(
          fmt::format("partition {} is not in slurm.conf any more; what scontrol "
                      "changed of it is left out",
                      record.name()));
      continue;
    }
    conf::PartitionLine line;
    if (at != lines.end()) line = *at;
    line.name = record.name();
    auto changed = with_keys(std::move(line), record, setup, cluster);
    if (!changed) {
      troubles.push_back(fmt::format("partition {}: {}", record.name(), changed.error().what()));
      continue;
    }
    if (changed->is_default && changed->is_default->value) {
      for (conf::PartitionLine& other : lines) other.is_default.reset();
    }
    if (at != lines.end()) {
      *at = std::move(*changed);
    } else {
      lines.push_back(std::move(*changed));
    }
  }
  return lines;
}

std::vector<std::string> apply_partition_records(const std::vector<wire::PartitionRecord>& records,
                                                 const Setup& setup, cluster::Cluster& cluster,
                                                 job::Policy& policy) {
  std::vector<std::string> troubles;
  if (records.empty()) return troubles;
  const conf::SlurmConf conf =
      surroundings_of(setup, partition_lines(records, setup, cluster, troubles));
  conf::Complaints complaints;
  cluster.partitions.clear();
  site::add_partitions(conf, cluster, complaints);
  policy.partitions.clear();
  for (const conf::PartitionLine& line : conf.partitions) {
    policy.partitions[line.name] = partition_policy(line.rules);
  }
  return troubles;
}

}  // namespace berth::controller
