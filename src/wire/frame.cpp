#include "wire/frame.h"

namespace berth::wire {

std::string_view name_of(Kind kind) {
  switch (kind) {
#define BERTH_MESSAGE(number, type) \
  case Kind::type:                  \
    return #type;
#include "wire/messages.def"
#undef BERTH_MESSAGE
  }
  return "unknown";
}

namespace {

/// Fills in the header at `at` of what was appended since.
void finish_frame(std::string& out, std::size_t at, Kind kind) {
  const std::size_t length = out.size() - at - 4;
  for (std::size_t i = 0; i < 4; ++i) out[at + i] = static_cast<char>(length >> (8 * i) & 0xff);
  const auto number = static_cast<std::uint16_t>(kind);
  out[at + 4] = static_cast<char>(number & 0xff);
  out[at + 5] = static_cast<char>(number >> 8);
}

}  // namespace

void append_frame(std::string& out, Kind kind, const google::protobuf::MessageLite& message) {
  const std::size_t at = out.size();
  out.append(kHeaderBytes, '\0');
  message.AppendToString(&out);
  finish_frame(out, at, kind);
}

void append_payload(std::string& out, Kind kind, std::string_view payload) {
  const std::size_t at = out.size();
  out.append(kHeaderBytes, '\0');
  out.append(payload);
  finish_frame(out, at, kind);
}

std::size_t frame_bytes(std::string_view buffer) {
  if (buffer.size() < 4) return 0;
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(buffer[i]));
  };
  return 4 + (byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24);
}

Scan scan_frame(std::string_view buffer, std::size_t most, Frame& frame) {
  if (buffer.size() < 4) return Scan::incomplete;
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(buffer[i]));
  };
  const std::size_t length = frame_bytes(buffer) - 4;
  if (length < 2) return Scan::malformed;
  if (length + 4 > most) return Scan::too_large;
  if (buffer.size() < length + 4) return Scan::incomplete;
  frame.kind = static_cast<Kind>(byte(4) | byte(5) << 8);
  if (name_of(frame.kind) == "unknown") return Scan::malformed;
  frame.payload = buffer.substr(kHeaderBytes, length - 2);
  frame.size = length + 4;
  return Scan::complete;
}

}  // namespace berth::wire
