// scontrol's output: whatever the text says, the jobs read from it fit the cluster and each other.
#include "site/busy.h"

#include <cstdlib>

#include "site/site.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  static const site::Site kSite =
      site::from_emulate_spec("gpu[1-2]:gpus=a100x4:shards=16,cpu1:threads=2:cpus=32").value();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto busy = site::parse_busy(text, kSite.cluster);
  if (!busy) return 0;
  if (busy->problems.size() > 102) std::abort();
  cluster::Usage usage(kSite.cluster);
  for (const cluster::Allocation& job : busy->jobs) usage.take(job);
  for (const cluster::Allocation& job : busy->jobs) usage.release(job);
  return 0;
}
