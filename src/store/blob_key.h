// The number under which bytes are looked for first. Other bytes with the same number get the next
// one (Store::add_blob compares), so it need not be proof against people who try.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace berth::store {

inline std::uint64_t blob_key(std::string_view bytes) {
  std::uint64_t hash = 0x9e3779b97f4a7c15 ^ bytes.size();
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  };
  while (bytes.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    mix(word);
    bytes.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
  mix(rest);
  return hash == 0 ? 1 : hash;  // 0 = none, in JobRecord
}

}  // namespace berth::store
