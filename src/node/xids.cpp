#include "node/xids.h"

#include <algorithm>
#include <array>

namespace berth::node {
namespace {

struct Fault {
  std::uint64_t xid;
  std::string_view words;
};

// Those after which the GPU itself has to be reset, looked at or replaced.
constexpr auto kFaults = std::to_array<Fault>({
    {46, "it has stopped processing"},
    {48, "memory was lost (double-bit ECC error)"},
    {62, "its internal controller has halted"},
    {64, "a bad row of memory could not be noted for remapping"},
    {74, "an NVLink has failed"},
    {79, "it has fallen off the bus"},
    {92, "corrected ECC errors come too often"},
    {94, "memory was lost (contained ECC error)"},
    {95, "memory was lost (uncontained ECC error)"},
    {110, "security fault"},
    {119, "its system processor does not answer"},
    {120, "its system processor has failed"},
    {121, "the link between chips has failed"},
    {140, "memory was lost (unrecovered ECC error)"},
    {143, "it could not be initialised"},
});

}  // namespace

std::string_view hardware_fault(std::uint64_t xid) {
  const auto found = std::ranges::find(kFaults, xid, &Fault::xid);
  return found == kFaults.end() ? std::string_view() : found->words;
}

}  // namespace berth::node
