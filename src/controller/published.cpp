#include "controller/published.h"

namespace berth::controller {
namespace {

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

}  // namespace

void append_field(std::string& out, std::uint32_t number, std::string_view bytes) {
  append_varint(out, std::uint64_t{number} << 3 | 2);
  append_varint(out, bytes.size());
  out.append(bytes);
}

}  // namespace berth::controller
