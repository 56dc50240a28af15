#include "net/listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace berth::net {
namespace {

constexpr int kBacklog = 4096;
constexpr int kAcceptsPerRound = 64;  // then the connections there are get their turn

std::unexpected<Error> failed(const Address& address, const char* what) {
  return fail(Code::io, fmt::format("{} {}: {}", what, address.text(), std::strerror(errno)));
}

bool somebody_answers(const SocketAddress& target) {
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return probe && (::connect(probe.get(), target.get(), target.size) == 0 || errno == EAGAIN);
}

Fd spare() {
  return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(Loop& loop, const Address& address,
                                                 Options options, OnAccept on_accept) {
  Result<SocketAddress> target = resolve(address);
  if (!target) return pass(std::move(target.error()));
  Fd fd(::socket(target->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return failed(address, "cannot make a socket for");

  Address bound = address;
  if (address.is_unix()) {
    if (somebody_answers(*target)) {
      return fail(Code::io, fmt::format("another program listens on {}", address.path));
    }
    // Bound under another name and moved: nobody connects before the mode is set, and there is no
    // moment without a socket when a stale one is replaced.
    Address temporary = Address::unix_socket(fmt::format("{}.{}", address.path, ::getpid()));
    Result<SocketAddress> place = resolve(temporary);
    if (!place) return pass(std::move(place.error()));
    ::unlink(temporary.path.c_str());
    if (::bind(fd.get(), place->get(), place->size) != 0)
      return failed(address, "cannot listen on");
    if (::chmod(temporary.path.c_str(), options.mode) != 0 || ::listen(fd.get(), kBacklog) != 0 ||
        ::rename(temporary.path.c_str(), address.path.c_str()) != 0) {
      const auto error = failed(address, "cannot listen on");
      ::unlink(temporary.path.c_str());
      return error;
    }
  } else {
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(fd.get(), target->get(), target->size) != 0 || ::listen(fd.get(), kBacklog) != 0) {
      return failed(address, "cannot listen on");
    }
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0) {
      // sin_port and sin6_port are at the same place
      bound.port = ntohs(reinterpret_cast<sockaddr_in*>(&own)->sin_port);
    }
  }
  if (options.most == 0) options.most = std::max<std::size_t>(16, fd_limit() / 4 * 3);
  return std::unique_ptr<Listener>(
      new Listener(loop, std::move(bound), std::move(fd), options, std::move(on_accept)));
}

Listener::Listener(Loop& loop, Address address, Fd fd, Options options, OnAccept on_accept)
    : loop_(loop),
      address_(std::move(address)),
      fd_(std::move(fd)),
      reserve_(spare()),
      options_(options),
      on_accept_(std::move(on_accept)),
      connections_(std::make_shared<Connections>()) {
  loop_.watch(fd_.get(), {.read = true}, [this](Ready) { accept_some(); });
}

Listener::~Listener() {
  loop_.cancel(retry_);
  loop_.unwatch(fd_.get());
  if (address_.is_unix()) ::unlink(address_.path.c_str());
}

void Listener::accept_some() {
  for (int i = 0; i < kAcceptsPerRound; ++i) {
    Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        out_of_descriptors();
      }
      return;
    }
    while (connections_->size() >= options_.most && evict_oldest()) {
    }
    std::shared_ptr<Connection> connection = Connection::adopt(loop_, std::move(fd));
    if (connection->is_unix()) connection->limit_frames(wire::kMostBytes);
    connection->place_.owner = connections_;
    connection->place_.at = connections_->insert(connections_->end(), connection);
    on_accept_(std::move(connection));
  }
}

bool Listener::evict_oldest() {
  if (connections_->empty()) return false;
  const std::shared_ptr<Connection> oldest = connections_->front().lock();
  if (!oldest) {
    connections_->pop_front();
    return true;
  }
  if (oldest->state_ == Connection::State::started) {
    oldest->fail_with("it was silent and others wait");
  } else {
    oldest->abort();
  }
  return true;
}

void Listener::out_of_descriptors() {
  if (evict_oldest()) return;  // accepted in the next round
  // Every connection is one that matters. The new one is turned away, so that it does not wait for
  // nothing and the loop is not woken for it again and again.
  reserve_.reset();
  const bool dropped = Fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)).get() >= 0;
  reserve_ = spare();
  if (dropped && reserve_) return;
  loop_.change(fd_.get(), {});
  loop_.cancel(retry_);
  retry_ = loop_.after(std::chrono::milliseconds(100), [this] {
    if (!reserve_) reserve_ = spare();
    loop_.change(fd_.get(), {.read = true});
  });
}

}  // namespace berth::net
