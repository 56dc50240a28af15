// What process_parameters.h promises.
#include "conf/process_parameters.h"

#include <fmt/format.h>

#include "text/number.h"

namespace berth::conf {

Result<ProcessParameters> process_parameters(const Parameters& node) {
  ProcessParameters out;
  const auto given = node.find("max_step_pids");
  if (given == node.end()) return out;
  out.max_step_pids = text::parse_number(given->second, kMostStepPids);
  if (!out.max_step_pids || (*out.max_step_pids > 0 && *out.max_step_pids < kFewestStepPids)) {
    return fail(Code::bad_value,
                fmt::format("max_step_pids={}: allowed is max_step_pids=NUMBER, {} to {}, or 0 for "
                            "no limit",
                            given->second, kFewestStepPids, kMostStepPids));
  }
  return out;
}

}  // namespace berth::conf
