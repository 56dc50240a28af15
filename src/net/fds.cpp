#include "net/fds.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace berth::net {
namespace {

std::unexpected<Error> failed(const char* what) {
  return fail(Code::io, fmt::format("{}: {}", what, std::strerror(errno)));
}

void wait_for(int socket, short events) {
  pollfd one{socket, events, 0};
  ::poll(&one, 1, -1);
}

constexpr std::size_t kLengthBytes = 4;

/// Reads exactly `count` bytes; false at end of file or error.
bool read_all(int socket, char* at, std::size_t count) {
  while (count > 0) {
    const ssize_t got = ::recv(socket, at, count, 0);
    if (got > 0) {
      at += got;
      count -= static_cast<std::size_t>(got);
    } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      wait_for(socket, POLLIN);
    } else if (got == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

// The descriptor rides on the first byte of a length, the text follows: this also works on a stream
// socket, where a text longer than the socket's buffer is taken in pieces.
Result<void> send_fd(int socket, int fd, std::string_view text) {
  if (text.size() > kMostWithFd) return fail(Code::limit, "too much text with a descriptor");
  std::string bytes(kLengthBytes, '\0');
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    bytes[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  }
  bytes.append(text);

  std::size_t sent = 0;
  while (sent < bytes.size()) {
    iovec piece{bytes.data() + sent, bytes.size() - sent};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    if (sent == 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    const ssize_t count = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for(socket, POLLOUT);
    } else if (errno != EINTR) {
      return failed("cannot hand over a descriptor");
    }
  }
  return {};
}

Result<ReceivedFd> receive_fd(int socket) {
  ReceivedFd received;
  char length[kLengthBytes];
  iovec piece{length, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t count = 0;
  while ((count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for(socket, POLLIN);
    } else if (errno != EINTR) {
      return failed("cannot receive a descriptor");
    }
  }
  if (count == 0) return received;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    received.fd.reset(fd);
  }
  if (!received.fd) return fail(Code::protocol, "a descriptor was expected");
  if (!read_all(socket, length + 1, kLengthBytes - 1)) return failed("descriptor without text");
  std::size_t size = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    size |= static_cast<std::size_t>(static_cast<unsigned char>(length[i])) << (8 * i);
  }
  if (size > kMostWithFd) return fail(Code::limit, "too much text with a descriptor");
  received.text.resize(size);
  if (!read_all(socket, received.text.data(), size)) return failed("descriptor without text");
  return received;
}

void set_nonblocking(int fd, bool on) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0) ::fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

void set_cloexec(int fd, bool on) {
  const int flags = ::fcntl(fd, F_GETFD);
  if (flags >= 0) ::fcntl(fd, F_SETFD, on ? flags | FD_CLOEXEC : flags & ~FD_CLOEXEC);
}

std::size_t raise_fd_limit() {
  constexpr rlim_t kEnough = 1048576;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t wanted = std::min(limit.rlim_max, kEnough);
  if (limit.rlim_cur < wanted) {
    const rlimit raised{wanted, limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) return wanted;
  }
  return limit.rlim_cur;
}

std::size_t fd_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return std::min<std::size_t>(limit.rlim_cur, 1048576);
}

Result<Peer> peer_of(int socket) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
    return failed("cannot see who is connected");
  }
  return Peer{who.uid, who.gid, who.pid};
}

}  // namespace berth::net
