// Shell patterns (*, ?, [set]) against text.
#pragma once

#include <string_view>

namespace berth::script {

bool has_glob(std::string_view word);
/// `*` matches anything, also '/'. A '\' takes the next character literally.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace berth::script
