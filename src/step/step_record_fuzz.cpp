// What an agent finds in its spool, and a program that a user wants to run: any bytes are read
// without harm, and what is told of a step follows from whole frames alone.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "step/needs_pmix.h"
#include "step/spool.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  static const int file = ::memfd_create("record", MFD_CLOEXEC);
  static const std::string path = fmt::format("/proc/self/fd/{}", file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  std::size_t bytes = 0;
  for (const auto& [kind, payload] : step::read_record(path)) {
    bytes += wire::kHeaderBytes + payload.size();
    // What an agent looks for in the record of a job.
    (void)wire::decode<wire::BeginJob>(payload);
    (void)wire::decode<wire::EndJob>(payload);
  }
  if (bytes > size) std::abort();
  const step::StepRecord record = step::read_step_record(path);
  if (!record.spec.empty() && !wire::decode<wire::StepSpec>(record.spec)) std::abort();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto key = step::read_record_name(input)) {
    const auto again = step::read_record_name(step::record_name(*key));
    if (!again || *again != *key) std::abort();
  }
  (void)step::needs_pmix(path);
  return 0;
}
