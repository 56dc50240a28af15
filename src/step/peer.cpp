// What peer.h promises.
#include "step/peer.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace berth::step {

Peer::Peer(Fd fd, std::string unread) : fd_(std::move(fd)), in_(std::move(unread)) {
  ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
  ::fcntl(fd_.get(), F_SETFD, FD_CLOEXEC);
}

Peer Peer::handed_on(Fd fd, const std::string& unread, const std::string& unsent,
                     const std::string& key) {
  Peer peer(std::move(fd));
  peer.out_ = unsent;
  if (key.empty()) {
    peer.in_ = unread;
    return peer;
  }
  auto session = tls::take_over(key);
  if (!session) {
    peer.close();
    return peer;
  }
  peer.channel_ = tls::Channel(std::move(*session));
  if (!unread.empty() && !peer.unseal(unread)) peer.close();
  return peer;
}

bool Peer::unseal(std::string_view raw) {
  const bool good = channel_.take(raw, in_, out_).has_value();
  // An alert, or what waited for the handshake.
  return flush() && good && !(channel_.stream() != nullptr && channel_.stream()->ended());
}

bool Peer::read() {
  std::array<char, 65536> buffer;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 4)> control{};
  iovec piece{.iov_base = buffer.data(), .iov_len = buffer.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = ::recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      descriptors_.emplace_back(fd);
    }
  }
  if (n == 0) return false;
  const std::string_view raw(buffer.data(), static_cast<std::size_t>(n));
  if (!channel_.plain()) return unseal(raw);
  in_.append(raw);
  return true;
}

std::optional<wire::Frame> Peer::next() {
  in_.erase(0, std::exchange(taken_, 0));
  wire::Frame frame;
  switch (wire::scan_frame(in_, most_frame_, frame)) {
    case wire::Scan::complete:
      taken_ = frame.size;
      return frame;
    case wire::Scan::incomplete:
      return std::nullopt;
    case wire::Scan::too_large:
    case wire::Scan::malformed:
      close();
      return std::nullopt;
  }
  return std::nullopt;
}

Fd Peer::take_descriptor() {
  if (descriptors_.empty()) return {};
  Fd fd = std::move(descriptors_.front());
  descriptors_.pop_front();
  return fd;
}

bool Peer::flush() {
  while (sent_ < out_.size()) {
    const ssize_t n =
        ::send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    sent_ += static_cast<std::size_t>(n);
  }
  out_.clear();
  sent_ = 0;
  return true;
}

bool send_with_descriptor(int socket, std::string_view frame, int descriptor) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec piece{.iov_base = const_cast<char*>(frame.data()), .iov_len = frame.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(frame.size());
}

}  // namespace berth::step
