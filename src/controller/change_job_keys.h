// The keys of `scontrol update JobId=`: which option of sbatch each one is, or what it sets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/state.h"

namespace berth::controller {

/// What an update asks for, for one job.
struct JobUpdate {
  std::vector<std::string> words;  // as sbatch would take them
  job::JobChange change;           // what is no option
  [[nodiscard]] bool changes_state() const { return has_change; }
  bool has_change = false;
};

/// Adds one key. `current` is the job as it is (for relative time limits).
Result<void> add_job_key(JobUpdate& update, std::string_view key, std::string_view value,
                         const job::Job& current, job::Time now);

}  // namespace berth::controller
