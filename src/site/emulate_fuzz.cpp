// --emulate: any text gives a cluster whose parts agree, or one clear error.
#include <cstdlib>

#include "site/site.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const auto site = site::from_emulate_spec({reinterpret_cast<const char*>(data), size});
  if (!site) {
    if (site.error().hint.empty()) std::abort();
    return 0;
  }
  if (site->cluster.nodes.empty() || site->cluster.default_partition() == nullptr) std::abort();
  for (const cluster::Node& node : site->cluster.nodes) {
    if (node.cpus() == 0 || node.cpus() > 4096) std::abort();
    for (const cluster::Gres& gres : node.gres) {
      for (const cluster::Device& device : gres.devices) {
        if (device.sockets.count() != 1 || device.sockets.last() >= node.sockets) std::abort();
      }
    }
  }
  return 0;
}
