#include "command/hardware_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace berth::command {
namespace {

using device::Gpu;
using device::Machine;
using survey::Way;

std::string plural(std::uint64_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string gigabytes(std::uint64_t mb) {
  return fmt::format("{}G", (mb + 512) / 1024);
}

/// The abbreviations that nvidia-smi has made known.
struct WayWord {
  Way way;
  std::string_view word;
  std::string_view meaning;
};
constexpr std::array kWayWords = {
    WayWord{Way::board, "MIG", "parts of one GPU, or GPUs on one board"},
    WayWord{Way::pcie_switch, "PIX", "one PCIe switch"},
    WayWord{Way::pcie_switches, "PXB", "several PCIe switches"},
    WayWord{Way::host_bridge, "PHB", "a PCIe host bridge"},
    WayWord{Way::numa_node, "NODE", "between host bridges of one NUMA node"},
    WayWord{Way::system, "SYS", "between NUMA nodes or sockets"},
};

int links_to(const Gpu& gpu, std::size_t other) {
  return other < gpu.links.size() ? gpu.links[other] : 0;
}

std::string_view link_word(const Gpu& gpu) {
  return gpu.vendor == device::Vendor::amd ? "XG" : "NV";
}

std::string between(const Machine& machine, std::size_t i, std::size_t j) {
  const Gpu& gpu = machine.gpus[i];
  if (i == j) return "-";
  if (links_to(gpu, j) > 0) return fmt::format("{}{}", link_word(gpu), links_to(gpu, j));
  if (j >= gpu.ways.size() || !gpu.ways[j]) return "?";
  return std::string(std::ranges::find(kWayWords, *gpu.ways[j], &WayWord::way)->word);
}

std::string gpu_line(const Gpu& gpu, std::size_t index) {
  std::string out = fmt::format("  GPU {:<3} {:<14}", index, gpu.type.empty() ? "?" : gpu.type);
  out += fmt::format(" {:>5}", gpu.memory_mb == 0 ? "" : gigabytes(gpu.memory_mb));
  out += fmt::format("  {:<13} {}", gpu.bus, gpu.file);
  if (gpu.numa) out += fmt::format("  NUMA node {}", *gpu.numa);
  return out + '\n';
}

std::string gpus_near(const Machine& machine, const Bits& sockets) {
  std::string out;
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    if (machine.gpus[i].sockets == sockets) out += gpu_line(machine.gpus[i], i);
  }
  return out;
}

std::string table(const Machine& machine) {
  const std::size_t count = machine.gpus.size();
  const auto known = [&](const Gpu& gpu) { return !gpu.links.empty() || !gpu.ways.empty(); };
  if (count < 2 || std::ranges::none_of(machine.gpus, known)) return {};
  std::string out = "\nbetween GPUs\n      ";
  for (std::size_t j = 0; j < count; ++j) out += fmt::format("{:>6}", j);
  out += '\n';
  std::vector<std::string> used;
  for (std::size_t i = 0; i < count; ++i) {
    out += fmt::format("{:>6}", i);
    for (std::size_t j = 0; j < count; ++j) {
      std::string word = between(machine, i, j);
      out += fmt::format("{:>6}", word);
      if (std::ranges::find(used, word) == used.end()) used.push_back(std::move(word));
    }
    out += '\n';
  }
  const auto has = [&](std::string_view start) {
    return std::ranges::any_of(used, [&](const std::string& w) { return w.starts_with(start); });
  };
  if (has("NV")) out += "  NVn   n NVLinks\n";
  if (has("XG")) out += "  XGn   n XGMI links\n";
  for (const WayWord& way : kWayWords) {
    if (has(way.word)) out += fmt::format("  {:<5} {}\n", way.word, way.meaning);
  }
  if (has("?")) out += "  ?     not known\n";
  return out;
}

}  // namespace

std::string hardware_picture(const Machine& machine) {
  const std::uint32_t cores = machine.sockets * machine.cores_per_socket;
  std::string out = fmt::format("{}{}{}, {}, {}, {} of memory, {}{}\n", machine.host,
                                machine.host.empty() ? "" : ": ", plural(machine.sockets, "socket"),
                                plural(cores, "core"), plural(machine.cpus(), "CPU"),
                                gigabytes(machine.memory_mb), plural(machine.gpus.size(), "GPU"),
                                machine.told && !machine.told->driver.empty()
                                    ? fmt::format(" (driver {})", machine.told->driver)
                                    : "");
  Bits all;
  for (std::uint32_t socket = 0; socket < machine.sockets; ++socket) {
    all.set(socket);
    const std::uint32_t first = socket * machine.cores_per_socket;
    out += fmt::format("\nsocket {}: cores {}\n", socket,
                       Bits::range(first, first + machine.cores_per_socket - 1).ranges());
    out += gpus_near(machine, Bits::of({socket}));
  }
  if (machine.sockets > 1) {
    if (const std::string lines = gpus_near(machine, all); !lines.empty()) {
      out += "\nnear all sockets\n" + lines;
    }
  }
  if (const std::string lines = gpus_near(machine, {}); !lines.empty()) {
    out += "\nnear no socket that is known\n" + lines;
  }
  out += table(machine);
  for (const std::string& note : machine.notes) out += fmt::format("\nnote: {}\n", note);
  return out;
}

std::string hardware_json(const Machine& machine) {
  using Json = nlohmann::ordered_json;
  Json gpus = Json::array();
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    const Gpu& gpu = machine.gpus[i];
    Json one = {{"index", i},         {"vendor", device::name_of(gpu.vendor)},
                {"type", gpu.type},   {"model", gpu.model},
                {"uuid", gpu.uuid},   {"bus", gpu.bus},
                {"minor", gpu.minor}, {"memory_mb", gpu.memory_mb}};
    one["files"] = Json::array({gpu.file});
    for (const std::string& file : gpu.more_files) one["files"].push_back(file);
    if (!gpu.profile.empty()) one["profile"] = gpu.profile;
    if (gpu.numa) one["numa_node"] = *gpu.numa;
    one["sockets"] = gpu.sockets.members();
    one["links"] = gpu.links;
    one["ways"] = Json::array();
    for (const auto& way : gpu.ways) {
      one["ways"].push_back(way ? Json(std::string(survey::word_of(*way))) : Json());
    }
    gpus.push_back(std::move(one));
  }
  const Json json = {{"host", machine.host},
                     {"sockets", machine.sockets},
                     {"cores_per_socket", machine.cores_per_socket},
                     {"threads_per_core", machine.threads_per_core},
                     {"memory_mb", machine.memory_mb},
                     {"driver", machine.told ? machine.told->driver : ""},
                     {"gpus", std::move(gpus)},
                     {"notes", machine.notes}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace berth::command
