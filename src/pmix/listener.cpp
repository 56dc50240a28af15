// What listener.h promises: bind, listen and accept of this program, which the PMIx library finds
// before the C library's. The first socket that it binds to an address of IPv4 becomes the
// supervisor's.
#include "pmix/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
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

/// Who is at the other end of a connection on this machine; -1 = cannot be told.
long owner_of(const sockaddr_in& from, const sockaddr_in& here) {
  std::FILE* table = std::fopen("/proc/net/tcp", "re");
  if (table == nullptr) return -1;
  char line[512];
  long owner = -1;
  while (owner < 0 && std::fgets(line, sizeof line, table) != nullptr) {
    unsigned local = 0;
    unsigned local_port = 0;
    unsigned remote = 0;
    unsigned remote_port = 0;
    unsigned uid = 0;
    const int read = std::sscanf(line, " %*u: %8x:%4x %8x:%4x %*x %*x:%*x %*x:%*x %*x %u", &local,
                                 &local_port, &remote, &remote_port, &uid);
    if (read == 5 && local == from.sin_addr.s_addr && local_port == ntohs(from.sin_port) &&
        remote == here.sin_addr.s_addr && remote_port == ntohs(here.sin_port)) {
      owner = static_cast<long>(uid);
    }
  }
  std::fclose(table);
  return owner;
}

bool welcome(int fd, uid_t user) {
  sockaddr_in from{};
  sockaddr_in here{};
  socklen_t size = sizeof from;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&from), &size) != 0) return false;
  size = sizeof here;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size) != 0) return false;
  const long owner = owner_of(from, here);
  return owner == 0 || owner == static_cast<long>(user);
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
