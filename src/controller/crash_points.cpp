#include "controller/crash_points.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace berth::controller {

Result<void> CrashPoints::read(std::string_view text, CrashPoints& out) {
  if (text.empty()) return {};
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  if (std::ranges::find(kCrashPoints, name) == kCrashPoints.end()) {
    return fail(Code::bad_value, fmt::format("BERTH_CRASH_AT: no place is named {}", name),
                fmt::format("one of {}", fmt::join(kCrashPoints, ", ")));
  }
  std::int64_t count = 1;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (error != std::errc() || end != digits.data() + digits.size() || count < 1) {
      return fail(Code::bad_value, fmt::format("BERTH_CRASH_AT: {} is not a count", digits));
    }
  }
  out.name_ = name;
  out.left_ = count;
  return {};
}

void CrashPoints::reached(std::string_view name) {
  if (name_.empty() || name != name_) return;
  if (left_.fetch_sub(1) == 1) ::kill(::getpid(), SIGKILL);
}

}  // namespace berth::controller
