// From what NVIDIA's library told to GPUs that jobs can be given.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "device/gpus.h"
#include "device/kernel_files.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::device {
namespace {

using survey::FoundGpu;
using survey::FoundInstance;

/// "gpu0/gi1/ci0/access 12": which file of /dev/nvidia-caps opens which part.
std::map<std::string, std::uint64_t> capability_minors(const Places& places) {
  std::map<std::string, std::uint64_t> out;
  const std::string text = read_text(places.proc + "/driver/nvidia-caps/mig-minors");
  for (const std::string_view line : text::split(text, '\n')) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const auto minor = text::parse_number(text::trim(line.substr(blank + 1)), 1048575);
    if (minor) out[std::string(line.substr(0, blank))] = *minor;
  }
  return out;
}

Gpu whole(const FoundGpu& found, const Places& places, const CpuMap& cpus) {
  Gpu gpu;
  gpu.minor = found.minor.value_or(found.index);
  gpu.file = fmt::format("/dev/nvidia{}", gpu.minor);
  gpu.model = found.model;
  gpu.type = type_of_model(found.model);
  gpu.bus = found.bus;
  gpu.uuid = found.uuid;
  gpu.memory_mb = found.memory_mb;
  gpu.numa = found.numa;
  gpu.sockets = sockets_of(found.cpus, cpus);
  if (gpu.sockets.empty() && !gpu.bus.empty()) gpu.sockets = sockets_near(places, gpu.bus, cpus);
  return gpu;
}

Gpu part(const Gpu& of, const FoundInstance& instance,
         const std::map<std::string, std::uint64_t>& minors) {
  Gpu gpu = of;
  gpu.uuid = instance.uuid;
  gpu.profile = instance.profile;
  gpu.memory_mb = instance.memory_mb;
  if (!gpu.type.empty() && !gpu.profile.empty()) gpu.type += '_' + gpu.profile;
  const std::string path = fmt::format("gpu{}/gi{}", of.minor, instance.gpu_instance);
  for (const std::string& name :
       {path + "/access", fmt::format("{}/ci{}/access", path, instance.compute_instance)}) {
    const auto at = minors.find(name);
    if (at == minors.end()) continue;
    gpu.more_files.push_back(fmt::format("/dev/nvidia-caps/nvidia-cap{}", at->second));
  }
  return gpu;
}

/// Links between two whole GPUs: their own, or those that both have to the switch.
int links_between(const survey::Survey& found, std::uint32_t from, std::uint32_t to) {
  int direct = 0;
  std::map<std::uint32_t, int> to_switch;
  for (const survey::FoundLinks& links : found.links) {
    if (!links.to) to_switch[links.from] = static_cast<int>(links.count);
    if (links.from == from && links.to == to) direct = static_cast<int>(links.count);
  }
  return direct + std::min(to_switch[from], to_switch[to]);
}

std::optional<survey::Way> way_between(const survey::Survey& found, std::uint32_t a,
                                       std::uint32_t b) {
  for (const survey::FoundWay& way : found.ways) {
    if (way.from == std::min(a, b) && way.to == std::max(a, b)) return way.way;
  }
  return std::nullopt;
}

/// `indices`: which found GPU each of them is, or is a part of.
void add_ways(const survey::Survey& found, const std::vector<std::uint32_t>& indices,
              std::vector<Gpu>& gpus) {
  const bool linked = !found.links.empty();
  const bool ways = !found.ways.empty();
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = 0; j < gpus.size(); ++j) {
      const bool same = indices[i] == indices[j];
      if (linked) {
        // Parts do not reach other GPUs over links.
        const bool none = same || !gpus[i].profile.empty() || !gpus[j].profile.empty();
        const int count = none ? 0 : links_between(found, indices[i], indices[j]);
        gpus[i].links.push_back(i == j ? -1 : count);
      }
      if (!ways) continue;
      gpus[i].ways.push_back(same ? survey::Way::board
                                  : way_between(found, indices[i], indices[j]));
    }
  }
}

}  // namespace

std::vector<Gpu> gpus_of_survey(const survey::Survey& found, const Places& places,
                                const CpuMap& cpus, std::vector<std::string>& notes) {
  std::vector<Gpu> gpus;
  std::vector<std::uint32_t> indices;
  const auto minors = capability_minors(places);
  for (const FoundGpu& one : found.gpus) {
    const Gpu gpu = whole(one, places, cpus);
    std::size_t parts = 0;
    for (const FoundInstance& instance : found.instances) {
      if (instance.gpu != one.index) continue;
      gpus.push_back(part(gpu, instance, minors));
      indices.push_back(one.index);
      ++parts;
    }
    if (parts > 0) continue;
    if (one.mig) {
      notes.push_back(fmt::format("{} is in MIG mode without parts: jobs do not get it", gpu.file));
      continue;
    }
    gpus.push_back(gpu);
    indices.push_back(one.index);
  }
  for (const survey::Lost& lost : found.lost) {
    notes.push_back(fmt::format("GPU {} does not answer: {}", lost.index, lost.why));
  }
  add_ways(found, indices, gpus);
  take_types_together(gpus, notes);
  return gpus;
}

}  // namespace berth::device
