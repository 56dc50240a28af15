#include "tls/channel.h"

namespace berth::tls {

void Channel::begin(std::string& out) {
  std::visit(
      [&out](auto& way) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(way)>, std::monostate>) way.begin(out);
      },
      way_);
}

Result<void> Channel::take(std::string_view raw, std::string& plain, std::string& out) {
  if (auto* stream = std::get_if<Stream>(&way_)) return stream->take(raw, plain, out);
  if (auto* handover = std::get_if<Handover>(&way_)) return handover->take(raw, plain, out);
  plain.append(raw);
  return {};
}

void Channel::put(std::string_view plain, std::string& out) {
  if (auto* stream = std::get_if<Stream>(&way_)) return stream->put(plain, out);
  if (auto* handover = std::get_if<Handover>(&way_)) return handover->put(plain, out);
  out.append(plain);
}

bool Channel::established() const {
  if (const auto* stream = std::get_if<Stream>(&way_)) return stream->established();
  if (const auto* handover = std::get_if<Handover>(&way_)) return handover->established();
  return true;
}

std::size_t Channel::kept() const {
  if (const auto* stream = std::get_if<Stream>(&way_)) return stream->kept();
  if (const auto* handover = std::get_if<Handover>(&way_)) return handover->kept();
  return 0;
}

}  // namespace berth::tls
