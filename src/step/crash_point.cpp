// What crash_point.h promises.
#include "step/crash_point.h"

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace berth::step {

CrashPoints::CrashPoints(std::string_view text) {
  const std::size_t colon = text.find(':');
  name_ = std::string(text.substr(0, colon));
  left_ = 1;
  if (colon != std::string_view::npos) {
    const std::string_view number = text.substr(colon + 1);
    std::from_chars(number.data(), number.data() + number.size(), left_);
  }
}

CrashPoints CrashPoints::from_environment() {
  const char* text = std::getenv("BERTH_CRASH_AT");
  return text == nullptr ? CrashPoints() : CrashPoints(text);
}

void CrashPoints::reached(std::string_view name) {
  if (name_.empty() || name != name_ || --left_ != 0) return;
  ::kill(::getpid(), SIGKILL);
}

}  // namespace berth::step
