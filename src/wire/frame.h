// Frames: a 4-byte little-endian length of what follows, a 2-byte little-endian number
// (messages.def), then the serialized message. No allocation is made from the length field: a
// reader grows its buffer as bytes arrive, and the limit depends on who sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wire/agent.pb.h"
#include "wire/basic.pb.h"
#include "wire/identity.pb.h"
#include "wire/info.pb.h"
#include "wire/record.pb.h"
#include "wire/step.pb.h"
#include "wire/submit.pb.h"
#include "wire/supervise.pb.h"

namespace berth::wire {

inline constexpr std::uint32_t kProtocol = 1;
inline constexpr std::size_t kHeaderBytes = 6;
/// Before a peer is known (TCP: before its credential was checked).
inline constexpr std::size_t kUnknownPeerBytes = 16 * 1024;
/// The largest frame of a user: a script of 4 MiB, arguments and environment of 6 MiB at most.
inline constexpr std::size_t kUserBytes = 16 * 1024 * 1024;
/// The largest frame of a daemon or an administrator.
inline constexpr std::size_t kMostBytes = 64 * 1024 * 1024;

enum class Kind : std::uint16_t {
#define BERTH_MESSAGE(number, type) type = number,
#include "wire/messages.def"
#undef BERTH_MESSAGE
};

/// "SubmitJob"; "unknown" for a number that is not in messages.def.
std::string_view name_of(Kind kind);

template <class M>
struct KindOf;
#define BERTH_MESSAGE(number, type)           \
  template <>                                 \
  struct KindOf<type> {                       \
    static constexpr Kind value = Kind::type; \
  };
#include "wire/messages.def"
#undef BERTH_MESSAGE

/// Appends header and message.
void append_frame(std::string& out, Kind kind, const google::protobuf::MessageLite& message);
/// The same for a message that is serialized already: frames are passed on as they came.
void append_payload(std::string& out, Kind kind, std::string_view payload);
template <class M>
void append(std::string& out, const M& message) {
  append_frame(out, KindOf<M>::value, message);
}
template <class M>
std::string framed(const M& message) {
  std::string out;
  append(out, message);
  return out;
}

struct Frame {
  Kind kind{};
  std::string_view payload;  // valid until the buffer changes
  std::size_t size = 0;      // header and payload: how much to drop from the buffer
};

enum class Scan { complete, incomplete, too_large, malformed };
/// Looks at the beginning of `buffer`.
Scan scan_frame(std::string_view buffer, std::size_t most, Frame& frame);

/// How large the frame at the beginning of `buffer` says it is, with its head; 0 = too few bytes.
std::size_t frame_bytes(std::string_view buffer);

/// The message of a frame of this kind; nullopt when the bytes are not one.
template <class M>
std::optional<M> decode(std::string_view payload) {
  M message;
  if (payload.size() > kMostBytes ||
      !message.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return std::nullopt;
  }
  return message;
}

}  // namespace berth::wire
