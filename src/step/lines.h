// Cuts what a task writes at line ends, so that lines of several tasks do not mix.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace berth::step {

class LineCutter {
 public:
  /// A line longer than this is passed on in pieces.
  static constexpr std::size_t kLongest = 16 * 1024;

  explicit LineCutter(bool unbuffered = false) : unbuffered_(unbuffered) {}

  /// Adds bytes; returns what can be passed on now (whole lines).
  std::string take(std::string_view bytes) {
    held_.append(bytes);
    if (unbuffered_) return rest();
    const std::size_t end = held_.rfind('\n');
    if (end == std::string::npos) return held_.size() > kLongest ? rest() : std::string();
    std::string ready = held_.substr(0, end + 1);
    held_.erase(0, end + 1);
    if (held_.size() > kLongest) ready += rest();
    return ready;
  }
  /// What is left when the stream ends.
  std::string rest() { return std::exchange(held_, std::string()); }

 private:
  bool unbuffered_ = false;
  std::string held_;
};

/// Puts "3: " before every line; `open` remembers that the last piece ended within a line.
inline std::string labelled(std::string_view bytes, std::string_view label, bool& open) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::size_t size = end == std::string_view::npos ? bytes.size() : end + 1;
    if (!open) out.append(label);
    out.append(bytes.substr(0, size));
    open = end == std::string_view::npos;
    bytes.remove_prefix(size);
  }
  return out;
}

}  // namespace berth::step
