// What of the driver's error numbers (Xids) speaks against a GPU, from NVIDIA's public description
// of them.
#pragma once

#include <cstdint>
#include <string_view>

namespace berth::node {

/// What such an error means, in words; "" = it says nothing against the GPU: a program did
/// something wrong (13, 31, 43, 45, 68, 69, …), another sign tells more (63: a row waits to be
/// remapped), or the number is not known. A GPU is not taken from a site for a number that nobody
/// knows.
std::string_view hardware_fault(std::uint64_t xid);

}  // namespace berth::node
