// Small files of /proc and /sys.
#pragma once

#include <string>
#include <vector>

namespace berth::device {

/// At most 1 MiB; "" when it cannot be read.
std::string read_text(const std::string& path);
/// Names in a directory, without "." and "..", sorted; empty when it cannot be read.
std::vector<std::string> names_in(const std::string& path);

}  // namespace berth::device
