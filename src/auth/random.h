// Random bytes of the kernel.
//
//   submit.set_token(auth::random_token());
#pragma once

#include <cstddef>
#include <string>

namespace berth::auth {

std::string random_bytes(std::size_t count);
/// 32 hex digits.
std::string random_token();

}  // namespace berth::auth
