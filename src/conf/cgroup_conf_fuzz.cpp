// cgroup.conf: any text is read in bounded time and memory, and every complaint is bounded.
#include "conf/cgroup_conf.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::conf;
  // The text includes itself under a second name, so that Include is exercised too.
  const std::string text(reinterpret_cast<const char*>(data), size);
  const MemorySource source(
      MemorySource::Files{{"cgroup.conf", text}, {"b", text}, {"c", "A=1\nInclude b\n"}});
  Complaints complaints;
  read_cgroup_conf(source, "cluster", complaints);
  if (complaints.failed() && complaints.as_error().messages.size() > Complaints::kMaxErrors + 1) {
    std::abort();
  }
  if (complaints.warnings().size() > Complaints::kMaxWarnings + 4) std::abort();
  return 0;
}
