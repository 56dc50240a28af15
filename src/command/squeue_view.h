// From a reply of the controller to the text of squeue: filter, sort, format. Pure.
#pragma once

#include <string>

#include "base/result.h"
#include "command/show_text.h"
#include "command/squeue_options.h"
#include "wire/info.pb.h"

namespace berth::command {

/// Who asks, for --notme.
struct Viewer {
  std::uint32_t uid = 0;
};

Result<std::string> squeue_text(const SqueueOptions& options, const wire::JobsReply& reply,
                                const Shown& shown, const Viewer& viewer);

/// The job passes every filter of the options.
bool wanted(const SqueueOptions& options, const wire::JobInfo& job, const Shown& shown,
            const Viewer& viewer);

}  // namespace berth::command
