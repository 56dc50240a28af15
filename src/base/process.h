// What everybody needs who starts programs or writes to descriptors.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

/// The words as execve(2) and posix_spawn(3) want them; they must outlive it.
inline std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

/// False: errno tells why not all of it was written.
inline bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace berth
