// What users send is measured before it is read: whatever the bytes are, the two readers agree.
// What is let through can be decoded, unless it is no message at all, and what was decoded and
// written again is let through too.
#include "wire/field_limits.h"

#include <cstdlib>

namespace {

template <class M>
void measure(berth::wire::Kind kind, std::string_view payload) {
  using namespace berth;
  const auto verdict = wire::check_fields(kind, payload, wire::kUsualScript);
  const auto message = wire::decode<M>(payload);
  if (!verdict || !message) return;
  const std::string again = message->SerializeAsString();
  // A field that came twice is one of them afterwards, which is never more.
  if (again.size() <= payload.size() && !wire::check_fields(kind, again, wire::kUsualScript)) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::wire;
  if (size < 2) return 0;
  const std::string_view payload(reinterpret_cast<const char*>(data) + 2, size - 2);
  // Two bytes say which message it is.
  switch (const auto kind = static_cast<Kind>(data[0] | data[1] << 8); kind) {
#define BERTH_MESSAGE(number, type) \
  case Kind::type:                  \
    measure<type>(kind, payload);   \
    break;
#include "wire/messages.def"
#undef BERTH_MESSAGE
  }
  return 0;
}
