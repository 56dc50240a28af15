// Foreign bytes as a trace: jobs within bounds, every line used or counted, never a crash.
#include <cstdlib>

#include "simulate/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::simulate;
  const auto trace = read_swf({reinterpret_cast<const char*>(data), size}, "f");
  if (!trace) return 0;
  if (trace->jobs.size() + trace->skipped != trace->lines) std::abort();
  if (trace->skipped_first.size() > Trace::kNamed) std::abort();
  for (const TraceJob& job : trace->jobs) {
    if (job.ask >= trace->asks.size() || job.runtime < 0 || job.submit < 0) std::abort();
    if (job.runtime > kMostSeconds || job.submit > kMostSeconds) std::abort();
    const Ask& ask = trace->asks[job.ask];
    if (ask.tasks == 0 || ask.cpus_per_task == 0 || ask.gpus > kMostCount) std::abort();
  }
  return 0;
}
