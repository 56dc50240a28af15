// Shell arithmetic: $(( … )), (( … )), let. 64-bit, overflow and division by zero give no value.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "script/variables.h"

namespace berth::script {

/// The value of an expression whose $-expansions are already done; nullopt when it cannot be known
/// or is not an expression. Assignments in it change `variables`.
std::optional<std::int64_t> evaluate(std::string_view expression, Variables& variables);

}  // namespace berth::script
