// What task_use.h promises.
#include "step/task_use.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "step/container.h"
#include "step/spool.h"
#include "wire/step_figures.h"

namespace berth::step {
namespace {

/// A step that makes processes without end is not followed for ever.
constexpr std::size_t kMostProcesses = 1 << 16;

void append_numbers(std::string_view text, std::vector<pid_t>& out) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    pid_t pid = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + end, pid);
    if (error == std::errc() && pid > 0) out.push_back(pid);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Whether the kernel lists the children of a process.
bool lists_children() {
  const std::string self = std::to_string(::getpid());
  static const bool lists =
      ::access(("/proc/" + self + "/task/" + self + "/children").c_str(), R_OK) == 0;
  return lists;
}

/// The children of all threads of a process.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> found;
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  DIR* threads = ::opendir(folder.c_str());
  if (threads == nullptr) return found;
  while (const dirent* entry = ::readdir(threads)) {
    if (entry->d_name[0] == '.') continue;
    const auto text = read_file(folder + '/' + entry->d_name + "/children");
    if (text) append_numbers(*text, found);
  }
  ::closedir(threads);
  return found;
}

std::vector<pid_t> family_of(pid_t leader) {
  std::vector<pid_t> found{leader};
  if (!lists_children()) {
    const std::vector<pid_t> below = descendants_of(leader);
    found.insert(found.end(), below.begin(), below.end());
    return found;
  }
  std::set<pid_t> seen{leader};  // numbers may be used again while we look
  for (std::size_t i = 0; i < found.size() && found.size() < kMostProcesses; ++i) {
    for (const pid_t child : children_of(found[i])) {
      if (seen.insert(child).second) found.push_back(child);
    }
  }
  return found;
}

}  // namespace

std::vector<std::vector<pid_t>> families(std::span<const pid_t> leaders) {
  std::vector<std::vector<pid_t>> found;
  for (const pid_t leader : leaders) {
    found.push_back(leader > 0 ? family_of(leader) : std::vector<pid_t>());
  }
  return found;
}

TaskUse use_of_all(std::span<const pid_t> processes, const KernelUnits& units, CpuClocks& clocks) {
  TaskUse sum;
  double weighted = 0;
  double weights = 0;
  for (const pid_t pid : processes) {
    const auto use = use_of(pid, units);
    if (!use) continue;
    sum.cpu += use->cpu;
    sum.pages += use->pages;
    sum.memory += use->memory;
    sum.memory_most = std::max(sum.memory_most, use->memory_most);
    sum.address_space += use->address_space;
    sum.address_space_most = std::max(sum.address_space_most, use->address_space_most);
    if (const auto bytes = bytes_of(pid)) {
      sum.bytes_known = true;
      sum.bytes.read += bytes->read;
      sum.bytes.written += bytes->written;
    }
    if (const auto khz = clocks.khz(use->processor)) {
      const double weight = static_cast<double>(use->cpu) + 1;  // none has used none at all
      weighted += weight * static_cast<double>(*khz);
      weights += weight;
    }
  }
  sum.memory_most = std::max(sum.memory_most, sum.memory);
  sum.address_space_most = std::max(sum.address_space_most, sum.address_space);
  if (weights > 0) sum.khz = static_cast<std::uint64_t>(weighted / weights);
  return sum;
}

void note_task(wire::StepFigures& figures, std::uint32_t rank, const TaskUse& use, bool runs) {
  using wire::note;
  note(*figures.mutable_cpu(), rank, use.cpu);
  note(*figures.mutable_memory(), rank, use.memory, use.memory_most);
  note(*figures.mutable_pages(), rank, use.pages);
  if (use.bytes_known) {
    note(*figures.mutable_read(), rank, use.bytes.read);
    note(*figures.mutable_written(), rank, use.bytes.written);
  }
  if (!runs) return;
  note(*figures.mutable_address_space(), rank, use.address_space, use.address_space_most);
  if (use.khz > 0) note(*figures.mutable_cpu_khz(), rank, use.khz);
}

std::string started_with(pid_t pid, std::string_view variable) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/environ");
  if (!text) return {};
  const std::string begin = '\0' + std::string(variable) + '=';
  const std::string all = '\0' + *text;
  const std::size_t at = all.find(begin);
  if (at == all.npos) return {};
  const std::size_t value = at + begin.size();
  return all.substr(value, std::min(all.find('\0', value), all.size()) - value);
}

}  // namespace berth::step
