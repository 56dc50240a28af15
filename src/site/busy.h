// What is in use on a cluster now, from what `scontrol -d show node` and `scontrol -d show job`
// print.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/cluster.h"
#include "cluster/usage.h"

namespace berth::site {

inline constexpr std::size_t kMaxBusyBytes = std::size_t{256} << 20;

struct UnusableNode {
  cluster::NodeIndex node = 0;
  std::string name;
  std::string reason;  // "IDLE+DRAIN (bad disk)"
};

struct Busy {
  std::vector<cluster::Allocation> jobs;  // never overlap: Usage::take() accepts them one by one
  std::vector<UnusableNode> unusable;     // DOWN, DRAIN, FAIL, not responding, reserved
  std::vector<std::string> problems;      // "line 12: …": what was not understood or did not fit
};

/// Reads both outputs, concatenated in any order (also with -o). An error only when the text holds
/// neither a job nor a node, or is too large.
Result<Busy> parse_busy(std::string_view text, const cluster::Cluster& cluster);

}  // namespace berth::site
