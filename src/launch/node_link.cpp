#include "launch/node_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace berth::launch {

Result<void> NodeLink::dial() {
  const auto where = net::resolve(address_);
  if (!where) return pass(where.error());
  Fd fd(::socket(where->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return net::unreachable(address_, errno);
  if (::connect(fd.get(), where->get(), where->size) == 0) {
    connecting_ = std::move(fd);
    return connected();
  }
  if (errno == EAGAIN) return {};  // a unix socket whose queue is full
  if (errno != EINPROGRESS) return net::unreachable(address_, errno);
  connecting_ = std::move(fd);
  state_ = State::connecting;
  return {};
}

Result<void> NodeLink::connected() {
  client_.emplace(std::move(connecting_));
  state_ = State::open;
  if (address_.is_unix()) {
    client_->queue_bytes(request_);
  } else {
    if (session_.name.empty()) {
      return fail(Code::no_credential, "the controller gave no key for a session with this node");
    }
    auto handover = tls::Handover::open(session_, request_);
    if (!handover) return pass(std::move(handover.error()));
    client_->secure(tls::Channel(std::move(*handover)));
    state_ = State::proving;
  }
  client_->queue_bytes(kept_);
  return client_->flush();
}

void NodeLink::again() {
  client_.reset();
  connecting_.reset();
  state_ = State::idle;
}

Result<void> NodeLink::ready(short events) {
  if (state_ == State::connecting) {
    if ((events & (POLLOUT | POLLERR | POLLHUP)) == 0) return {};
    int problem = 0;
    socklen_t size = sizeof problem;
    ::getsockopt(connecting_.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
    if (problem != 0) return net::unreachable(address_, problem);
    return connected();
  }
  if (client_ && client_->wants_write()) return client_->flush();
  return {};
}

Result<std::optional<wire::Frame>> NodeLink::next() {
  if (!client_) return std::nullopt;
  auto frame = client_->try_receive();
  // An agent that refuses says so itself, before there is anybody to hand over to.
  if (state_ == State::proving && frame && (*frame || client_->proven())) state_ = State::open;
  return frame;
}

void NodeLink::close() {
  state_ = State::closed;
  client_.reset();
  connecting_.reset();
}

int NodeLink::fd() const {
  if (state_ == State::connecting) return connecting_.get();
  return client_ ? client_->fd() : -1;
}

short NodeLink::events() const {
  if (state_ == State::connecting) return POLLOUT;
  return static_cast<short>(POLLIN | (client_ && client_->wants_write() ? POLLOUT : 0));
}

}  // namespace berth::launch
