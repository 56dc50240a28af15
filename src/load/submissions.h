// Many submissions over few connections, without a process for each: what the controller can take.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/address.h"

namespace berth::load {

struct Submissions {
  std::size_t count = 1000;
  std::size_t connections = 8;
  std::size_t in_flight = 64;      // unanswered ones on each connection
  std::vector<std::string> words;  // of sbatch
};

/// One after the other, each on a connection of its own as sbatch does it: how long each took, in
/// milliseconds, the shortest first.
Result<std::vector<double>> time_each(const net::Address& controller, const Submissions& what);

/// Sends them all and waits for every answer; the first refusal is the error.
Result<void> submit_all(const net::Address& controller, const Submissions& what);

}  // namespace berth::load
