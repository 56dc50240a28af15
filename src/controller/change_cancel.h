// scancel: which jobs are meant, and what is done to them.
#pragma once

#include "controller/caller.h"
#include "controller/users.h"
#include "job/state.h"
#include "wire/info.pb.h"

namespace berth::controller {

wire::Results cancel_jobs(job::State& state, const Caller& caller, const wire::CancelJobs& ask,
                          Users& users, job::Time now);

}  // namespace berth::controller
