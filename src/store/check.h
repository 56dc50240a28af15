// Reads all of a store that no controller uses, and says what is wrong with it. Changes nothing.
//
//   auto checked = store::check(state_directory);
//   if (!checked) …;                          // it could not be looked at
//   for (const std::string& line : checked->troubles) …;
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth::store {

struct Checked {
  std::vector<std::string> troubles;  // none: every bit is as it was written
  std::uint64_t jobs = 0;
  std::uint64_t steps = 0;
  std::uint64_t scripts = 0;  // with their environments
  std::uint64_t commits = 0;
  std::uint64_t epoch = 0;
};

Result<Checked> check(const std::string& directory);
/// A backup, or the file of a store that the caller has claimed.
Result<Checked> check_file(const std::string& path);
/// Of a berth before checksums. Only asked where nothing says otherwise (acknowledged.h).
bool is_without_checksums(const std::string& path);

}  // namespace berth::store
