#include "place/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "place/alternatives.h"
#include "text/tres.h"
#include "text/words.h"

namespace berth::place {
namespace {

using cluster::Cluster;
using cluster::Node;
using cluster::Partition;
using request::Request;

std::string join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known,
                         std::string_view what) {
  const std::string near = text::nearest(word, known);
  std::string hint = fmt::format("there is no {} '{}'", what, word);
  if (!near.empty()) hint += fmt::format("; did you mean '{}'?", near);
  if (!known.empty() && known.size() <= 16) hint += fmt::format(" (known: {})", join(known));
  return hint;
}

Result<std::vector<const Partition*>> find_partitions(const Cluster& cluster,
                                                      const Request& request) {
  std::vector<const Partition*> out;
  std::vector<std::string> known;
  for (const Partition& p : cluster.partitions) known.push_back(p.name);
  for (const std::string& name : request.partitions) {
    const Partition* partition = cluster.find_partition(name);
    if (partition == nullptr) {
      return std::unexpected(allocation_error(request.command, Code::invalid_partition,
                                              did_you_mean(name, known, "partition"),
                                              "invalid partition specified: " + name));
    }
    out.push_back(partition);
  }
  if (out.empty()) {
    const Partition* partition = cluster.default_partition();
    if (partition == nullptr) {
      return std::unexpected(allocation_error(
          request.command, Code::invalid_partition,
          fmt::format("no partition is the default here: add --partition=NAME (known: {})",
                      join(known)),
          "No partition specified or system default partition"));
    }
    out.push_back(partition);
  }
  return out;
}

Result<void> check_nodes(const Cluster& cluster, const Request& request) {
  for (const auto* list : {&request.nodelist, &request.exclude}) {
    for (const std::string& name : *list) {
      if (cluster.find_node(name)) continue;
      std::vector<std::string> known;
      for (const Node& node : cluster.nodes) known.push_back(node.name);
      return std::unexpected(allocation_error(request.command, Code::invalid_node_name,
                                              did_you_mean(name, known, "node")));
    }
  }
  const std::set<std::string> listed(request.nodelist.begin(), request.nodelist.end());
  for (const std::string& name : request.exclude) {
    if (!listed.contains(name)) continue;
    return std::unexpected(allocation_error(
        request.command, Code::invalid_node_name,
        fmt::format("{} is both required (--nodelist) and excluded (--exclude)", name)));
  }
  return {};
}

Result<FeatureAsk> check_features(const Cluster& cluster, const Request& request) {
  FeatureAsk ask;
  const auto parse = [&](const std::string& text, std::string_view option) -> Result<FeatureAsk> {
    auto parsed = parse_features(text);
    if (!parsed) {
      return std::unexpected(allocation_error(
          request.command, Code::invalid_feature,
          fmt::format(
              "{}={} is not a feature expression: use a&b, a|b, (a|b)&c, [a|b] or [a*1&b*2]",
              option, text)));
    }
    std::set<std::string> known;
    for (const Node& node : cluster.nodes) known.insert(node.features.begin(), node.features.end());
    for (const std::string& name : parsed->names()) {
      if (known.contains(name)) continue;
      return std::unexpected(
          allocation_error(request.command, Code::invalid_feature,
                           did_you_mean(name, {known.begin(), known.end()}, "feature")));
    }
    return std::move(*parsed);
  };
  if (request.prefer) {
    if (auto wish = parse(*request.prefer, "--prefer"); !wish) return pass(wish.error());
  }
  if (request.constraint) return parse(*request.constraint, "--constraint");
  return ask;
}

/// --gpu-mem where it is not counted.
std::string no_gpu_memory_hint(std::vector<std::string> gres_types) {
  gres_types.emplace_back(text::kGpuMemory);
  return fmt::format(
      "--gpu-mem: the memory of GPUs is not given out here; it is with GresTypes={} in slurm.conf, "
      "or on a pretended cluster whose types say it (--emulate 4x4:a100_80gb)",
      fmt::join(gres_types, ","));
}

Result<void> check_gres(const Cluster& cluster, const Request& request,
                        const request::Counts& counts) {
  std::set<std::string> typed;
  std::set<std::string> untyped;
  bool gpu = false;
  bool shared = false;
  bool mixed = false;  // --gpu-mem beside another way to share
  for (const auto* asks :
       {&counts.per_node, &counts.per_job, &counts.per_socket, &counts.per_task}) {
    for (const request::GresAsk& ask : *asks) {
      if (std::ranges::find(cluster.settings.gres_types, ask.name) ==
          cluster.settings.gres_types.end()) {
        if (ask.name == text::kGpuMemory) {
          return std::unexpected(allocation_error(request.command, Code::invalid_gres,
                                                  no_gpu_memory_hint(cluster.settings.gres_types)));
        }
        return std::unexpected(allocation_error(
            request.command, Code::invalid_gres,
            did_you_mean(ask.name, cluster.settings.gres_types, "generic resource")));
      }
      if (ask.count == 0) continue;
      (ask.type.empty() ? untyped : typed).insert(ask.name);
      gpu = gpu || ask.name == "gpu";
      shared = shared || text::is_part_of_gpu(ask.name);
      mixed = mixed || (text::is_part_of_gpu(ask.name) && ask.name != text::kGpuMemory &&
                        request.given.has(request::Opt::gpu_mem));
    }
  }
  if (std::string fault = fault_in_alternatives(counts); !fault.empty()) {
    return std::unexpected(allocation_error(request.command, Code::invalid_gres, std::move(fault)));
  }
  if (request.gres_flags.one_task_per_sharing) {
    return fail(Code::unsupported, "--gres-flags=one-task-per-sharing is not supported by berth",
                "ask for whole GPUs (--gpus-per-task=1) where tasks must not share one");
  }
  if (request.gpu_mem_min_mb && !gpu && !shared) {
    return std::unexpected(
        allocation_error(request.command, Code::invalid_gres,
                         "--gpu-mem-min says what GPUs must have, but none are asked for: add "
                         "--gpus=N or --gpus-per-node=N"));
  }
  const bool whole_nodes = request.exclusive == request::Exclusive::node;
  if (request.gpu_idle_seconds.value_or(std::nullopt) && !gpu && !shared && !whole_nodes) {
    return std::unexpected(
        allocation_error(request.command, Code::invalid_gres,
                         "--gpu-idle-timeout ends jobs that do not use their GPUs, but none are "
                         "asked for: add --gpus=N or --gpus-per-node=N, or leave it out"));
  }
  for (const std::string& name : typed) {
    if (!untyped.contains(name)) continue;
    return std::unexpected(allocation_error(
        request.command, Code::gres_typed_and_untyped,
        fmt::format("{} is asked for both with and without a type: name the type everywhere, or "
                    "nowhere",
                    name)));
  }
  if (mixed) {
    return std::unexpected(
        allocation_error(request.command, Code::invalid_gres,
                         "--gpu-mem and shard or mps are different ways to share "
                         "a GPU, which is shared by one of them: ask for one"));
  }
  if (gpu && shared) {
    if (request.given.has(request::Opt::gpu_mem)) {
      return std::unexpected(allocation_error(
          request.command, Code::invalid_gres,
          "--gpu-mem is a part of the memory of one GPU, and whole GPUs come with all of theirs: "
          "leave out the GPUs, or use --gpu-mem-min for GPUs that have so much"));
    }
    return std::unexpected(allocation_error(request.command, Code::invalid_gres,
                                            "whole GPUs and shares of GPUs (shard, mps) cannot be "
                                            "mixed in one job: ask for one of them"));
  }
  return {};
}

Result<void> check_array(const Cluster& cluster, const Request& request) {
  const std::size_t last = request.array_indices.last();
  if (last == Bits::npos || last < cluster.settings.max_array_size) return {};
  return std::unexpected(allocation_error(
      request.command, Code::invalid_array,
      fmt::format("the highest index is {}, and MaxArraySize={} allows up to {}", last,
                  cluster.settings.max_array_size, cluster.settings.max_array_size - 1)));
}

}  // namespace

Result<Names> check_names(const Cluster& cluster, const Request& request,
                          const request::Counts& counts) {
  Names names;
  if (auto ok = check_array(cluster, request); !ok) return pass(ok.error());
  auto partitions = find_partitions(cluster, request);
  if (!partitions) return pass(partitions.error());
  names.partitions = std::move(*partitions);
  if (auto ok = check_nodes(cluster, request); !ok) return pass(ok.error());
  if (auto ok = check_gres(cluster, request, counts); !ok) return pass(ok.error());
  auto features = check_features(cluster, request);
  if (!features) return pass(features.error());
  names.features = std::move(*features);
  return names;
}

}  // namespace berth::place
