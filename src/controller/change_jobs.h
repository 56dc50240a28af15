// scontrol hold, uhold, release, requeue, requeuehold, suspend, resume, top, notify.
#pragma once

#include "controller/caller.h"
#include "job/state.h"
#include "wire/info.pb.h"

namespace berth::controller {

wire::Results act_on_jobs(job::State& state, const Caller& caller, const wire::ActOnJobs& ask,
                          job::Time now);

}  // namespace berth::controller
