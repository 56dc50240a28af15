// Connecting without blocking the loop.
#include <sys/socket.h>

#include <cerrno>

#include "net/connection.h"

namespace berth::net {
namespace {

using Done = std::move_only_function<void(Result<std::shared_ptr<Connection>>)>;

/// One attempt; the watch and the timer own it.
struct Attempt {
  Loop& loop;
  Address address;
  Fd fd;
  Done done;
  TimerId timer = TimerId::none;

  void end(int trouble) {
    loop.cancel(timer);
    loop.unwatch(fd.get());
    if (trouble != 0) {
      done(unreachable(address, trouble));
    } else {
      done(Connection::adopt(loop, std::move(fd)));
    }
  }
};

}  // namespace

void Connection::dial(Loop& loop, const Address& address, Clock::duration patience, Done done) {
  const auto refuse = [&](std::unexpected<Error> error) {
    loop.post(
        [done = std::move(done), error = std::move(error)]() mutable { done(std::move(error)); });
  };
  Result<SocketAddress> target =
      resolve(address, std::chrono::duration_cast<std::chrono::milliseconds>(patience));
  if (!target) return refuse(pass(std::move(target.error())));
  Fd fd(::socket(target->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return refuse(unreachable(address, errno));
  const bool at_once = ::connect(fd.get(), target->get(), target->size) == 0;
  if (!at_once && errno != EINPROGRESS) return refuse(unreachable(address, errno));

  auto attempt = std::make_shared<Attempt>(Attempt{loop, address, std::move(fd), std::move(done)});
  if (at_once) return loop.post([attempt] { attempt->end(0); });
  loop.watch(attempt->fd.get(), {.write = true}, [attempt](Ready) {
    int trouble = 0;
    socklen_t size = sizeof trouble;
    ::getsockopt(attempt->fd.get(), SOL_SOCKET, SO_ERROR, &trouble, &size);
    attempt->end(trouble);
  });
  attempt->timer = loop.after(patience, [attempt] { attempt->end(ETIMEDOUT); });
}

}  // namespace berth::net
