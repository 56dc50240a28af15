// Lines of Slurm's configuration files: Key=Value pairs, comments, quotes, continuation, Include.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conf/complaints.h"
#include "conf/source.h"

namespace berth::conf {

inline constexpr int kMaxIncludeDepth = 10;
inline constexpr std::size_t kMaxTotalBytes = std::size_t{64} << 20;  // one file with its Includes
inline constexpr std::size_t kMaxPairsPerLine = 1000;

struct Pair {
  std::string key;    // as written
  std::string value;  // unquoted
  Location at;
};

/// One logical line: continuation lines joined, comments gone; never empty.
struct Line {
  std::vector<Pair> pairs;
};

/// Calls `take` for each line of the file and of the files it includes, in order. `cluster_name` is
/// what %c in Include stands for until a ClusterName= is seen. False when the file does not exist;
/// everything else that is wrong goes to `complaints`, and reading stops when these are full.
bool read_lines(const FileSource& source, std::string_view name, std::string_view cluster_name,
                Complaints& complaints, const std::function<void(const Line&)>& take);

}  // namespace berth::conf
