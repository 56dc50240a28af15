#include "command/launch_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "auth/munge.h"

namespace berth::command {
namespace {

std::unexpected<Error> unreachable(const net::Address& address, int problem) {
  return fail(Code::no_connection,
              fmt::format("cannot reach {}: {}", address.text(), std::strerror(problem)));
}

}  // namespace

Result<void> NodeLink::dial() {
  const auto where = net::resolve(start_.address);
  if (!where) return pass(where.error());
  Fd fd(::socket(where->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return unreachable(start_.address, errno);
  if (::connect(fd.get(), where->get(), where->size) == 0) {
    connecting_ = std::move(fd);
    return connected();
  }
  if (errno == EAGAIN) return {};  // a unix socket whose queue is full
  if (errno != EINPROGRESS) return unreachable(start_.address, errno);
  connecting_ = std::move(fd);
  state_ = State::connecting;
  return {};
}

Result<void> NodeLink::connected() {
  client_.emplace(std::move(connecting_));
  if (start_.address.is_unix()) {
    state_ = State::starting;
  } else {
    auto hello = auth::make_hello(program_);
    if (!hello) return pass(std::move(hello.error()));
    client_->queue(*hello);
    state_ = State::greeting;
  }
  client_->queue_bytes(start_.frames);
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
    if (problem != 0) return unreachable(start_.address, problem);
    return connected();
  }
  if (client_ && client_->wants_write()) return client_->flush();
  return {};
}

Result<std::optional<wire::Frame>> NodeLink::next() {
  if (!client_ || over()) return std::nullopt;
  auto frame = client_->try_receive();
  if (!frame || !*frame || state_ != State::greeting) return frame;
  auto hello = net::Client::reply_in<wire::Hello>(**frame);
  if (!hello) return pass(std::move(hello.error()));
  if (auto who = auth::check_hello(*hello); !who) return pass(std::move(who.error()));
  state_ = State::starting;
  return client_->try_receive();
}

void NodeLink::set_state(State state) {
  state_ = state;
  if (state == State::running) start_.frames = {};  // not needed again, and perhaps large
  if (over()) client_.reset();
}

int NodeLink::fd() const {
  if (state_ == State::connecting) return connecting_.get();
  return client_ && !over() ? client_->fd() : -1;
}

short NodeLink::events() const {
  if (state_ == State::connecting) return POLLOUT;
  return static_cast<short>(POLLIN | (client_ && client_->wants_write() ? POLLOUT : 0));
}

}  // namespace berth::command
