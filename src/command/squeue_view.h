// From a reply of the controller to the text of squeue: filter, sort, format. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "command/columns.h"
#include "command/show_text.h"
#include "command/squeue_fields.h"
#include "command/squeue_options.h"
#include "wire/info.pb.h"

namespace berth::command {

/// Who asks, for --notme.
struct Viewer {
  std::uint32_t uid = 0;
};

/// What is to be shown, read from the options: an invalid format is refused before anything is
/// asked.
struct SqueuePlan {
  Format columns;
  std::vector<SortKey> keys;
  bool brief = false;  // wire::take_brief() has all that is shown, filtered and sorted by
};
Result<SqueuePlan> squeue_plan(const SqueueOptions& options);

/// The text of a list of jobs, made job by job: a long queue is never in memory as messages.
class JobListing {
 public:
  JobListing(const SqueueOptions& options, const SqueuePlan& plan, const Shown& shown,
             const Viewer& viewer);
  void add(const wire::JobInfo& job);
  [[nodiscard]] std::string text() const;

 private:
  void add_row(const JobRow& row);

  const SqueueOptions& options_;
  const SqueuePlan& plan_;
  const Shown& shown_;
  const Viewer& viewer_;
  std::string lines_;                           // of all rows, in the order they came
  std::vector<std::size_t> ends_;               // of each line
  std::vector<std::vector<SortValue>> values_;  // by key and row
};

Result<std::string> squeue_text(const SqueueOptions& options, const wire::JobsReply& reply,
                                const Shown& shown, const Viewer& viewer);

/// The job passes every filter of the options.
bool wanted(const SqueueOptions& options, const wire::JobInfo& job, const Shown& shown,
            const Viewer& viewer);

}  // namespace berth::command
