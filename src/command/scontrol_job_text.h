// `scontrol show job` and `show step`: one record as text.
#pragma once

#include <string>

#include "command/scontrol_values.h"

namespace berth::command::scontrol {

std::string job_text(const wire::JobInfo& job, const Style& style);
std::string step_text(const wire::StepInfo& step, const Style& style);

/// "12.0", "12.batch", "12_3.0".
std::string step_name(const wire::StepInfo& step);

}  // namespace berth::command::scontrol
