#include "device/detect.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "device/gpus.h"
#include "device/helper.h"

namespace berth::device {
namespace {

bool nvml_is_likely(const Places& places) {
  const char* named = std::getenv("BERTH_NVML_LIBRARY");
  if (named != nullptr && *named != '\0') return true;
  return ::access((places.dev + "/nvidiactl").c_str(), F_OK) == 0;
}

/// nullopt: it could not be asked, and the notes say why where that is of interest.
std::optional<survey::Survey> ask_nvml(const Search& search, std::vector<std::string>& notes) {
  if (!nvml_is_likely(search.places)) return std::nullopt;
  if (search.nvml_helper.empty()) {
    notes.emplace_back(
        "berth-nvml is not beside this program, so that NVIDIA's library is not asked: memory, "
        "links and MIG parts of GPUs are not known");
    return std::nullopt;
  }
  auto text = output_of({search.nvml_helper, "list"}, survey::kMostBytes, std::chrono::seconds(30));
  if (!text) {
    notes.push_back(fmt::format("NVIDIA's library told nothing: {}", text.error().what()));
    return std::nullopt;
  }
  auto found = survey::read_survey(*text);
  if (found) return std::move(*found);
  notes.push_back(fmt::format("{}: {}", search.nvml_helper, found.error().what()));
  return std::nullopt;
}

}  // namespace

std::string Search::helper_beside_this_program() {
  std::string self(PATH_MAX, '\0');
  const ssize_t n = ::readlink("/proc/self/exe", self.data(), self.size());
  self.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  std::string helper = fmt::format("{}/berth-nvml", self.substr(0, self.rfind('/')));
  return ::access(helper.c_str(), X_OK) == 0 ? helper : std::string();
}

void detect_gpus(const Search& search, const CpuMap& cpus, Machine& machine) {
  const Detect how = search.detect;
  const bool all = how == Detect::full;
  std::vector<Gpu>& gpus = machine.gpus;
  if (all || how == Detect::nvml) {
    machine.told = ask_nvml(search, machine.notes);
    if (machine.told) gpus = gpus_of_survey(*machine.told, search.places, cpus, machine.notes);
    // Where it tells of GPUs that jobs do not get, its word counts.
    if (machine.told && !machine.told->gpus.empty()) return;
  }
  if (all || how == Detect::nvidia) gpus = find_gpus(search.places, cpus, machine.notes);
  if (gpus.empty() && (all || how == Detect::rsmi)) {
    gpus = find_amd_gpus(search.places, cpus, machine.notes);
  }
  if (gpus.empty() && (all || how == Detect::oneapi)) {
    gpus = find_intel_gpus(search.places, cpus, machine.notes);
  }
}

}  // namespace berth::device
