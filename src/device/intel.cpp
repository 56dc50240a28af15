// Intel's cards from DRM's tree of sysfs.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "device/gpus.h"
#include "device/kernel_files.h"
#include "text/cpumask.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::device {
namespace {

/// Where a GPU that is part of the processor always sits.
constexpr std::string_view kBuiltIn = "0000:00:02.0";

std::string card_of_id(std::string_view id) {
  struct Card {
    std::string_view id;
    std::string_view name;
  };
  constexpr std::array kCards = {
      Card{"0x0bd5", "Intel Data Center GPU Max 1550"},
      Card{"0x0bda", "Intel Data Center GPU Max 1100"},
      Card{"0x56c0", "Intel Data Center GPU Flex 170"},
      Card{"0x56c1", "Intel Data Center GPU Flex 140"},
      Card{"0x56a0", "Intel Arc A770"},
      Card{"0xe20b", "Intel Arc B580"},
  };
  const auto at = std::ranges::find(kCards, id, &Card::id);
  return at == kCards.end() ? std::string() : std::string(at->name);
}

std::string first_line(const std::string& path) {
  return std::string(text::trim(read_text(path)));
}

/// PCI_SLOT_NAME of the device's uevent.
std::string slot_of(const std::string& device) {
  constexpr std::string_view kKey = "PCI_SLOT_NAME=";
  const std::string text = read_text(device + "/uevent");
  for (const std::string_view line : text::split(text, '\n')) {
    if (line.starts_with(kKey)) return std::string(text::trim(line.substr(kKey.size())));
  }
  return {};
}

/// The number of a name like "card0" or "renderD128".
std::optional<std::uint32_t> number_after(std::string_view name, std::string_view word) {
  if (!name.starts_with(word)) return std::nullopt;
  const auto number = text::parse_number(name.substr(word.size()), 1048575);
  if (!number) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

std::optional<std::uint32_t> render_minor(const std::string& device) {
  for (const std::string& name : names_in(device + "/drm")) {
    if (const auto minor = number_after(name, "renderD")) return minor;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Gpu> find_intel_gpus(const Places& places, const CpuMap& cpus,
                                 std::vector<std::string>& notes) {
  std::vector<Gpu> gpus;
  const std::string folder = places.sys + "/class/drm";
  for (const std::string& name : names_in(folder)) {
    if (!number_after(name, "card")) continue;  // also "card0-DP-1", a plug of it
    const std::string card = fmt::format("{}/{}", folder, name);
    const std::string device = card + "/device";
    if (first_line(device + "/vendor") != "0x8086") continue;
    Gpu gpu;
    gpu.vendor = Vendor::intel;
    gpu.bus = slot_of(device);
    const auto minor = render_minor(device);
    if (gpu.bus == kBuiltIn || !minor) continue;
    gpu.minor = *minor;
    gpu.file = fmt::format("/dev/dri/renderD{}", gpu.minor);
    gpu.model = card_of_id(first_line(device + "/device"));
    gpu.type = type_of_model(gpu.model);
    gpu.memory_mb = text::parse_number(first_line(card + "/lmem_total_bytes")).value_or(0) >> 20;
    if (const auto node = text::parse_number(first_line(device + "/numa_node"), UINT32_MAX)) {
      gpu.numa = static_cast<std::uint32_t>(*node);
    }
    const auto near = text::parse_id_set(first_line(device + "/local_cpulist"));
    if (near) gpu.sockets = sockets_of(*near, cpus);
    gpus.push_back(std::move(gpu));
  }
  std::ranges::sort(gpus, {}, &Gpu::bus);
  take_types_together(gpus, notes);
  return gpus;
}

}  // namespace berth::device
