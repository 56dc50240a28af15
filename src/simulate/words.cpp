#include "simulate/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/words.h"

namespace berth::simulate {

Wording::Wording(const cluster::Cluster& cluster) : cluster_(&cluster) {
  std::uint64_t least = 0;
  for (const cluster::Node& node : cluster.nodes) {
    for (const std::string& feature : node.features) features_[text::to_lower(feature)] = feature;
    for (const cluster::Gres& gres : node.gres) {
      for (const cluster::Device& device : gres.devices) {
        if (gres.name == "gpu" && !device.type.empty()) {
          types_[text::to_lower(device.type)] = device.type;
        }
        if (gres.name == "shard") shards_ = std::max(shards_, device.units);
      }
    }
    const std::uint64_t share = node.usable_memory_mb() / std::max(1U, node.cpus());
    least = least == 0 ? share : std::min(least, share);
  }
  // A job that says nothing about memory gets all of a node's where nothing else is configured:
  // true of sbatch, but traces that know no memory were recorded where it did not matter.
  const auto configured = [](const auto& what) {
    return what.def_mem_per_cpu_mb || what.def_mem_per_node_mb || what.def_mem_per_gpu_mb;
  };
  const bool has_default =
      configured(cluster.settings) || std::ranges::any_of(cluster.partitions, configured);
  if (cluster.settings.memory_is_consumed && !has_default)
    memory_per_cpu_mb_ = std::max<std::uint64_t>(1, least);
}

std::vector<std::string> Wording::words(const Ask& ask, std::uint64_t jobs) {
  std::vector<std::string> out;
  if (ask.nodes > 0) out.push_back(fmt::format("--nodes={}", ask.nodes));
  out.push_back(fmt::format("--ntasks={}", ask.tasks));
  if (ask.cpus_per_task > 1) out.push_back(fmt::format("--cpus-per-task={}", ask.cpus_per_task));
  if (ask.memory_per_node_mb > 0) {
    out.push_back(fmt::format("--mem={}M", ask.memory_per_node_mb));
  } else if (ask.memory_per_cpu_mb > 0) {
    out.push_back(fmt::format("--mem-per-cpu={}M", ask.memory_per_cpu_mb));
  } else if (memory_per_cpu_mb_ > 0) {
    out.push_back(fmt::format("--mem-per-cpu={}M", memory_per_cpu_mb_));
    Left& left = left_["nothing is said about memory, each CPU is given its share"];
    left.jobs += jobs;
    left.example = fmt::format("{} MB", memory_per_cpu_mb_);
  }
  if (!ask.partition.empty()) {
    if (cluster_->find_partition(ask.partition) != nullptr) {
      out.push_back("--partition=" + ask.partition);
    } else if (cluster_->partitions.size() > 1 ||
               ask.partition.find_first_not_of("0123456789") != std::string::npos) {
      Left& left = left_["a partition this cluster has not, the default is taken"];
      left.jobs += jobs;
      left.example = ask.partition;
    }
  }
  if (ask.devices() > 0) gpu_words(ask, jobs, out);
  return out;
}

void Wording::gpu_words(const Ask& ask, std::uint64_t jobs, std::vector<std::string>& out) {
  std::string type;
  std::string features;
  for (const std::string& model : ask.models) {
    const std::string name = text::to_lower(model);
    if (const auto known = features_.find(name); known != features_.end()) {
      features += (features.empty() ? "" : "|") + known->second;
    } else if (const auto typed = types_.find(name);
               typed != types_.end() && ask.models.size() == 1) {
      type = ":" + typed->second;
    }
  }
  if (!ask.models.empty() && type.empty() && features.empty()) {
    Left& left = left_["a model of GPU this cluster has not, any is taken"];
    left.jobs += jobs;
    left.example = ask.models.front();
  }
  if (!features.empty()) out.push_back("--constraint=" + features);
  if (ask.gpu_milli > 0) {
    if (shards_ > 0) {
      out.push_back(fmt::format("--gres=shard:{}", (ask.gpu_milli * shards_ + 999) / 1000));
      return;
    }
    Left& left = left_["a part of a GPU where there are no shards, a whole one is taken"];
    left.jobs += jobs;
    left.example = fmt::format("{}/1000", ask.gpu_milli);
  }
  const std::uint32_t count = ask.devices();
  if (ask.nodes > 0 && count % ask.nodes == 0) {
    out.push_back(fmt::format("--gres=gpu{}:{}", type, count / ask.nodes));
  } else {
    out.push_back(fmt::format("--gpus={}{}", type.empty() ? "" : type.substr(1) + ":", count));
  }
}

std::vector<std::string> Wording::notes() const {
  std::vector<std::string> out;
  for (const auto& [what, left] : left_) {
    out.push_back(
        fmt::format("{}: {} job{} ({})", what, left.jobs, left.jobs == 1 ? "" : "s", left.example));
  }
  return out;
}

}  // namespace berth::simulate
