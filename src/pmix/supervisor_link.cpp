// What supervisor_link.h promises.
#include "pmix/supervisor_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace berth::pmix {

std::optional<wire::Frame> SupervisorLink::next() {
  in_.erase(0, std::exchange(taken_, 0));
  for (;;) {
    wire::Frame frame;
    const wire::Scan scan = wire::scan_frame(in_, wire::kMostBytes, frame);
    if (scan == wire::Scan::complete) {
      taken_ = frame.size;
      return frame;
    }
    if (scan != wire::Scan::incomplete) return std::nullopt;
    std::array<char, 65536> buffer;
    const ssize_t n = ::read(fd_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    in_.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

void SupervisorLink::send_bytes(std::string_view bytes) {
  const std::scoped_lock lock(sending_);
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // next() notices
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace berth::pmix
