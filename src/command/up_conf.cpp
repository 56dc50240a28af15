#include "command/up_conf.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "text/hostlist.h"
#include "text/size.h"
#include "text/tres.h"

namespace berth::command {
namespace {

/// "gpu:a100:2,gpu:v100:2,shard:8"
std::string gres_counts(const cluster::Node& node) {
  std::string out;
  const auto add = [&](const std::string& item) { out += (out.empty() ? "" : ",") + item; };
  for (const cluster::Gres& gres : node.gres) {
    if (gres.is_told()) continue;
    if (gres.shares_gpu || gres.counted) {
      add(fmt::format("{}:{}", gres.name, gres.total()));
      continue;
    }
    std::vector<std::string> types;
    for (const cluster::Device& device : gres.devices) {
      if (std::ranges::find(types, device.type) == types.end()) types.push_back(device.type);
    }
    for (const std::string& type : types) {
      add(type.empty() ? fmt::format("{}:{}", gres.name, gres.total())
                       : fmt::format("{}:{}:{}", gres.name, type, gres.total_of(type)));
    }
  }
  return out;
}

std::string shape(const cluster::Node& node) {
  std::string out =
      fmt::format("Sockets={} CoresPerSocket={} ThreadsPerCore={} RealMemory={}", node.sockets,
                  node.cores_per_socket, node.threads_per_core, node.memory_mb);
  if (node.tmp_disk_mb > 0) out += fmt::format(" TmpDisk={}", node.tmp_disk_mb);
  if (const std::string gres = gres_counts(node); !gres.empty()) out += " Gres=" + gres;
  if (!node.features.empty()) out += fmt::format(" Feature={}", fmt::join(node.features, ","));
  return out;
}

/// The cores of a set of sockets; "" for all of them.
std::string cores_of(const cluster::Node& node, const Bits& sockets) {
  Bits cores;
  for (std::uint32_t s = 0; s < node.sockets; ++s) {
    if (!sockets.test(s)) continue;
    for (std::uint32_t c = 0; c < node.cores_per_socket; ++c) {
      cores.set(std::size_t{s} * node.cores_per_socket + c);
    }
  }
  return cores.ranges();
}

/// Lines of gres.conf without the names of the nodes.
std::vector<std::string> device_lines(const cluster::Node& node) {
  std::vector<std::string> out;
  for (const cluster::Gres& gres : node.gres) {
    if (gres.is_told()) continue;
    if (gres.shares_gpu || gres.counted) {
      out.push_back(fmt::format("Name={} Count={}", gres.name, gres.total()));
      continue;
    }
    for (const cluster::Device& device : gres.devices) {
      std::string line = "Name=" + gres.name;
      if (!device.type.empty()) line += " Type=" + device.type;
      // Several files are one device: a part of a GPU (MIG).
      const bool several = device.file.find(',') != std::string::npos;
      line += (several ? " MultipleFiles=" : " File=") + device.file;
      if (const std::string cores = cores_of(node, device.sockets); !cores.empty()) {
        line += " Cores=" + cores;
      }
      if (!device.links.empty()) line += fmt::format(" Links={}", fmt::join(device.links, ","));
      out.push_back(std::move(line));
    }
  }
  return out;
}

struct Kind {
  std::string names;  // host list
  std::size_t count = 0;
  const cluster::Node* node = nullptr;
};

/// Nodes of the same shape together, in the order of their first ones.
std::vector<Kind> kinds_of(const cluster::Cluster& cluster) {
  std::vector<std::pair<const cluster::Node*, std::vector<std::string>>> found;
  std::map<std::string, std::size_t> at;
  for (const cluster::Node& node : cluster.nodes) {
    const std::string key = fmt::format("{}\n{}", shape(node), fmt::join(device_lines(node), "\n"));
    const auto [place, fresh] = at.emplace(key, found.size());
    if (fresh) found.push_back({&node, {}});
    found[place->second].second.push_back(node.name);
  }
  std::vector<Kind> out;
  for (const auto& [node, names] : found) {
    out.push_back({text::compress_hostlist(names), names.size(), node});
  }
  return out;
}

std::string memory_in_words(std::uint64_t mb) {
  if (mb < 1024 || mb % 1024 == 0) return text::format_mb(mb);
  return fmt::format("{:.1f}G", static_cast<double>(mb) / 1024);
}

std::string gpus_in_words(const cluster::Node& node) {
  const cluster::Gres* gpus = node.find_gres("gpu");
  if (gpus == nullptr || gpus->devices.empty()) return {};
  std::vector<std::pair<std::string, int>> types;
  for (const cluster::Device& device : gpus->devices) {
    const auto at = std::ranges::find(types, device.type, &std::pair<std::string, int>::first);
    if (at == types.end()) {
      types.emplace_back(device.type, 1);
    } else {
      ++at->second;
    }
  }
  std::string out;
  for (const auto& [type, count] : types) {
    out += fmt::format(", {} {}", count, type.empty() ? (count == 1 ? "GPU" : "GPUs") : type);
  }
  return out;
}

}  // namespace

cluster::Cluster cluster_of(const device::Machine& machine) {
  cluster::Node node;
  node.name = machine.host;
  node.sockets = machine.sockets;
  node.cores_per_socket = machine.cores_per_socket;
  node.threads_per_core = machine.threads_per_core;
  node.memory_mb = machine.memory_mb;
  node.tmp_disk_mb = machine.tmp_disk_mb;
  if (!machine.gpus.empty()) {
    cluster::Gres gpus;
    gpus.name = "gpu";
    for (const device::Gpu& found : machine.gpus) {
      cluster::Device device;
      device.type = found.type;
      device.file = found.file;
      for (const std::string& file : found.more_files) device.file += ',' + file;
      device.sockets = found.sockets;
      device.links = found.links;
      gpus.devices.push_back(std::move(device));
    }
    node.gres.push_back(std::move(gpus));
  }
  cluster::Cluster cluster;
  cluster.name = "local";
  cluster.settings.def_mem_per_cpu_mb =
      std::max<std::uint64_t>(1, node.memory_mb / std::max(1U, node.cpus()));
  if (!node.gres.empty()) {
    cluster.settings.gres_types = {"gpu"};
    const auto known = [](const device::Gpu& gpu) { return gpu.memory_mb > 0; };
    if (std::ranges::any_of(machine.gpus, known)) {
      cluster.settings.gres_types.emplace_back(text::kGpuMemory);
    }
  }
  cluster.nodes.push_back(std::move(node));
  cluster.index_nodes();
  return cluster;
}

ConfTexts write_conf(const cluster::Cluster& cluster, std::string_view made_from,
                     std::string_view user, std::string_view host, bool emulated) {
  ConfTexts out;
  out.slurm = fmt::format(
      "{}{}{}. It is written again at each start;\n"
      "# a file without these lines is left as it is.\n"
      "ClusterName={}\nSlurmctldHost={}\nSlurmUser={}\nSlurmdUser={}\n"
      "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory,BERTH_KEEP_GPUS_WHOLE\n"
      "TaskPlugin=task/affinity\nProctrackType=proctrack/linuxproc\n"
      "SchedulerType=sched/backfill\nReturnToService=2\nMaxJobCount=200000\n",
      kMadeByUp, made_from.empty() ? "" : " ", made_from, cluster.name, host, user, user);
  if (emulated) out.slurm += "SlurmdParameters=config_overrides\n";
  if (!cluster.settings.gres_types.empty()) {
    out.slurm += fmt::format("GresTypes={}\n", fmt::join(cluster.settings.gres_types, ","));
  }
  if (cluster.settings.def_mem_per_cpu_mb) {
    out.slurm += fmt::format("DefMemPerCPU={}\n", *cluster.settings.def_mem_per_cpu_mb);
  }
  for (const Kind& kind : kinds_of(cluster)) {
    out.slurm += fmt::format("NodeName={} {} State=UNKNOWN\n", kind.names, shape(*kind.node));
    for (const std::string& line : device_lines(*kind.node)) {
      out.gres += fmt::format("NodeName={} {}\n", kind.names, line);
    }
  }
  out.slurm += "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
  if (!out.gres.empty()) out.gres = fmt::format("{}\n{}", kMadeByUp, out.gres);
  return out;
}

std::vector<std::string> describe_nodes(const cluster::Cluster& cluster) {
  std::vector<std::string> out;
  for (const Kind& kind : kinds_of(cluster)) {
    const cluster::Node& node = *kind.node;
    out.push_back(fmt::format("{} node{} {}: {} CPU{}, {}{}{}", kind.count,
                              kind.count == 1 ? "" : "s", kind.names, node.cpus(),
                              node.cpus() == 1 ? "" : "s", memory_in_words(node.memory_mb),
                              gpus_in_words(node), kind.count == 1 ? "" : " each"));
  }
  return out;
}

}  // namespace berth::command
