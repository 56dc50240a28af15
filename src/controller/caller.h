// Who sent a request, and how that was proven: by the kernel on a unix socket, munge, a token of
// this cluster, or a node that vouched (trust.h). Never from the message.
#pragma once

#include <cstdint>

#include "job/types.h"

namespace berth::controller {

enum class Proof : std::uint8_t {
  none,     // the controller itself
  socket,   // the kernel says so, on this machine
  munge,    // whoever has the site's key says so
  token,    // this controller said so when it made the token
  vouched,  // the agent of a node says so
};

struct Caller : job::Caller {
  Proof proof = Proof::none;

  constexpr Caller() = default;
  constexpr Caller(std::uint32_t uid_, std::uint32_t gid_, bool privileged_,
                   Proof proof_ = Proof::none)
      : job::Caller{.uid = uid_, .gid = gid_, .privileged = privileged_}, proof(proof_) {}
};

/// May this caller act on what belongs to `owner`?
inline bool may_touch(const Caller& caller, std::uint32_t owner) {
  return caller.privileged || caller.uid == owner;
}

}  // namespace berth::controller
