// Collects a request to start programs. PMI-1 spreads it over many lines and one block for each
// program, PMI-2 has it in one message; the fields are the same with other names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pmi/events.h"
#include "pmi/message.h"

namespace berth::pmi {

class SpawnDraft {
 public:
  /// PMI-1: a block "mcmd=spawn" … "endcmd". While open() its lines go to add_line.
  Result<void> begin();
  [[nodiscard]] bool open() const { return open_; }
  /// One line of a block. True: this was the end of the last block, and the request is complete.
  Result<bool> add_line(std::string_view line);
  /// PMI-2: the whole request.
  Result<void> add_message(const Message& message);

  /// The request, without ticket and rank; the draft is empty again.
  SpawnRequest take();

 private:
  Result<void> add(std::string_view name, std::string_view value);
  Result<void> count(std::size_t bytes);
  [[nodiscard]] Result<void> check() const;

  SpawnRequest request_;
  std::string given_key_;  // its value comes next
  std::size_t bytes_ = 0;
  std::uint64_t total_ = 1;  // programs announced
  bool open_ = false;
};

}  // namespace berth::pmi
