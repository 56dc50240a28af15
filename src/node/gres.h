// The generic resources of this machine: what was found, under the names that the configuration
// gives it, and where the two disagree.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conf/config.h"
#include "device/machine.h"
#include "wire/agent.pb.h"

namespace berth::node {

struct GresItem {
  std::string name;
  std::string type;
  std::uint64_t count = 1;
  std::vector<std::string> files;
  Bits cores;              // by core number; empty = usable from all
  std::vector<int> links;  // to each GPU
  const device::Gpu* gpu = nullptr;
};

struct Gres {
  std::vector<GresItem> items;  // GPUs first, in the order in which jobs count them
  /// "gres.conf:3: File=/dev/nvidia7 is not a GPU of this machine; it has /dev/nvidia[0-3]"
  std::vector<std::string> differences;
  /// AutoDetect= asks for what was found to be believed: a node with differences is of no use.
  bool strict = false;

  void tell(wire::NodeReport& report) const;
};

/// AutoDetect= for this node. Without one, GPUs are looked for everywhere and gres.conf is believed
/// where it says otherwise.
Result<device::Detect> detect_of(const std::optional<conf::GresConf>& gres,
                                 const std::string& node);

Gres resolve_gres(const device::Machine& machine, const conf::Config& config,
                  const std::string& node);

}  // namespace berth::node
