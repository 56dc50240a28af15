// Nodes of openb: whatever the text says, what comes out is a configuration that can be read.
#include <cstdlib>

#include "simulate/openb.h"
#include "simulate/setup.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  auto files = simulate::read_openb_nodes({reinterpret_cast<const char*>(data), size}, "f");
  if (!files || files->at("slurm.conf").size() > 10'000) return 0;
  const auto setup = simulate::read_setup(conf::MemorySource(std::move(*files)), {}, "f");
  if (setup && setup->cluster.nodes.empty()) std::abort();
  return 0;
}
