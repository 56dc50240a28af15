// The checksum of a page: of its bytes and of its place, so that a page that was written to the
// wrong place is noticed, too. A change of one word of the page always changes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace berth::store {

inline constexpr std::size_t kPageSize = 4096;
/// Kept by SQLite at the end of each page for the checksum.
inline constexpr std::size_t kSumSize = 8;

/// Of `size` bytes, a multiple of 8.
inline std::uint64_t sum_of(const void* bytes, std::size_t size, std::uint64_t place) {
  const char* at = static_cast<const char*>(bytes);
  // Two lanes: a multiplication need not wait for the one before.
  std::uint64_t lanes[2] = {0x9e3779b97f4a7c15 ^ place, 0xc2b2ae3d27d4eb4f + place};
  const auto mix = [](std::uint64_t& lane, const char* from) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    lane = (lane ^ word) * 0xff51afd7ed558ccd;
    lane ^= lane >> 32;
  };
  std::size_t done = 0;
  for (; done + 16 <= size; done += 16) {
    mix(lanes[0], at + done);
    mix(lanes[1], at + done + 8);
  }
  if (done < size) mix(lanes[0], at + done);
  // Both lanes go in whole, by steps that can be undone, so no change of one is lost; the second by
  // a step of its own, since the highest bits of their last words would undo each other.
  lanes[1] *= 0xc4ceb9fe1a85ec53;
  lanes[1] ^= lanes[1] >> 29;
  std::uint64_t sum = (lanes[0] ^ lanes[1]) * 0xff51afd7ed558ccd;
  sum ^= sum >> 32;
  return sum == 0 ? 1 : sum;  // 0 = not known
}

}  // namespace berth::store
