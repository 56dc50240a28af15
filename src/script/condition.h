// Conditions that can be decided without running anything: [ … ], [[ … ]], test.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "script/expand.h"

namespace berth::script {

enum class Truth { yes, no, unknown };

Truth negated(Truth truth);

/// `[ words ]` without the brackets.
Truth decide_test(std::span<const Field> words);

/// `[[ words ]]` without the brackets, words as written.
Truth decide_extended_test(std::span<const std::string> words, int line, Expander& expander);

}  // namespace berth::script
