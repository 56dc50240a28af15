// What job_list.h promises.
#include "wire/job_list.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <utility>

namespace berth::wire {
namespace {

using google::protobuf::internal::WireFormatLite;

}  // namespace

JobInfo take_brief(JobInfo& whole) {
  JobInfo brief;
#define BERTH_MOVE(field)           \
  brief.set_##field(whole.field()); \
  whole.clear_##field()
#define BERTH_MOVE_TEXT(field)                            \
  brief.set_##field(std::move(*whole.mutable_##field())); \
  whole.clear_##field()
#define BERTH_MOVE_OPTIONAL(field)                           \
  if (whole.has_##field()) brief.set_##field(whole.field()); \
  whole.clear_##field()
  BERTH_MOVE(id);
  BERTH_MOVE_TEXT(name);
  BERTH_MOVE(uid);
  BERTH_MOVE_TEXT(user);
  BERTH_MOVE_TEXT(state);
  brief.mutable_flags()->Swap(whole.mutable_flags());
  BERTH_MOVE_TEXT(reason);
  BERTH_MOVE_TEXT(partition);
  BERTH_MOVE(priority);
  BERTH_MOVE_OPTIONAL(array_job_id);
  BERTH_MOVE_OPTIONAL(array_task_id);
  BERTH_MOVE_TEXT(array_tasks);
  BERTH_MOVE(array_throttle);
  BERTH_MOVE_OPTIONAL(het_job_id);
  BERTH_MOVE(het_offset);
  BERTH_MOVE_OPTIONAL(time_limit_minutes);
  BERTH_MOVE(submit_time);
  BERTH_MOVE(start_time);
  BERTH_MOVE(end_time);
  BERTH_MOVE(suspend_time);
  BERTH_MOVE(seconds_before_suspend);
  BERTH_MOVE_TEXT(nodes);
  BERTH_MOVE_TEXT(sched_nodes);
  BERTH_MOVE(node_count);
  BERTH_MOVE(cpus);
#undef BERTH_MOVE_OPTIONAL
#undef BERTH_MOVE_TEXT
#undef BERTH_MOVE
  return brief;
}

JobInfo take_private(JobInfo& whole) {
  JobInfo out;
  out.set_command(std::move(*whole.mutable_command()));
  whole.clear_command();
  out.set_submit_line(std::move(*whole.mutable_submit_line()));
  whole.clear_submit_line();
  return out;
}

StepInfo take_private(StepInfo& whole) {
  StepInfo out;
  out.set_submit_line(std::move(*whole.mutable_submit_line()));
  whole.clear_submit_line();
  return out;
}

std::optional<JobList> split_jobs(std::string_view payload) {
  JobList out;
  std::string head;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(payload.data()),
                                            static_cast<int>(payload.size()));
  constexpr std::uint32_t kJobs = WireFormatLite::MakeTag(
      JobsReply::kJobsFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  for (;;) {
    const int start = in.CurrentPosition();
    const std::uint32_t tag = in.ReadTag();
    if (tag == 0) break;
    if (tag != kJobs) {
      if (!WireFormatLite::SkipField(&in, tag)) return std::nullopt;
      head.append(payload.substr(static_cast<std::size_t>(start),
                                 static_cast<std::size_t>(in.CurrentPosition() - start)));
      continue;
    }
    std::uint32_t length = 0;
    if (!in.ReadVarint32(&length)) return std::nullopt;
    const auto at = static_cast<std::size_t>(in.CurrentPosition());
    if (length > payload.size() - at || !in.Skip(static_cast<int>(length))) return std::nullopt;
    out.jobs.push_back(payload.substr(at, length));
  }
  if (static_cast<std::size_t>(in.CurrentPosition()) != payload.size() ||
      !out.head.ParseFromString(head)) {
    return std::nullopt;
  }
  return out;
}

}  // namespace berth::wire
