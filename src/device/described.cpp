// Machines of topology files, and names of GPUs.
#include <algorithm>

#include "device/cpus.h"
#include "device/gpus.h"
#include "device/machine.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::device {
namespace {

/// The kernel's number of each CPU id.
std::vector<std::uint32_t> os_numbers_of(const survey::Cpus& cpus,
                                         std::vector<std::string>& notes) {
  const std::size_t cores = std::size_t{cpus.sockets} * cpus.cores;
  std::vector<std::uint32_t> usual;
  for (std::size_t core = 0; core < cores; ++core) {
    for (std::size_t thread = 0; thread < cpus.threads; ++thread) {
      usual.push_back(static_cast<std::uint32_t>(thread * cores + core));
    }
  }
  if (cpus.os.empty()) return usual;
  std::vector<std::uint32_t> out;
  constexpr std::uint64_t kMostNumber = 65535;
  for (const std::string_view word : text::split(cpus.os, ',')) {
    const auto number = text::parse_number(word, kMostNumber);
    if (number) out.push_back(static_cast<std::uint32_t>(*number));
  }
  if (out.size() == usual.size()) return out;
  notes.emplace_back("os= does not number each CPU; they are taken as Linux usually counts them");
  return usual;
}

}  // namespace

std::string_view name_of(Vendor vendor) {
  switch (vendor) {
    case Vendor::amd:
      return "AMD";
    case Vendor::intel:
      return "Intel";
    case Vendor::nvidia:
      break;
  }
  return "NVIDIA";
}

std::string Gpu::long_type() const {
  std::string out = text::to_lower(model);
  std::ranges::replace(out, ' ', '_');
  return profile.empty() ? out : out + '_' + profile;
}

bool Gpu::is_called(std::string_view name) const {
  const std::string lower = text::to_lower(name);
  if (lower.empty() || lower == type) return !lower.empty();
  const std::string whole = long_type();
  const std::size_t at = whole.rfind(lower);
  if (at == std::string::npos) return false;
  // The name of a whole GPU is not that of its parts: it must reach into the profile.
  return profile.empty() || at + lower.size() > whole.size() - profile.size();
}

Machine described(const survey::Survey& survey) {
  Machine machine;
  const survey::Cpus shape = survey.cpus.value_or(survey::Cpus{});
  CpuMap cpus;
  cpus.sockets = machine.sockets = shape.sockets;
  cpus.cores_per_socket = machine.cores_per_socket = shape.cores;
  cpus.threads_per_core = machine.threads_per_core = shape.threads;
  machine.memory_mb = shape.memory_mb;
  cpus.os_numbers = machine.os_numbers = os_numbers_of(shape, machine.notes);
  const Places nowhere{"/nonexistent", "/nonexistent", "/nonexistent", "/nonexistent"};
  machine.gpus = gpus_of_survey(survey, nowhere, cpus, machine.notes);
  machine.told = survey;
  return machine;
}

survey::Survey recorded(const Machine& machine) {
  survey::Survey out = machine.told.value_or(survey::Survey{});
  survey::Cpus cpus;
  cpus.sockets = machine.sockets;
  cpus.cores = machine.cores_per_socket;
  cpus.threads = machine.threads_per_core;
  cpus.memory_mb = machine.memory_mb;
  std::vector<std::string> none;
  if (machine.os_numbers != os_numbers_of(cpus, none)) {
    for (const std::uint32_t number : machine.os_numbers) {
      cpus.os += (cpus.os.empty() ? "" : ",") + std::to_string(number);
    }
  }
  out.cpus = std::move(cpus);
  return out;
}

}  // namespace berth::device
