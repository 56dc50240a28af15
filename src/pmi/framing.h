// Cuts what a task sends into messages: lines for PMI-1, messages with their length before them for
// PMI-2. Bytes may arrive cut anywhere; no more than one message is kept.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::pmi {

class Inbox {
 public:
  void append(std::string_view bytes);
  /// The next complete message, without its newline or its length; nullopt when bytes are missing.
  /// An error when it is too long or the length is none. Valid until the next append.
  Result<std::optional<std::string_view>> next();
  /// How the bytes after the message last given are read: false lines, true counted.
  void set_counted(bool counted) { counted_ = counted; }

 private:
  Result<std::optional<std::string_view>> next_line();
  Result<std::optional<std::string_view>> next_counted();

  std::string bytes_;
  std::size_t at_ = 0;        // before it everything was given out
  std::size_t searched_ = 0;  // before it there is no end of line
  bool counted_ = false;
};

}  // namespace berth::pmi
