// topology.conf and topology.yaml: any text is read in bounded time and memory, and every complaint
// is bounded.
#include "conf/topology_conf.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::conf;
  if (size == 0) return 0;
  // The first byte says which file the rest is, and for which plugin.
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool yaml = (data[0] & 1) != 0;
  const MemorySource source(
      MemorySource::Files{{yaml ? "topology.yaml" : "topology.conf", text}, {"b", text}});
  const NetworkPlugin plugin = (data[0] & 2) != 0 ? NetworkPlugin::tree : NetworkPlugin::block;
  Complaints complaints;
  read_topology(source, plugin, {"slurm.conf", 1}, "cluster", complaints);
  if (complaints.failed() && complaints.as_error().messages.size() > Complaints::kMaxErrors + 1) {
    std::abort();
  }
  if (complaints.warnings().size() > Complaints::kMaxWarnings + 4) std::abort();
  return 0;
}
