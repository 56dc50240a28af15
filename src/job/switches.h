// --switches=n@t: how long a job waits for an allocation on so few switches.
#pragma once

#include <optional>

#include "job/types.h"

namespace berth::job {

/// Seconds it is ready to wait, once it could start on more switches: what it asks for, within what
/// max_switch_wait allows. 0 = it does not ask.
Time switch_patience(const Job& job, const Policy& policy);

/// From when on any switches will do; unset while that is not known: it could not have started yet.
std::optional<Time> any_switches_from(const Job& job, const Policy& policy);

}  // namespace berth::job
