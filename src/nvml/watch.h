// A stream of rounds: how each GPU fares, and errors of the driver as they come.
#pragma once

#include <chrono>
#include <functional>

#include "nvml/library.h"

namespace berth::nvml {

/// Calls say(lines) with whole lines until it gives false. Between rounds it sleeps in the driver,
/// which wakes it for an Xid at once.
Result<void> watch(const Functions& nvml, std::chrono::milliseconds every,
                   const std::function<bool(const std::string& lines)>& say);

}  // namespace berth::nvml
