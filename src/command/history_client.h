// Jobs and steps that ran, from the controller's store, in as many replies as it takes.
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"
#include "request/request.h"
#include "wire/info.pb.h"

namespace berth::command {

/// Calls take(reply) for each part of the history. `program` asks.
Result<void> each_history(const wire::ListHistory& ask, const request::Environment& environment,
                          std::string_view program,
                          const std::function<Result<void>(const wire::HistoryReply&)>& take);

}  // namespace berth::command
