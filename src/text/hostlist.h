// Host lists: "n[1-3,08-12],gpu05", "rack[0-1]_n[01-02]", "node*2". Expansion is bounded.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::text {

inline constexpr std::size_t kMaxHosts = 65536;
inline constexpr std::size_t kMaxHostName = 255;

/// All names in written order, repeats kept ("gpu1*2" gives gpu1 twice); the last bracket runs
/// fastest. Errors name the offending part.
Result<std::vector<std::string>> expand_hostlist(std::string_view list);

/// The shortest form of the names: natural order, duplicates dropped, zero padding kept:
/// {"gpu2","gpu1","n08","n09"} → "gpu[1-2],n[08-09]".
std::string compress_hostlist(std::span<const std::string> names);

/// As compress_hostlist but in the given order and with duplicates ("scontrol show hostlist").
std::string compress_hostlist_unsorted(std::span<const std::string> names);

}  // namespace berth::text
