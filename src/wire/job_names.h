// Names of jobs and steps as users write them: 12, 12_3, 12_[3-5], 12+1, 12.0, 12_3.batch.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/info.pb.h"

namespace berth::wire {

/// nullopt: not a job's name.
std::optional<JobName> parse_job_name(std::string_view word);

/// Splits at the commas that are not in brackets: "1,2_[3,5]" → "1", "2_[3,5]".
std::vector<std::string_view> split_job_list(std::string_view list);

/// The name as it is written.
std::string shown(const JobName& name);

}  // namespace berth::wire
