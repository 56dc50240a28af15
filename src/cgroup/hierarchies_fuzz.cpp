// Lists of mounts and files of counters: any text is read in bounded time.
#include "cgroup/hierarchies.h"

#include <cstdint>
#include <cstdlib>

#include "cgroup/tree.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const cgroup::Hierarchies here = cgroup::read_mounts(text);
  for (const auto& [controller, where] : here.v1) {
    if (controller.empty() || where.empty()) std::abort();
  }
  cgroup::count_named(text, "oom_kill");
  return 0;
}
