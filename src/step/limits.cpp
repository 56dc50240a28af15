// What limits.h promises.
#include "step/limits.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace berth::step {
namespace {

constexpr std::array kNames = {
    std::pair<std::string_view, int>{"CPU", RLIMIT_CPU},
    std::pair<std::string_view, int>{"FSIZE", RLIMIT_FSIZE},
    std::pair<std::string_view, int>{"DATA", RLIMIT_DATA},
    std::pair<std::string_view, int>{"STACK", RLIMIT_STACK},
    std::pair<std::string_view, int>{"CORE", RLIMIT_CORE},
    std::pair<std::string_view, int>{"RSS", RLIMIT_RSS},
    std::pair<std::string_view, int>{"NPROC", RLIMIT_NPROC},
    std::pair<std::string_view, int>{"NOFILE", RLIMIT_NOFILE},
    std::pair<std::string_view, int>{"MEMLOCK", RLIMIT_MEMLOCK},
    std::pair<std::string_view, int>{"AS", RLIMIT_AS},
};

}  // namespace

std::optional<int> resource_of(std::string_view name) {
  for (const auto& [known, resource] : kNames) {
    if (known == name) return resource;
  }
  return std::nullopt;
}

std::vector<std::string> set_limits(const google::protobuf::RepeatedPtrField<wire::Limit>& limits) {
  std::vector<std::string> lines;
  for (const wire::Limit& wanted : limits) {
    const std::optional<int> resource = resource_of(wanted.name());
    if (!resource) continue;
    const auto which = static_cast<__rlimit_resource>(*resource);
    rlimit now{};
    if (::getrlimit(which, &now) != 0) continue;
    const rlim_t value = wanted.has_value() ? wanted.value() : RLIM_INFINITY;
    if (now.rlim_cur == value) continue;
    rlimit next{.rlim_cur = value, .rlim_max = std::max(now.rlim_max, value)};
    if (::setrlimit(which, &next) == 0) continue;
    const int why = errno;
    if (wanted.demanded()) {
      lines.push_back(fmt::format("Can't propagate RLIMIT_{} of {} from submit host: {}",
                                  wanted.name(), value, std::strerror(why)));
    }
    next = {.rlim_cur = std::min(value, now.rlim_max), .rlim_max = now.rlim_max};
    ::setrlimit(which, &next);
  }
  return lines;
}

void restore_open_files(std::uint64_t soft) {
  rlimit now{};
  if (soft == 0 || ::getrlimit(RLIMIT_NOFILE, &now) != 0) return;
  if (now.rlim_cur == soft) return;
  now.rlim_cur = std::min<rlim_t>(soft, now.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &now);
}

int niceness_of_task(std::uint32_t policy, int asked, int own, bool of_root) {
  constexpr int kLowest = 19;
  switch (policy) {
    case 1:
      return std::min(of_root ? asked : std::max(asked, own), kLowest);
    case 2:
      return std::min(std::max(asked, own + 1), kLowest);
    default:
      return own;
  }
}

std::vector<std::string> set_niceness(std::uint32_t policy, int asked) {
  const int own = ::getpriority(PRIO_PROCESS, 0);
  const int given = niceness_of_task(policy, asked, own, ::geteuid() == 0);
  if (given != own) ::setpriority(PRIO_PROCESS, 0, given);
  if (policy == 0 || asked >= 0 || given <= asked) return {};
  return {fmt::format("Can't propagate a niceness of {} from submit host: it is {} here", asked,
                      ::getpriority(PRIO_PROCESS, 0))};
}

}  // namespace berth::step
