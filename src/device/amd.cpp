// AMD's GPUs from two trees of sysfs: KFD's topology (which nodes compute, what links them) and DRM
// (names, memory, near CPUs).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "device/gpus.h"
#include "device/kernel_files.h"
#include "text/cpumask.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::device {
namespace {

constexpr std::uint64_t kMostKfdNodes = 4096;
constexpr std::uint64_t kXgmi = 11;  // the type of a link, as KFD numbers them

/// "simd_count 304" lines.
using Properties = std::map<std::string, std::uint64_t, std::less<>>;

Properties properties(const std::string& path) {
  Properties out;
  const std::string text = read_text(path);
  for (const std::string_view line : text::split(text, '\n')) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const auto value = text::parse_number(text::trim(line.substr(blank + 1)));
    if (value) out.emplace(line.substr(0, blank), *value);
  }
  return out;
}

std::uint64_t value_of(const Properties& of, std::string_view key) {
  const auto at = of.find(key);
  return at == of.end() ? 0 : at->second;
}

/// Numbered directories in the order of their numbers.
std::vector<std::uint64_t> numbers_in(const std::string& path) {
  std::vector<std::uint64_t> out;
  for (const std::string& name : names_in(path)) {
    const auto number = text::parse_number(name, kMostKfdNodes);
    if (number) out.push_back(*number);
  }
  std::ranges::sort(out);
  return out;
}

/// Cards whose driver tells no product name.
std::string model_of_id(std::uint64_t device) {
  struct Card {
    std::uint64_t id;
    std::string_view name;
  };
  constexpr std::array kCards = {
      Card{0x738c, "AMD Instinct MI100"},  Card{0x740c, "AMD Instinct MI250X"},
      Card{0x7408, "AMD Instinct MI250X"}, Card{0x740f, "AMD Instinct MI210"},
      Card{0x74a0, "AMD Instinct MI300A"}, Card{0x74a1, "AMD Instinct MI300X"},
      Card{0x74a5, "AMD Instinct MI325X"},
  };
  const auto at = std::ranges::find(kCards, device, &Card::id);
  return at == kCards.end() ? std::string() : std::string(at->name);
}

struct KfdGpu {
  std::uint64_t node = 0;
  Properties properties;
};

std::vector<KfdGpu> kfd_gpus(const std::string& nodes) {
  std::vector<KfdGpu> out;
  for (const std::uint64_t node : numbers_in(nodes)) {
    KfdGpu gpu{node, properties(fmt::format("{}/{}/properties", nodes, node))};
    if (value_of(gpu.properties, "simd_count") > 0) out.push_back(std::move(gpu));
  }
  return out;
}

Gpu gpu_of(const KfdGpu& found, const Places& places, const CpuMap& cpus) {
  Gpu gpu;
  gpu.vendor = Vendor::amd;
  const std::uint64_t place = value_of(found.properties, "location_id");
  gpu.minor = static_cast<std::uint32_t>(value_of(found.properties, "drm_render_minor") & 0xfffff);
  gpu.file = fmt::format("/dev/dri/renderD{}", gpu.minor);
  gpu.bus = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", value_of(found.properties, "domain") & 0xffff,
                        place >> 8 & 0xff, place >> 3 & 0x1f, place & 7);
  const std::string device = fmt::format("{}/class/drm/renderD{}/device", places.sys, gpu.minor);
  gpu.model = text::trim(read_text(device + "/product_name"));
  if (gpu.model.empty()) gpu.model = model_of_id(value_of(found.properties, "device_id"));
  gpu.type = type_of_model(gpu.model);
  if (const std::uint64_t id = value_of(found.properties, "unique_id"); id != 0) {
    gpu.uuid = fmt::format("GPU-{:016x}", id);
  }
  const std::string memory = read_text(device + "/mem_info_vram_total");
  gpu.memory_mb = text::parse_number(text::trim(memory)).value_or(0) >> 20;
  const std::string numa = read_text(device + "/numa_node");
  if (const auto node = text::parse_number(text::trim(numa), UINT32_MAX)) {
    gpu.numa = static_cast<std::uint32_t>(*node);
  }
  const auto near = text::parse_id_set(text::trim(read_text(device + "/local_cpulist")));
  if (near) gpu.sockets = sockets_of(*near, cpus);
  return gpu;
}

/// Which KFD nodes a node is linked to by XGMI.
std::vector<std::uint64_t> linked_nodes(const std::string& node) {
  std::vector<std::uint64_t> out;
  const std::string folder = node + "/io_links";
  for (const std::uint64_t link : numbers_in(folder)) {
    const Properties of = properties(fmt::format("{}/{}/properties", folder, link));
    if (value_of(of, "type") == kXgmi) out.push_back(value_of(of, "node_to"));
  }
  return out;
}

void link_up(const std::string& nodes, const std::vector<KfdGpu>& found, std::vector<Gpu>& gpus) {
  bool any = false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto linked = linked_nodes(fmt::format("{}/{}", nodes, found[i].node));
    for (std::size_t j = 0; j < found.size(); ++j) {
      const auto count = std::ranges::count(linked, found[j].node);
      gpus[i].links.push_back(i == j ? -1 : static_cast<int>(count));
      any = any || (i != j && count > 0);
      const bool near = gpus[i].numa && gpus[i].numa == gpus[j].numa;
      gpus[i].ways.push_back(i == j ? survey::Way::board
                                    : (near ? survey::Way::numa_node : survey::Way::system));
    }
  }
  if (any) return;
  for (Gpu& gpu : gpus) gpu.links.clear();
}

}  // namespace

std::vector<Gpu> find_amd_gpus(const Places& places, const CpuMap& cpus,
                               std::vector<std::string>& notes) {
  const std::string nodes = places.sys + "/class/kfd/kfd/topology/nodes";
  const std::vector<KfdGpu> found = kfd_gpus(nodes);
  std::vector<Gpu> gpus;
  for (const KfdGpu& one : found) gpus.push_back(gpu_of(one, places, cpus));
  link_up(nodes, found, gpus);
  take_types_together(gpus, notes);
  return gpus;
}

}  // namespace berth::device
