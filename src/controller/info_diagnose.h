// sdiag: what the controller counted, under the names sdiag prints.
#pragma once

#include "controller/figures.h"
#include "controller/request_counts.h"
#include "controller/users.h"
#include "job/state.h"
#include "wire/info.pb.h"

namespace berth::controller {

struct StoreFigures {
  std::uint64_t commits = 0;
  std::int64_t verified_at = 0;  // when all of it was found whole; 0 = not yet
  std::string damage;            // "" = none was found
};

wire::DiagnoseReply diagnose_reply(const job::State& state, const Figures& figures,
                                   const RequestCounts::Counts& requests, Users& users,
                                   const StoreFigures& store, job::Time now);

}  // namespace berth::controller
