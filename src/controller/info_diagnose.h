// sdiag: what the controller counted, under the names sdiag prints.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

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

/// The wall clock of the controller's machine beside the cluster's time.
struct ClockFigures {
  std::chrono::seconds ahead{0};  // since it was set; negative: behind; 0: it is followed
  std::chrono::seconds adopts_in{0};
  std::uint64_t adoptions = 0;  // since the controller started
  std::int64_t adopted = 0;     // seconds, of all controllers of this store
};

wire::DiagnoseReply diagnose_reply(const job::State& state, const Figures& figures,
                                   const RequestCounts::Counts& requests, Users& users,
                                   const StoreFigures& store, const ClockFigures& clock,
                                   job::Time now);

}  // namespace berth::controller
