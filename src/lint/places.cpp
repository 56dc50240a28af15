// Rules about names of places: partitions, nodes and features that do not exist or are closed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "lint/rule.h"
#include "text/words.h"

namespace berth::lint {
namespace {

using cluster::Partition;
using request::Opt;

void find_unknown_partition(const Facts& facts, Report& report) {
  if (facts.input.cluster == nullptr) return;
  std::vector<std::string> known;
  for (const Partition& each : facts.input.cluster->partitions) known.push_back(each.name);
  for (const Job& job : facts.jobs) {
    for (const std::string& name : job.request->partitions) {
      if (facts.input.cluster->find_partition(name) != nullptr) continue;
      const std::string near = text::nearest(name, known);
      report.add(
          line_of(*job.request, Opt::partition),
          fmt::format("There is no partition {}. There are: {}.", name, fmt::join(known, ", ")),
          near.empty() ? "" : facts.as_directive("--partition=" + near));
    }
  }
}

/// The names in a constraint expression such as "[rack1*2&rack2*1]" or "a100|h100".
std::vector<std::string> features_in(std::string_view expression) {
  std::vector<std::string> names;
  std::string name;
  bool counting = false;  // after '*'
  for (const char c : expression) {
    if (std::string_view("&|[](),").find(c) != std::string_view::npos) {
      if (!name.empty()) names.push_back(std::move(name));
      name.clear();
      counting = false;
    } else if (c == '*') {
      counting = true;
    } else if (!counting) {
      name += c;
    }
  }
  if (!name.empty()) names.push_back(std::move(name));
  return names;
}

void find_unknown_feature(const Facts& facts, Report& report) {
  if (facts.input.cluster == nullptr) return;
  std::vector<std::string> known;
  for (const cluster::Node& node : facts.input.cluster->nodes) {
    known.insert(known.end(), node.features.begin(), node.features.end());
  }
  std::ranges::sort(known);
  const auto rest = std::ranges::unique(known);
  known.erase(rest.begin(), rest.end());
  for (const Job& job : facts.jobs) {
    for (const std::string& name : features_in(job.request->constraint.value_or(""))) {
      if (std::ranges::find(known, name) != known.end()) continue;
      const std::string near = text::nearest(name, known);
      report.add(line_of(*job.request, Opt::constraint),
                 known.empty()
                     ? fmt::format("No node has the feature {}, or any other.", name)
                     : fmt::format("No node has the feature {}. There are: {}.", name,
                                   shortened(fmt::format("{}", fmt::join(known, ", ")), 200)),
                 near.empty() ? "" : facts.as_directive("--constraint=" + near));
    }
  }
}

/// "#SBATCH --partition=…" for an open partition that has the node; "" when none has.
std::string partition_of(const Facts& facts, cluster::NodeIndex node) {
  for (const Partition& partition : facts.input.cluster->partitions) {
    const bool has = std::ranges::binary_search(partition.nodes, node);
    if (has && partition.state == cluster::PartitionState::up) {
      return facts.as_directive("--partition=" + partition.name);
    }
  }
  return {};
}

void find_unknown_node(const Facts& facts, Report& report) {
  if (facts.input.cluster == nullptr) return;
  std::vector<std::string> known;
  for (const cluster::Node& node : facts.input.cluster->nodes) known.push_back(node.name);
  for (const Job& job : facts.jobs) {
    const auto usable = facts.candidates(*job.request);
    for (const std::string& name : job.request->nodelist) {
      const auto index = facts.input.cluster->find_node(name);
      if (!index) {
        const std::string near = text::nearest(name, known);
        report.add(line_of(*job.request, Opt::nodelist), fmt::format("There is no node {}.", name),
                   near.empty() ? "" : facts.as_directive("--nodelist=" + near));
      } else if (std::ranges::find(usable, *index) == usable.end()) {
        const auto partitions = facts.partitions(*job.request);
        report.add(line_of(*job.request, Opt::nodelist),
                   fmt::format("{} is not in partition {}.", name,
                               partitions.empty() ? "?" : partitions.front()->name),
                   partition_of(facts, *index));
      }
    }
  }
}

void find_closed_partition(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    const auto partitions = facts.partitions(*job.request);
    const bool closed = std::ranges::all_of(partitions, [](const Partition* each) {
      return each->state != cluster::PartitionState::up;
    });
    if (partitions.empty() || !closed) continue;
    const Partition* usual = facts.input.cluster->default_partition();
    const bool open = usual != nullptr && usual->state == cluster::PartitionState::up;
    report.add(line_of(*job.request, Opt::partition),
               fmt::format("Partition {} is not up: the job waits until an administrator opens it.",
                           partitions.front()->name),
               open ? facts.as_directive("--partition=" + usual->name) : "");
  }
}

constexpr std::array<Entry, 4> kPlacesRules = {{
    {{"B601", Level::error, "There is no such partition",
      "The finding lists the partitions and names the most similar one.", "#SBATCH --partition=gup",
      "#SBATCH --partition=gpu"},
     find_unknown_partition},
    {{"B602", Level::error, "No node has that feature",
      "--constraint names features as slurm.conf gives them to nodes.",
      "#SBATCH --constraint=nvlnk", "#SBATCH --constraint=nvlink"},
     find_unknown_feature},
    {{"B603", Level::error, "There is no such node, or not in this partition",
      "--nodelist names nodes that must belong to the partition.", "#SBATCH --nodelist=gpu99", ""},
     find_unknown_node},
    {{"B609", Level::warning, "The partition is not up",
      "A partition that is down, drained or inactive starts nothing.", "", ""},
     find_closed_partition},
}};

}  // namespace

std::span<const Entry> place_rules() {
  return kPlacesRules;
}

}  // namespace berth::lint
