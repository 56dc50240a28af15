// File name patterns of --output, --error, --input: %j, %x, %5t, …
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::text {

struct PatternValues {
  std::string job_id, job_name, user, node;
  std::string step_id;                      // "" in a batch script
  std::optional<std::string> array_master;  // array jobs only
  std::optional<std::string> array_index;
  std::string task = "0", node_rank = "0", restarts = "0", sluid;
};

/// Expands a pattern; a '\' anywhere turns substitution off (and is dropped). %a and %A outside an
/// array expand to the job id and 4294967294's sensible stand-in "0".
std::string expand_pattern(std::string_view pattern, const PatternValues& values);
/// True when two elements of an array would write the same file.
bool same_for_all_elements(std::string_view pattern);

}  // namespace berth::text
