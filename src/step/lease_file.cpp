// What lease_file.h promises.
#include "step/lease_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "step/spool.h"

namespace berth::step {

std::chrono::seconds lease_margin(std::chrono::seconds lease) {
  return std::clamp(lease / 5, std::chrono::seconds(1), std::chrono::seconds(30));
}

std::optional<BootTime> look_at_lease(std::optional<BootTime> from, BootTime began,
                                      std::chrono::seconds lease, BootTime now) {
  const BootTime until =
      from.value_or(began) + lease - std::chrono::milliseconds(lease_margin(lease)) / 2;
  if (until <= now) return std::nullopt;
  // While a controller is stopped in order leases count from a later moment, until another one has
  // answered: what the file says may become less.
  return std::min(until, now + BootTime(lease) / 2);
}

std::string lease_file_of(const std::string& record) {
  return (std::filesystem::path(record).parent_path().parent_path() / kLeaseFile).string();
}

std::optional<BootTime> read_lease_file(const std::string& path) {
  // It may be written just now: then the two numbers differ.
  constexpr int kAttempts = 100;
  for (int i = 0; i < kAttempts; ++i) {
    const auto text = read_file(path);
    if (!text) return std::nullopt;
    char boot[37] = {};
    long long first = 0;
    long long second = 0;
    if (std::sscanf(text->c_str(), "%36s %lld %lld", boot, &first, &second) == 3 &&
        first == second) {
      return boot == this_boot_id() ? std::optional(BootTime(first)) : std::nullopt;
    }
  }
  return std::nullopt;
}

Result<void> write_lease_file(const std::string& path, BootTime from) {
  const std::string text =
      fmt::format("{:36} {:020} {:020}\n", this_boot_id(), from.count(), from.count());
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (file &&
      ::pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())) {
    return {};
  }
  return fail(Code::io, fmt::format("{}: {}", path, std::strerror(errno)));
}

}  // namespace berth::step
