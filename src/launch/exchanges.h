// Exchanges of keys on their way up: what several nodes contribute to one is put together and goes
// on as one, so that a step of many nodes costs its client as little as its own branches.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "base/result.h"
#include "wire/step.pb.h"

namespace berth::launch {

class Exchanges {
 public:
  /// `nodes`: how many are below. At the root, where all meet, an exchange of some of them is
  /// counted too; relays pass those on as they come.
  Exchanges(std::size_t nodes, bool root) : nodes_(nodes), root_(root) {}

  /// What goes on from here, once it is complete. An error: it is more than one message can hold.
  Result<std::optional<wire::Exchange>> add(wire::Exchange part);

 private:
  std::size_t nodes_;
  bool root_;
  std::map<std::tuple<std::string, std::string, std::uint64_t>, wire::Exchange> open_;
};

/// To whom asked something of a node that is not there: nothing.
wire::Errand unanswered(const wire::Errand& question);

}  // namespace berth::launch
