// slurm.conf and gres.conf together: what is accepted is a cluster whose parts agree.
#include <cstdlib>

#include "site/site.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  // The two files in one input, separated by a line of "---".
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = text.find("\n---\n");
  conf::MemorySource::Files files = {{"slurm.conf", std::string(text.substr(0, cut))}};
  if (cut != std::string_view::npos) files["gres.conf"] = text.substr(cut + 5);
  const auto site = site::read_site(conf::MemorySource(std::move(files)));
  if (!site) {
    if (site.error().messages.empty()) std::abort();
    return 0;
  }
  const cluster::Cluster& c = site->cluster;
  for (const cluster::Partition& partition : c.partitions) {
    for (const cluster::NodeIndex node : partition.nodes) {
      if (node >= c.nodes.size()) std::abort();
    }
  }
  for (const cluster::Node& node : c.nodes) {
    if (node.cpus() == 0) std::abort();
    if (node.reserved_cores.any() && node.reserved_cores.last() >= node.cores()) std::abort();
    const cluster::Gres* gpus = node.find_gres("gpu");
    for (const cluster::Gres& gres : node.gres) {
      if (gres.shares_gpu && gres.devices.size() != gpus->devices.size()) std::abort();
      for (const cluster::Device& device : gres.devices) {
        if (device.sockets.any() && device.sockets.last() >= node.sockets) std::abort();
        if (!device.links.empty() && device.links.size() != gres.devices.size()) std::abort();
      }
    }
  }
  return 0;
}
