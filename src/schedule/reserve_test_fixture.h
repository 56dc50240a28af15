// Reservations as `scontrol create` makes them, on the cluster of the tests.
#pragma once

#include <string>
#include <vector>

#include "job/state_test_fixture.h"
#include "schedule/reserve.h"

namespace berth::schedule::testing {

inline Result<Reservation> reserve(job::State& state, const std::vector<reservation::Key>& keys,
                                   Time now) {
  auto ask = reservation::read_keys(keys, now);
  if (!ask) return pass(std::move(ask.error()));
  Reservation made;
  made.name = ask->name.value_or("r");
  if (!ask->users && !ask->accounts) ask->users = "alice";
  if (auto done = reservation::apply(*ask, true, now, made); !done) return pass(done.error());
  for (const std::string& name : made.users.names) {
    made.uids.insert(name == "alice" ? job::testing::kAlice.uid : job::testing::kBob.uid);
  }
  if (auto done = choose_resources(state, *ask, now, made); !done) return pass(done.error());
  state.keep_reservation(made, now);
  return made;
}

}  // namespace berth::schedule::testing
