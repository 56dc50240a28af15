// Descriptors over unix sockets (SCM_RIGHTS), and the flags of descriptors.
//
// The agent hands an attached client to a running supervisor so:
//   auto released = connection->release();
//   net::send_fd(supervisor_fd, released.fd.get(), framed(attach) + released.unread);
// and the supervisor reads it with receive_fd(). The socket should carry nothing else; both calls
// wait for the other side when the socket is full or empty.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace berth::net {

inline constexpr std::size_t kMostWithFd = 128 * 1024;

/// Sends `text` (may be empty, at most kMostWithFd) with one descriptor. The caller keeps its own
/// copy.
Result<void> send_fd(int socket, int fd, std::string_view text);

struct ReceivedFd {
  Fd fd;  // none when the other side closed
  std::string text;
};
/// Waits for one send_fd(). The descriptor is close-on-exec.
Result<ReceivedFd> receive_fd(int socket);

void set_nonblocking(int fd, bool on);
void set_cloexec(int fd, bool on);
/// Raises the soft limit of open descriptors to the hard one (at most 1,048,576); returns the limit
/// now in force. Daemons call it at start; what they spawn gets the old limit back from them.
std::size_t raise_fd_limit();
/// The soft limit now in force, at most 1,048,576.
std::size_t fd_limit();

struct Peer {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;
};
/// SO_PEERCRED of a unix socket.
Result<Peer> peer_of(int socket);

}  // namespace berth::net
