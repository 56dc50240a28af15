// What is in use on a cluster now, from what `scontrol -d show node` and `scontrol -d show job`
// print.
#pragma once

#include <span>
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

struct BusyText {
  std::string name;  // of the file, for messages; "" = the text has none
  std::string text;
};

/// Reads both outputs, in any order (also with -o), concatenated or in several texts. An error only
/// when they hold neither a job nor a node, or are too large.
Result<Busy> parse_busy(std::span<const BusyText> texts, const cluster::Cluster& cluster);
Result<Busy> parse_busy(std::string_view text, const cluster::Cluster& cluster);

}  // namespace berth::site
