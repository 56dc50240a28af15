// When a job that its partition cannot hold is looked at for the second time.
#pragma once

#include "job/types.h"

namespace berth::job {

/// Seconds from the submission: until then such a job shows PartitionConfig, afterwards
/// PartitionNodeLimit (spec placement-jobs.md §11).
inline constexpr Time kFirstPass = 3;

}  // namespace berth::job
