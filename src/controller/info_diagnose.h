// sdiag: what the controller counted, under the names sdiag prints.
#pragma once

#include "controller/figures.h"
#include "controller/request_counts.h"
#include "controller/users.h"
#include "job/state.h"
#include "wire/info.pb.h"

namespace berth::controller {

wire::DiagnoseReply diagnose_reply(const job::State& state, const Figures& figures,
                                   const RequestCounts::Counts& requests, Users& users,
                                   job::Time now);

}  // namespace berth::controller
