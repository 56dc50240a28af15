#include "net/client.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace berth::net {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// A small reply costs few pages, a large one few calls.
constexpr std::size_t kLeastRead = 16 * 1024;
constexpr std::size_t kMostRead = 1024 * 1024;

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK;
}

/// Whether `fd` is ready before the deadline.
bool wait_until(int fd, short events, SteadyClock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
    pollfd one{fd, events, 0};
    const int count =
        ::poll(&one, 1, static_cast<int>(std::clamp<decltype(left)>(left, 0, 3'600'000)));
    if (count > 0) return true;
    if (count == 0 && left <= 0) return false;
    if (count < 0 && errno != EINTR) return false;
  }
}

std::unexpected<Error> broken(int trouble) {
  return fail(Code::no_connection,
              trouble == 0 ? "the connection was closed"
                           : fmt::format("the connection broke: {}", std::strerror(trouble)));
}
std::unexpected<Error> too_late() {
  return fail(Code::timed_out, std::string(slurm_text(Code::timed_out)));
}

}  // namespace

Result<Client> Client::connect(const Address& address, Patience patience) {
  const SteadyClock::time_point deadline = SteadyClock::now() + patience;
  Result<SocketAddress> target = resolve(address, patience);
  if (!target) return pass(std::move(target.error()));
  Fd fd(::socket(target->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return unreachable(address, errno);
  while (::connect(fd.get(), target->get(), target->size) != 0) {
    if (errno == EINTR) continue;
    if (errno == EINPROGRESS || errno == EALREADY) {
      if (!wait_until(fd.get(), POLLOUT, deadline)) return unreachable(address, ETIMEDOUT);
      int trouble = 0;
      socklen_t size = sizeof trouble;
      ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &trouble, &size);
      if (trouble != 0) return unreachable(address, trouble);
      break;
    }
    // A unix socket with a full backlog: the server is busy, and nothing tells when it is not.
    if (errno != EAGAIN || SteadyClock::now() >= deadline) return unreachable(address, errno);
    ::poll(nullptr, 0, 2);
  }
  return Client(std::move(fd));
}

Client::Client(Fd fd, std::string unread) : fd_(std::move(fd)), in_(std::move(unread)) {
  set_nonblocking(fd_.get(), true);
  const int on = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // fails on unix sockets
}

void Client::secure(tls::Channel channel) {
  channel_ = std::move(channel);
  channel_.begin(out_);
}

Result<void> Client::shake_hands(Patience patience) {
  const SteadyClock::time_point deadline = SteadyClock::now() + patience;
  while (!channel_.established()) {
    if (auto sent = flush(); !sent) return sent;
    if (!wait_until(fd_.get(), events(), deadline)) return too_late();
    if (auto got = read_once(); !got) return pass(std::move(got.error()));
  }
  return flush();
}

short Client::events() const {
  return static_cast<short>(POLLIN | (wants_write() ? POLLOUT : 0));
}

Result<void> Client::flush() {
  while (sent_ < out_.size()) {
    const ssize_t count = ::send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (count >= 0) {
      sent_ += static_cast<std::size_t>(count);
    } else if (would_block()) {
      break;
    } else if (errno != EINTR) {
      return broken(errno);
    }
  }
  if (sent_ == out_.size()) {
    out_.clear();
    sent_ = 0;
  } else if (sent_ > 1024 * 1024 && sent_ > out_.size() / 2) {
    out_.erase(0, sent_);
    sent_ = 0;
  }
  return {};
}

Result<void> Client::flush_all(Patience patience) {
  const SteadyClock::time_point deadline = SteadyClock::now() + patience;
  for (;;) {
    if (auto done = flush(); !done || !wants_write()) return done;
    if (!wait_until(fd_.get(), POLLOUT, deadline)) return too_late();
  }
}

void Client::drop_taken() {
  begin_ += taken_;
  taken_ = 0;
  if (begin_ == in_.size()) {
    in_.clear();
    begin_ = 0;
  }
}

Result<bool> Client::scan(wire::Frame& frame) {
  switch (wire::scan_frame(std::string_view(in_).substr(begin_), wire::kMostBytes, frame)) {
    case wire::Scan::complete:
      taken_ = frame.size;
      return true;
    case wire::Scan::incomplete:
      return false;
    case wire::Scan::too_large:
    case wire::Scan::malformed:
      break;
  }
  return fail(Code::protocol, std::string(slurm_text(Code::protocol)));
}

Result<bool> Client::read_once() {
  if (begin_ > 0) {
    in_.erase(0, begin_);
    begin_ = 0;
  }
  const std::size_t before = in_.size();
  const std::size_t room = std::clamp(before, kLeastRead, kMostRead);
  std::string sealed;
  std::string& raw = channel_.plain() ? in_ : sealed;
  const std::size_t start = raw.size();
  raw.resize(start + room);
  ssize_t count = 0;
  do {
    count = ::recv(fd_.get(), raw.data() + start, room, 0);
  } while (count < 0 && errno == EINTR);
  const int trouble = errno;
  raw.resize(start + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  if (count > 0) {
    if (channel_.plain()) return true;
    auto done = channel_.take(sealed, in_, out_);
    // An alert, or what waited for the handshake. To whom nothing can be sent any more may have
    // said why, so what came counts first; whoever sends next hears of it.
    static_cast<void>(flush());
    if (!done) return pass(std::move(done.error()));
    return true;
  }
  if (count == 0) return broken(0);
  errno = trouble;
  if (would_block()) return false;
  return broken(trouble);
}

Result<wire::Frame> Client::receive(Patience patience) {
  const SteadyClock::time_point deadline = SteadyClock::now() + patience;
  drop_taken();
  for (;;) {
    wire::Frame frame;
    Result<bool> complete = scan(frame);
    if (!complete) return pass(std::move(complete.error()));
    if (*complete) return frame;
    // A TLS session may have more to say once the other side is proven.
    if (auto sent = flush(); !sent) return pass(std::move(sent.error()));
    if (!wait_until(fd_.get(), events(), deadline)) return too_late();
    if (auto got = read_once(); !got) return pass(std::move(got.error()));
  }
}

Result<std::optional<wire::Frame>> Client::try_receive() {
  drop_taken();
  for (int round = 0; round < 2; ++round) {
    wire::Frame frame;
    Result<bool> complete = scan(frame);
    if (!complete) return pass(std::move(complete.error()));
    if (*complete) return frame;
    if (round == 1) break;
    Result<bool> got = read_once();
    if (!got) return pass(std::move(got.error()));
    if (!*got) break;
  }
  return std::nullopt;
}

bool Client::has_frame() {
  wire::Frame frame;
  return wire::scan_frame(std::string_view(in_).substr(begin_ + taken_), wire::kMostBytes, frame) ==
         wire::Scan::complete;
}

std::unexpected<Error> Client::unexpected_frame(const wire::Frame& frame) {
  if (frame.kind == wire::Kind::Done) {
    const std::optional<wire::Done> done = wire::decode<wire::Done>(frame.payload);
    if (done && done->has_refusal()) return pass(wire::from_refusal(done->refusal()));
  }
  return fail(Code::protocol, std::string(slurm_text(Code::protocol)),
              fmt::format("the answer was {}", wire::name_of(frame.kind)));
}

}  // namespace berth::net
