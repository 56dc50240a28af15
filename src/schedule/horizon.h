// What becomes free when running jobs reach their limits, as one list in the order of time, which
// every search for a start walks along. It is kept from walk to walk: only nodes where something
// has changed are looked at again.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "cluster/change_reader.h"
#include "cluster/room.h"
#include "schedule/running.h"

namespace berth::schedule {

/// A job that runs on the node ends; what is free there from then on, planned jobs not counted.
struct Opening {
  Time at = 0;  // a job that should have ended before now ends at once
  NodeIndex node = 0;
  cluster::Room room;
  friend bool operator==(const Opening&, const Opening&) = default;
};

class Horizon {
 public:
  /// Who runs on a node now, as running_uses() says.
  using Running = std::function<const std::vector<Timeline::Use>&(NodeIndex)>;

  /// As things stand: by time, then by node. Nodes that are not usable are left out.
  const std::vector<Opening>& follow(const job::State& state, const Running& running);
  /// Another one whenever they have changed.
  [[nodiscard]] std::uint64_t version() const { return version_; }

 private:
  /// Nodes that may look different from how they did; nullopt: any of them may.
  std::optional<std::vector<NodeIndex>> changed(const job::State& state);
  void look_at(const job::State& state, NodeIndex node, const Running& running,
               std::vector<Opening>& out);

  std::uint64_t version_ = 0;
  cluster::ChangeReader usage_;
  cluster::ChangeReader ends_;
  std::vector<Opening> all_;
  std::vector<Opening> spare_;       // memory to make the next list in
  std::vector<NodeIndex> drifting_;  // a job there stands still: its end is another every second
};

}  // namespace berth::schedule
