#include "controller/info_tres.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/size.h"
#include "text/tres.h"

namespace berth::controller {
namespace {

void add(std::string& out, std::string part) {
  if (!out.empty()) out += ',';
  out += part;
}

/// The types of a resource on a node, in order of their first device.
std::vector<std::string> types_of(const cluster::Gres& gres) {
  std::vector<std::string> types;
  for (const cluster::Device& device : gres.devices) {
    if (std::ranges::find(types, device.type) == types.end()) types.push_back(device.type);
  }
  return types;
}

std::string name_and_type(const std::string& name, const std::string& type) {
  return type.empty() ? name : name + ":" + type;
}

/// Units of one type, and which devices they are on.
struct Held {
  std::uint64_t count = 0;
  Bits devices;
};
Held held_of(const cluster::Gres& gres, const std::vector<std::uint64_t>& units,
             const std::string& type) {
  Held held;
  for (std::size_t i = 0; i < gres.devices.size() && i < units.size(); ++i) {
    if (gres.devices[i].type != type || units[i] == 0) continue;
    held.count += units[i];
    held.devices.set(i);
  }
  return held;
}

/// "0/4,2/4": units taken of each device.
std::string shares_of(const cluster::Gres& gres, const std::vector<std::uint64_t>& units,
                      const std::string& type) {
  std::string out;
  for (std::size_t i = 0; i < gres.devices.size(); ++i) {
    if (gres.devices[i].type != type) continue;
    add(out, fmt::format("{}/{}", i < units.size() ? units[i] : 0, gres.devices[i].units));
  }
  return out;
}

std::string one_gres(const cluster::Gres& gres, const std::vector<std::uint64_t>& units,
                     const std::string& type, bool only_taken) {
  const Held held = held_of(gres, units, type);
  if (only_taken && held.count == 0) return {};
  std::string out = fmt::format("{}:{}", name_and_type(gres.name, type), held.count);
  if (gres.counted) return out;
  if (gres.shares_gpu) return out + fmt::format("({})", shares_of(gres, units, type));
  const std::string devices = held.devices.ranges();
  return out + fmt::format("(IDX:{})", devices.empty() ? "N/A" : devices);
}

}  // namespace

std::string tres_words(const TresCounts& counts, const TrackedTres& tracked) {
  std::string out;
  if (counts.cpus > 0) add(out, fmt::format("cpu={}", counts.cpus));
  if (counts.memory_mb > 0) add(out, "mem=" + text::format_mb(counts.memory_mb));
  if (counts.nodes) add(out, fmt::format("node={}", *counts.nodes));
  if (counts.billing) add(out, fmt::format("billing={}", counts.cpus));
  for (const std::string& name : tracked) {
    std::uint64_t total = 0;
    for (const request::GresAsk& ask : counts.gres) {
      if (name == "gres/" + ask.name || name == "gres/" + name_and_type(ask.name, ask.type)) {
        total += ask.count;
      }
    }
    if (total == 0) continue;
    const bool size = name.ends_with(text::kGpuMemory);
    add(out, fmt::format("{}={}", name, size ? text::format_mb(total) : std::to_string(total)));
  }
  return out;
}

TresCounts counts_of(const cluster::Cluster& cluster, const cluster::Allocation& allocation) {
  TresCounts counts;
  counts.nodes = allocation.nodes.size();
  for (const cluster::NodeShare& share : allocation.nodes) {
    counts.cpus += share.cpus;
    counts.memory_mb += share.memory_mb;
    for (const cluster::GresShare& one : share.gres) {
      const cluster::Gres* gres = share.node < cluster.nodes.size()
                                      ? cluster.nodes[share.node].find_gres(one.name)
                                      : nullptr;
      for (std::size_t i = 0; i < one.units.size(); ++i) {
        if (one.units[i] == 0) continue;
        const bool known = gres != nullptr && i < gres->devices.size();
        counts.gres.push_back({one.name, known ? gres->devices[i].type : "", one.units[i]});
      }
    }
  }
  return counts;
}

TresCounts counts_of(const cluster::Node& node) {
  TresCounts counts;
  counts.cpus = node.cpus();
  counts.memory_mb = node.memory_mb;
  counts.billing = true;
  for (const cluster::Gres& gres : node.gres) {
    if (gres.is_told()) continue;
    for (const cluster::Device& device : gres.devices) {
      counts.gres.push_back({gres.name, device.type, device.units});
    }
  }
  return counts;
}

std::string gres_words(const cluster::Node& node) {
  std::string out;
  for (const cluster::Gres& gres : node.gres) {
    if (gres.is_told()) continue;  // it is not configured
    for (const std::string& type : types_of(gres)) {
      std::uint64_t count = 0;
      Bits sockets;
      for (const cluster::Device& device : gres.devices) {
        if (device.type != type) continue;
        count += device.units;
        sockets |= device.sockets;
      }
      std::string part = fmt::format("{}:{}", name_and_type(gres.name, type), count);
      if (!sockets.empty()) part += fmt::format("(S:{})", sockets.ranges());
      add(out, std::move(part));
    }
  }
  return out;
}

std::string gres_used_words(const cluster::Node& node, const cluster::NodeUsage& usage) {
  std::string out;
  for (std::size_t i = 0; i < node.gres.size(); ++i) {
    const std::vector<std::uint64_t> units =
        i < usage.gres.size() ? usage.gres[i] : std::vector<std::uint64_t>();
    for (const std::string& type : types_of(node.gres[i])) {
      std::string part = one_gres(node.gres[i], units, type, node.gres[i].is_told());
      if (!part.empty()) add(out, std::move(part));
    }
  }
  return out;
}

std::string gres_drained_words(const cluster::Node& node) {
  std::string out;
  if (node.gpus_out.empty()) return out;
  for (const cluster::Gres& gres : node.gres) {
    if (gres.name != "gpu" || gres.counted) continue;
    std::vector<std::uint64_t> units(gres.devices.size(), 0);
    for (const auto& [gpu, why] : node.gpus_out) {
      if (gpu < units.size()) units[gpu] = gres.devices[gpu].units;
    }
    for (const std::string& type : types_of(gres)) {
      std::string part = one_gres(gres, units, type, true);
      if (!part.empty()) add(out, std::move(part));
    }
  }
  return out;
}

std::string gres_held_words(const cluster::Node& node, const cluster::NodeShare& share) {
  std::string out;
  for (const cluster::Gres& gres : node.gres) {
    const cluster::GresShare* held = share.find(gres.name);
    if (held == nullptr) continue;
    for (const std::string& type : types_of(gres)) {
      std::string part = one_gres(gres, held->units, type, true);
      if (!part.empty()) add(out, std::move(part));
    }
  }
  return out;
}

std::string gres_total_words(const cluster::Cluster& cluster,
                             const cluster::Allocation& allocation) {
  std::vector<request::GresAsk> totals;
  for (const request::GresAsk& one : counts_of(cluster, allocation).gres) {
    const auto same = std::ranges::find_if(totals, [&](const request::GresAsk& total) {
      return total.name == one.name && total.type == one.type;
    });
    if (same == totals.end()) {
      totals.push_back(one);
    } else {
      same->count += one.count;
    }
  }
  std::string out;
  for (const request::GresAsk& total : totals) {
    add(out, fmt::format("{}:{}", name_and_type(total.name, total.type), total.count));
  }
  return out;
}

}  // namespace berth::controller
