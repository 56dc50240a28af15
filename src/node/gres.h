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
  /// Of a GPU that the configuration counts and that was not found: in which way. "" = it is there.
  std::string missing;
  /// Of a missing one: as NVIDIA's library counts it, where it does.
  std::optional<std::uint32_t> number;
  bool guessed = false;  // nothing tells that it is this one which is missing
};

/// A GPU that the node had when it had all of them.
struct KnownGpu {
  std::string uuid;
  std::string file;
  std::string type;
};

struct Gres {
  std::vector<GresItem> items;  // GPUs first, in the order in which jobs count them
  /// "gres.conf:3: File=/dev/nvidia7 is not a GPU of this machine; it has /dev/nvidia[0-3]"
  std::vector<std::string> differences;
  /// AutoDetect= asks for what was found to be believed: a node that is something else is of no
  /// use.
  bool strict = false;
  /// The first difference that is not just a GPU that is missing: for that one only it is out.
  std::string fault;

  void tell(wire::NodeReport& report) const;
};

/// AutoDetect= for this node. Without one, GPUs are looked for everywhere and gres.conf is believed
/// where it says otherwise.
Result<device::Detect> detect_of(const std::optional<conf::GresConf>& gres,
                                 const std::string& node);

/// A GPU as NVIDIA's library counts it; of a part, the GPU that it is of.
struct LibraryNumber {
  std::uint32_t gpu = 0;
  std::optional<std::uint32_t> gpu_instance;
};
std::optional<LibraryNumber> number_in(const survey::Survey& told, const device::Gpu& gpu);

/// `known`: the GPUs that the node had when it had all of them; empty = not known.
Gres resolve_gres(const device::Machine& machine, const conf::Config& config,
                  const std::string& node, const std::vector<KnownGpu>& known = {});

}  // namespace berth::node
