// Long lists of jobs: what most listings show comes first in a serialized job, so that it can be
// sent alone, and a list is read job by job instead of into one large message.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/info.pb.h"

namespace berth::wire {

/// Moves what a short listing shows (id, name, user, state, times, size, nodes) out of `whole`.
JobInfo take_brief(JobInfo& whole);
/// Moves what its owner and administrators alone are shown (controller/disclosure.h) out of
/// `whole`: the command lines, in which there are arguments, and the text of --wrap.
JobInfo take_private(JobInfo& whole);
StepInfo take_private(StepInfo& whole);

/// A JobsReply whose jobs are still bytes, each a JobInfo; they point into what was split.
struct JobList {
  JobsReply head;  // without jobs
  std::vector<std::string_view> jobs;
};
/// nullopt when the bytes are not a JobsReply.
std::optional<JobList> split_jobs(std::string_view payload);

}  // namespace berth::wire
