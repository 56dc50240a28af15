// --oom-kill-step: whether a task that is killed for want of memory takes its step with it.
#pragma once

#include "request/request.h"

namespace berth::request {

inline bool out_of_memory_kills_step(const Request& request) {
  const Given* given = request.given.find(Opt::oom_kill_step);
  return given != nullptr && given->text != "0";
}

}  // namespace berth::request
