// The fields of squeue: letters of -o, names of -O, headers and values, for jobs and for steps.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "command/columns.h"
#include "wire/info.pb.h"

namespace berth::command {

/// A line of squeue. A job that may still choose its partition has one for each with --priority.
struct JobRow {
  const wire::JobInfo* job = nullptr;
  std::string_view partition;
};
struct StepRow {
  const wire::StepInfo* step = nullptr;
};

std::span<const Field<JobRow>> job_fields();
std::span<const Field<StepRow>> step_fields();

/// "12", "12_3", "12_[3-9%2]", "12+1".
void append_job_id(std::string& out, const wire::JobInfo& job, const Shown& shown);
/// "12.0", "12_3.batch".
void append_step_id(std::string& out, const wire::StepInfo& step);
/// Seconds it has run, without the time it was suspended.
std::int64_t run_seconds_of(const wire::JobInfo& job, std::int64_t now);

}  // namespace berth::command
