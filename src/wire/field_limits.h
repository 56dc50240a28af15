// What users and nodes send is measured before it is read: the bytes of a message are walked
// through by the table in field_limits.def, without a copy and without an allocation. Whoever takes
// messages from them asks before it decodes one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "wire/frame.h"

namespace berth::wire {

/// Slurm's max_script_size, where slurm.conf does not say; and the most that it can say.
inline constexpr std::size_t kUsualScript = std::size_t{4} << 20;
inline constexpr std::size_t kMostScript = std::size_t{8} << 20;

/// An error (Code::too_long) that says which field is too large, how large it is, and what would be
/// taken; Code::protocol for bytes that are no message. Kinds that neither users nor
/// agents send pass.
Result<void> check_fields(Kind kind, std::string_view payload,
                          std::size_t most_script = kMostScript);

/// A row of the table, for tests.
struct LimitedField {
  std::string_view message;
  std::string_view name;  // "SubmitLine"
  std::uint32_t number = 0;
  std::size_t most = 0;   // bytes of one; 0 = it is no text
  std::size_t count = 1;  // how many
  std::size_t all = 0;    // bytes of all; 0 = does not count
  std::string_view part;  // the message it holds; "" = none
};
std::span<const LimitedField> limited_fields();

}  // namespace berth::wire
