// What process_use.h promises.
#include "step/process_use.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "step/spool.h"

namespace berth::step {
namespace {

/// A number at the beginning, behind blanks.
std::optional<std::uint64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

/// Calls fn(name, rest) for each line "name: rest".
template <class Fn>
void each_line(std::string_view text, Fn&& fn) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = line.find(':');
    if (colon != line.npos) fn(line.substr(0, colon), line.substr(colon + 1));
  }
}

std::string in_proc(pid_t pid, std::string_view file) {
  return "/proc/" + std::to_string(pid) + '/' + std::string(file);
}

}  // namespace

KernelUnits KernelUnits::of_this_machine() {
  return {.ticks_per_second = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_CLK_TCK))),
          .page = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_PAGESIZE)))};
}

std::optional<ProcessUse> parse_stat(std::string_view text, const KernelUnits& units) {
  // "pid (name) S ppid …": the name may hold anything, so the last ')' counts. Fields are counted
  // from 1, as proc(5) does.
  constexpr std::size_t kState = 3;
  constexpr std::size_t kFields = 40;
  const std::size_t close = text.rfind(')');
  if (close == text.npos) return std::nullopt;
  text.remove_prefix(close + 1);
  std::uint64_t fields[kFields] = {};
  std::size_t count = kState;
  while (count < kFields) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) break;
    const std::size_t end = std::min(text.find(' '), text.size());
    fields[count++] = leading_number(text.substr(0, end)).value_or(0);
    text.remove_prefix(end);
  }
  if (count < kFields) return std::nullopt;
  const std::uint64_t ticks = fields[14] + fields[15] + fields[16] + fields[17];
  ProcessUse use;
  use.cpu = ticks * 1'000'000 / units.ticks_per_second;
  use.pages = fields[12] + fields[13];
  use.address_space = use.address_space_most = fields[23];
  use.memory = use.memory_most = fields[24] * units.page;
  use.processor = static_cast<unsigned>(fields[39]);
  return use;
}

void parse_status(std::string_view text, ProcessUse& use) {
  each_line(text, [&](std::string_view name, std::string_view rest) {
    std::uint64_t* most = name == "VmHWM"    ? &use.memory_most
                          : name == "VmPeak" ? &use.address_space_most
                                             : nullptr;
    if (most == nullptr) return;
    if (const auto kb = leading_number(rest)) *most = std::max(*most, *kb * 1024);
  });
}

std::optional<ProcessBytes> parse_io(std::string_view text) {
  std::optional<std::uint64_t> read;
  std::optional<std::uint64_t> written;
  each_line(text, [&](std::string_view name, std::string_view rest) {
    if (name == "rchar") read = leading_number(rest);
    if (name == "wchar") written = leading_number(rest);
  });
  if (!read || !written) return std::nullopt;
  return ProcessBytes{.read = *read, .written = *written};
}

std::optional<ProcessUse> use_of(pid_t pid, const KernelUnits& units) {
  const auto stat = read_file(in_proc(pid, "stat"));
  if (!stat) return std::nullopt;
  auto use = parse_stat(*stat, units);
  if (!use) return std::nullopt;
  if (const auto status = read_file(in_proc(pid, "status"))) parse_status(*status, *use);
  return use;
}

std::optional<ProcessBytes> bytes_of(pid_t pid) {
  const auto text = read_file(in_proc(pid, "io"));
  return text ? parse_io(*text) : std::nullopt;
}

std::map<unsigned, std::uint64_t> parse_cpuinfo(std::string_view text) {
  std::map<unsigned, std::uint64_t> found;
  std::optional<unsigned> processor;
  each_line(text, [&](std::string_view name, std::string_view rest) {
    const auto number = leading_number(rest);
    if (!number) return;
    if (name.starts_with("processor")) processor = static_cast<unsigned>(*number);
    if (name.starts_with("cpu MHz") && processor) found[*processor] = *number * 1000;
  });
  return found;
}

std::optional<std::uint64_t> CpuClocks::khz(unsigned processor) {
  const auto known = known_.find(processor);
  if (known != known_.end()) return known->second;
  std::optional<std::uint64_t> value;
  const auto text = read_file("/sys/devices/system/cpu/cpu" + std::to_string(processor) +
                              "/cpufreq/scaling_cur_freq");
  if (text) value = leading_number(*text);
  if (!value) {
    // One text for all CPUs.
    if (!listed_) listed_ = parse_cpuinfo(read_file("/proc/cpuinfo").value_or(""));
    const auto at = listed_->find(processor);
    if (at != listed_->end()) value = at->second;
  }
  known_.emplace(processor, value);
  return value;
}

}  // namespace berth::step
