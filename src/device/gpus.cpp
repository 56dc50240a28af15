// /dev/nvidia<minor> says which GPUs there are; /proc/driver/nvidia/gpus/<bus>/information which
// model and minor sit on which bus; the bus's local_cpulist which sockets are near.
#include "device/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "device/kernel_files.h"
#include "text/cpumask.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::device {
namespace {

constexpr std::size_t kMostGpus = 1024;

/// "Model: \t\t NVIDIA A100" → the value of that name.
std::string field(std::string_view text, std::string_view name) {
  for (const std::string_view line : text::split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || text::trim(line.substr(0, colon)) != name) continue;
    return std::string(text::trim(line.substr(colon + 1)));
  }
  return {};
}

struct Known {
  std::string model;
  std::string bus;
};

/// What the driver says, by minor number.
std::map<std::uint64_t, Known> driver_knows(const Places& places) {
  std::map<std::uint64_t, Known> known;
  const std::string folder = places.proc + "/driver/nvidia/gpus";
  for (const std::string& bus : names_in(folder)) {
    const std::string text = read_text(fmt::format("{}/{}/information", folder, bus));
    const auto minor = text::parse_number(field(text, "Device Minor"), kMostGpus);
    if (minor) known[*minor] = {field(text, "Model"), bus};
  }
  return known;
}

}  // namespace

Bits sockets_near(const Places& places, const std::string& bus, const CpuMap& cpus) {
  const std::string list =
      read_text(fmt::format("{}/bus/pci/devices/{}/local_cpulist", places.sys, bus));
  const auto near = text::parse_id_set(text::trim(list));
  return near ? sockets_of(*near, cpus) : Bits();
}

std::string type_of_model(std::string_view model) {
  // Words that name the maker, the form or the memory, not the GPU.
  constexpr std::array<std::string_view, 13> kMaker = {
      "nvidia",   "tesla",  "geforce", "quadro", "graphics", "device", "amd",
      "instinct", "radeon", "intel",   "center", "data",     "gpu"};
  constexpr std::array<std::string_view, 7> kFamily = {"rtx", "gtx",  "titan", "pro",
                                                       "max", "flex", "arc"};
  std::string type;
  for (const std::string_view raw : text::split(model, ' ')) {
    const std::string word = text::to_lower(raw.substr(0, raw.find('-')));
    if (word.empty() || std::ranges::find(kMaker, word) != kMaker.end()) continue;
    if (!type.empty()) type += '_';
    for (const char c : word) {
      if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) type += c;
    }
    const bool more = std::ranges::find(kFamily, word) != kFamily.end();
    if (!more) break;
  }
  while (type.ends_with('_')) type.pop_back();
  return type;
}

std::vector<Gpu> find_gpus(const Places& places, const CpuMap& cpus,
                           std::vector<std::string>& notes) {
  std::vector<Gpu> gpus;
  const auto known = driver_knows(places);
  for (const std::string& name : names_in(places.dev)) {
    if (!name.starts_with("nvidia") || name.size() == 6) continue;
    const auto minor = text::parse_number(std::string_view(name).substr(6), kMostGpus);
    if (!minor) continue;  // nvidiactl, nvidia-uvm, …
    Gpu gpu;
    gpu.minor = static_cast<std::uint32_t>(*minor);
    gpu.file = fmt::format("/dev/{}", name);
    if (const auto at = known.find(*minor); at != known.end()) {
      gpu.model = at->second.model;
      gpu.type = type_of_model(gpu.model);
      gpu.bus = at->second.bus;
      gpu.sockets = sockets_near(places, gpu.bus, cpus);
    }
    gpus.push_back(std::move(gpu));
  }
  std::ranges::sort(gpus, {}, &Gpu::minor);
  take_types_together(gpus, notes);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].minor == i) continue;
    notes.push_back(fmt::format("{} is GPU number {} for jobs", gpus[i].file, i));
  }
  return gpus;
}

void take_types_together(std::vector<Gpu>& gpus, std::vector<std::string>& notes) {
  const auto nameless = std::ranges::count_if(gpus, [](const Gpu& g) { return g.type.empty(); });
  if (nameless > 0) {
    // Slurm wants a type for all GPUs of a node or for none.
    for (Gpu& gpu : gpus) gpu.type.clear();
    notes.push_back(fmt::format("the driver does not name {} of {} GPUs; none gets a type",
                                nameless, gpus.size()));
  }
}

}  // namespace berth::device
