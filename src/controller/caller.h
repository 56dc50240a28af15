// Who sent a request. Filled from the socket (peer credentials) or from a munge credential, never
// from the message.
#pragma once

#include <cstdint>

#include "job/types.h"

namespace berth::controller {

using Caller = job::Caller;

/// May this caller act on what belongs to `owner`?
inline bool may_touch(const Caller& caller, std::uint32_t owner) {
  return caller.privileged || caller.uid == owner;
}

}  // namespace berth::controller
