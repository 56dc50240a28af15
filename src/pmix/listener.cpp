// What listener.h promises: bind, listen and accept of this program, which the PMIx library finds
// before the C library's. The first socket that it binds to an address of IPv4 becomes the
// supervisor's.
#include "pmix/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>

namespace berth::pmix {
namespace {

struct Door {
  std::mutex mutex;
  std::condition_variable opened;
  bool open = false;
  int given = -1;  // the supervisor's socket
  int taken = -1;  // the library's number of it
  uid_t user = 0;
};
Door& door() {
  static Door one;  // the C library's functions have no argument for it
  return one;
}

/// Who owns the other end of a connection on this machine, by the kernel's own tables; -1 = cannot
/// be told. The owner of a socket that was closed is not known any more (the kernel says root).
long owner_of(const sockaddr_in& from, const sockaddr_in& here) {
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) return -1;
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } ask{};
  ask.header.nlmsg_len = sizeof ask;
  ask.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  ask.header.nlmsg_flags = NLM_F_REQUEST;
  ask.request.sdiag_family = AF_INET;
  ask.request.sdiag_protocol = IPPROTO_TCP;
  ask.request.idiag_states = ~0U;
  ask.request.id.idiag_sport = from.sin_port;
  ask.request.id.idiag_dport = here.sin_port;
  ask.request.id.idiag_src[0] = from.sin_addr.s_addr;
  ask.request.id.idiag_dst[0] = here.sin_addr.s_addr;
  ask.request.id.idiag_cookie[0] = ask.request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  long owner = -1;
  alignas(nlmsghdr) char answer[4096];
  if (::send(fd, &ask, sizeof ask, 0) == static_cast<ssize_t>(sizeof ask)) {
    const ssize_t n = ::recv(fd, answer, sizeof answer, 0);
    const auto* const header = reinterpret_cast<const nlmsghdr*>(answer);
    if (n > 0 && NLMSG_OK(header, static_cast<unsigned>(n)) &&
        header->nlmsg_type == SOCK_DIAG_BY_FAMILY &&
        header->nlmsg_len >= NLMSG_LENGTH(sizeof(inet_diag_msg))) {
      inet_diag_msg found;
      std::memcpy(&found, NLMSG_DATA(header), sizeof found);
      constexpr int kEstablished = 1;
      if (found.idiag_state == kEstablished && found.idiag_inode != 0) owner = found.idiag_uid;
    }
  }
  ::close(fd);
  return owner;
}

bool welcome(int fd, uid_t user) {
  sockaddr_in from{};
  sockaddr_in here{};
  socklen_t size = sizeof from;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&from), &size) != 0) return false;
  size = sizeof here;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size) != 0) return false;
  return owner_of(from, here) == static_cast<long>(user);
}

}  // namespace

void use_listener(int fd, uid_t user) {
  door().given = fd;
  door().user = user;
}

bool listener_was_taken() {
  return door().taken >= 0;
}

void open_the_door() {
  const std::scoped_lock lock(door().mutex);
  door().open = true;
  door().opened.notify_all();
}

}  // namespace berth::pmix

extern "C" {

int bind(int fd, const sockaddr* address, socklen_t size) noexcept {
  auto& door = berth::pmix::door();
  if (door.given >= 0 && door.taken < 0 && address != nullptr && address->sa_family == AF_INET) {
    if (::dup3(door.given, fd, O_CLOEXEC) < 0) return -1;
    ::close(door.given);
    door.taken = fd;
    return 0;
  }
  return static_cast<int>(::syscall(SYS_bind, fd, address, size));
}

int listen(int fd, int backlog) noexcept {
  if (fd == berth::pmix::door().taken) return 0;
  return static_cast<int>(::syscall(SYS_listen, fd, backlog));
}

int accept(int fd, sockaddr* address, socklen_t* size) {
  auto& door = berth::pmix::door();
  const bool ours = fd == door.taken;
  if (ours) {
    std::unique_lock lock(door.mutex);
    door.opened.wait(lock, [&] { return door.open; });
  }
  const int client = static_cast<int>(::syscall(SYS_accept4, fd, address, size, SOCK_CLOEXEC));
  if (client < 0 || !ours || berth::pmix::welcome(client, door.user)) return client;
  ::close(client);
  errno = ECONNABORTED;
  return -1;
}

}  // extern "C"
