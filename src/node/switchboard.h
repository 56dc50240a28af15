// The mains switch of pretended nodes: one that is off is not reported to the controller. Kept in
// the spool, so that a node stays off when its agent starts again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth::node {

class Switchboard {
 public:
  Switchboard() = default;
  /// Reads what was kept; "" = nothing is kept.
  explicit Switchboard(std::string file);

  /// A node is met for the first time; later calls change nothing.
  void meet(const std::string& node, bool off);
  [[nodiscard]] bool off(const std::string& node) const;
  /// When it was last switched on; 0 = it always was.
  [[nodiscard]] std::int64_t since(const std::string& node) const;
  Result<void> turn(const std::vector<std::string>& nodes, bool on, std::int64_t now);

 private:
  struct State {
    bool off = false;
    std::int64_t since = 0;
  };
  [[nodiscard]] Result<void> keep() const;

  std::string file_;
  std::map<std::string, State> nodes_;
};

}  // namespace berth::node
