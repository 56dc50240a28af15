// Errors on the wire: base/result.h Error as a Refusal and back.
//
//   *reply.mutable_refusal() = wire::to_refusal(result.error());
//   if (reply.has_refusal()) return pass(wire::from_refusal(reply.refusal()));
#pragma once

#include "base/result.h"
#include "wire/basic.pb.h"

namespace berth::wire {

Refusal to_refusal(const Error& error);
/// A code name that this program does not know (a newer peer) becomes Code::bad_value.
Error from_refusal(const Refusal& refusal);

Line to_line(const Message& message);
Message from_line(const Line& line);

}  // namespace berth::wire
