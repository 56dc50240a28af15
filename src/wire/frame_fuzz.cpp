// Arbitrary bytes as a peer would send them: frames are found or refused, and every message that is
// read can be sent again.
#include "wire/frame.h"

#include <cstdlib>

namespace {

template <class M>
void decode_and_send(std::string_view payload) {
  const auto message = berth::wire::decode<M>(payload);
  if (!message) return;
  const std::string again = berth::wire::framed(*message);
  berth::wire::Frame frame;
  if (berth::wire::scan_frame(again, berth::wire::kMostBytes, frame) !=
          berth::wire::Scan::complete ||
      !berth::wire::decode<M>(frame.payload)) {
    std::abort();
  }
}

void decode_any(const berth::wire::Frame& frame) {
  switch (frame.kind) {
#define BERTH_MESSAGE(number, type) \
  case berth::wire::Kind::type:     \
    return decode_and_send<berth::wire::type>(frame.payload);
#include "wire/messages.def"
#undef BERTH_MESSAGE
  }
  std::abort();  // a complete frame of an unknown kind
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::wire;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  Frame frame;
  while (scan_frame(rest, kUnknownPeerBytes, frame) == Scan::complete) {
    if (frame.size < kHeaderBytes || frame.size > rest.size()) std::abort();
    decode_any(frame);
    rest.remove_prefix(frame.size);
  }
  return 0;
}
