#include "net/connection.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace berth::net {
namespace {

bool try_again() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

int family_of(int fd) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) return AF_UNSPEC;
  return own.ss_family;
}

}  // namespace

std::shared_ptr<Connection> Connection::adopt(Loop& loop, Fd fd, std::string unread) {
  return std::shared_ptr<Connection>(new Connection(loop, std::move(fd), std::move(unread)));
}

Connection::Connection(Loop& loop, Fd fd, std::string unread)
    : loop_(loop), fd_(std::move(fd)), in_(std::move(unread)) {
  set_nonblocking(fd_.get(), true);
  if (family_of(fd_.get()) == AF_UNIX) {
    if (auto peer = peer_of(fd_.get())) peer_ = *peer;
  } else {
    const int on = 1;  // frames are whole when they are sent: nothing to wait for
    ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
}

Connection::~Connection() {
  finish();
}

void Connection::secure(tls::Stream session) {
  channel_ = tls::Channel(std::move(session));
  channel_.begin(out_);
}

void Connection::secure_handover(tls::Stream session) {
  secure(std::move(session));
  one_request_ = true;
}

void Connection::start(Handlers handlers) {
  if (state_ != State::idle) return;
  handlers_ = std::make_shared<Handlers>(std::move(handlers));
  state_ = State::started;
  if (!out_.empty()) flush();
  if (!channel_.plain() && !in_.empty()) {
    std::string plain;
    if (!unseal(std::exchange(in_, {}), plain)) return;
    in_ = std::move(plain);
  }
  resume();
}

void Connection::send_bytes(std::string_view frames) {
  if (!open()) return;
  channel_.put(frames, out_);
  flush_soon();
}

void Connection::send_bytes(std::string&& frames) {
  if (!out_.empty() || !channel_.plain()) return send_bytes(std::string_view(frames));
  if (!open()) return;
  out_ = std::move(frames);
  flush_soon();
}

void Connection::flush_soon() {
  was_congested_ = was_congested_ || congested();
  // Tried at once only when nothing waits: a long backlog goes out when the socket says so.
  if (backlog() > most_backlog_) {
    // Not from within send(): its caller may be in the middle of a walk over its connections.
    loop_.post([weak = weak_from_this()] {
      if (auto self = weak.lock(); self && self->open()) self->fail_with("it reads too slowly");
    });
    return;
  }
  if (!interest_.write) flush();
}

void Connection::flush() {
  while (sent_ < out_.size()) {
    const ssize_t count = ::send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (count > 0) {
      sent_ += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      // A peer that is gone is found by reading, in the loop; here there is only nothing to do.
      if (!try_again()) sent_ = out_.size();
      break;
    }
  }
  was_congested_ = was_congested_ || congested();
  if (sent_ == out_.size()) {
    std::string().swap(out_);  // an idle connection keeps no buffer
    sent_ = 0;
  } else if (sent_ > 1024 * 1024 && sent_ > out_.size() / 2) {
    out_.erase(0, sent_);
    sent_ = 0;
  }
  watch_again();
}

void Connection::watch_again() {
  if (!fd_) return;
  const bool shaking_hands = state_ == State::closing && channel_.kept() > 0;
  const Interest wanted{
      .read = (state_ == State::started && !paused_ && !holding_) || shaking_hands,
      .write = sent_ < out_.size()};
  if (!watched_) {
    if (!wanted.read && !wanted.write) return;
    watched_ = true;
    interest_ = wanted;
    self_.reset();
    loop_.watch(fd_.get(), wanted, [self = shared_from_this()](Ready now) { self->ready(now); });
  } else if (wanted != interest_) {
    interest_ = wanted;
    loop_.change(fd_.get(), wanted);
  }
}

void Connection::ready(Ready now) {
  const std::shared_ptr<Connection> kept = shared_from_this();
  if (now.write || now.error) flush();
  if (state_ == State::closing) {
    if (now.read && channel_.kept() > 0) read_handshake();
    if (state_ == State::closing && (backlog() == 0 || now.error)) finish();
    return;
  }
  if (state_ != State::started) {
    if (now.error) finish();
    return;
  }
  if (was_congested_ && backlog() == 0) {
    was_congested_ = false;
    if (const auto now_in_use = handlers_; now_in_use->on_drained) now_in_use->on_drained(*this);
    if (state_ != State::started) return;
  }
  if (now.read || now.error) {
    if (!paused_ && !holding_) {
      read();
    } else if (now.error) {
      // A hang-up is reported whatever we ask for. What the peer sent before waits for resume().
      self_ = kept;
      loop_.unwatch(fd_.get());
      watched_ = false;
      interest_ = {};
    }
  }
}

void Connection::read() {
  std::vector<char>& scratch = loop_.scratch();
  const ssize_t count = ::recv(fd_.get(), scratch.data(), scratch.size(), 0);
  if (count < 0) {
    if (!try_again()) fail_with(std::strerror(errno));
    return;
  }
  if (count == 0) {
    fail_with(in_.empty() ? "" : "it closed in the middle of a frame");
    return;
  }
  std::string_view fresh(scratch.data(), static_cast<std::size_t>(count));
  const bool had_some = !in_.empty();
  std::string plain;
  if (!channel_.plain()) {
    if (!unseal(fresh, plain)) return;
    fresh = plain;
  }
  if (one_request_) {
    in_.append(fresh);
    if (!request_is_whole()) return;
    const std::size_t used = take_frames(in_);
    if (state_ == State::started) in_.erase(0, used);
  } else if (in_.empty()) {
    // A callback may run into this function again only through the loop, so scratch stays as it is.
    const std::size_t used = take_frames(fresh);
    if (state_ == State::started) in_.assign(fresh.substr(used));
  } else {
    in_.append(fresh);
    const std::size_t used = take_frames(in_);
    if (state_ == State::started) in_.erase(0, used);
  }
  if (state_ == State::started && in_.empty() && in_.capacity() > 1024) std::string().swap(in_);
  tell_partial(had_some);
}

bool Connection::unseal(std::string_view raw, std::string& plain) {
  const bool was_established = channel_.established();
  const auto done = channel_.take(raw, plain, out_);
  if (sent_ < out_.size()) flush();
  if (!done) {
    fail_with(done.error().what());
    return false;
  }
  if (!was_established && channel_.established()) {
    if (const auto now_in_use = handlers_; now_in_use->on_secured) now_in_use->on_secured(*this);
    if (state_ != State::started) return false;
  }
  if (channel_.stream()->ended() && !one_request_ && plain.empty()) {
    fail_with(in_.empty() ? "" : "it closed in the middle of a frame");
    return false;
  }
  return true;
}

void Connection::read_handshake() {
  std::vector<char>& scratch = loop_.scratch();
  const ssize_t count = ::recv(fd_.get(), scratch.data(), scratch.size(), 0);
  if (count < 0 && try_again()) return;
  std::string unwanted;
  if (count <= 0 ||
      !channel_.take({scratch.data(), static_cast<std::size_t>(count)}, unwanted, out_)) {
    return finish();
  }
  flush();
}

bool Connection::request_is_whole() {
  wire::Frame frame;
  const wire::Scan scan = wire::scan_frame(in_, most_frame_, frame);
  if (scan == wire::Scan::too_large) {
    fail_with("it sent a frame that is too large");
  } else if (scan == wire::Scan::malformed) {
    fail_with("it sent what is no frame");
  } else if (scan == wire::Scan::complete && frame.size < in_.size()) {
    fail_with("it sent more than one request");
  } else if (channel_.stream()->ended()) {
    if (scan == wire::Scan::complete) return true;
    fail_with("it closed in the middle of a frame");
  } else {
    tell_partial(true);
  }
  return false;
}

void Connection::tell_partial(bool had_some) {
  if (state_ != State::started || (in_.empty() && !had_some)) return;
  const auto now_in_use = handlers_;
  if (!now_in_use->on_partial) return;
  const std::size_t held = in_.empty() ? 0 : std::max<std::size_t>(in_.capacity(), in_.size());
  now_in_use->on_partial(*this, held, wire::frame_bytes(in_));
}

std::size_t Connection::take_frames(std::string_view bytes) {
  std::size_t used = 0;
  in_frames_ = true;
  while (state_ == State::started && !paused_) {
    wire::Frame frame;
    const wire::Scan scan = wire::scan_frame(bytes.substr(used), most_frame_, frame);
    if (scan == wire::Scan::incomplete) break;
    if (scan != wire::Scan::complete) {
      in_frames_ = false;
      fail_with(scan == wire::Scan::too_large ? "it sent a frame that is too large"
                                              : "it sent what is no frame");
      return used;
    }
    used += frame.size;
    if (place_.owner) {
      place_.owner->splice(place_.owner->end(), *place_.owner, place_.at);  // heard of it now
    }
    unread_ = bytes.substr(used);
    if (const auto now_in_use = handlers_; now_in_use->on_frame) now_in_use->on_frame(*this, frame);
  }
  in_frames_ = false;
  unread_ = {};
  return used;
}

void Connection::pause() {
  if (paused_) return;
  paused_ = true;
  watch_again();
}

void Connection::resume() {
  paused_ = false;
  if (state_ != State::started) return;
  if (in_frames_ || in_.empty()) return watch_again();
  // Frames that were read before the pause come first, and not from here: the caller may be in the
  // middle of something.
  if (std::exchange(holding_, true)) return;
  self_ = shared_from_this();
  loop_.post([weak = weak_from_this()] {
    const std::shared_ptr<Connection> self = weak.lock();
    if (!self || self->state_ != State::started) return;
    self->holding_ = false;
    const std::size_t used = self->take_frames(self->in_);
    if (self->state_ != State::started) return;
    self->in_.erase(0, used);
    self->tell_partial(true);
    if (self->state_ != State::started) return;
    self->watch_again();
    if (self->watched_) self->self_.reset();
  });
}

Connection::Released Connection::release() {
  Released released;
  released.unread = in_frames_ ? std::string(unread_) : std::move(in_);
  if (tls::Stream* session = channel_.stream()) {
    // The request was whole and alone: what is unread belongs to the session that follows.
    released.key = session->binding(tls::kHandoverPurpose);
    released.unread = session->rest();
    session->end(out_);
  }
  released.unsent = out_.substr(sent_);
  if (watched_) loop_.unwatch(fd_.get());
  watched_ = false;
  released.fd = std::move(fd_);
  finish();
  return released;
}

Result<std::shared_ptr<Connection>> Connection::take_up(Loop& loop, Released released) {
  auto connection = adopt(loop, std::move(released.fd), std::move(released.unread));
  connection->out_ = std::move(released.unsent);
  if (!released.key.empty()) {
    auto session = tls::take_over(released.key);
    if (!session) return pass(std::move(session.error()));
    connection->secure(std::move(*session));
  }
  return connection;
}

void Connection::close(Clock::duration patience) {
  if (!open()) return;
  if (backlog() == 0) {
    finish();
    return;
  }
  state_ = State::closing;
  handlers_.reset();
  watch_again();
  deadline_ = loop_.after(patience, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->abort();
  });
}

void Connection::abort() {
  finish();
}

void Connection::fail_with(std::string_view reason) {
  const std::shared_ptr<Connection> kept = shared_from_this();
  const std::shared_ptr<Handlers> last = handlers_;
  finish();
  if (last && last->on_closed) last->on_closed(*this, reason);
}

void Connection::finish() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  const std::shared_ptr<Connection> kept = weak_from_this().lock();  // none in the destructor
  self_.reset();
  loop_.cancel(deadline_);
  if (watched_) loop_.unwatch(fd_.get());
  watched_ = false;
  fd_.reset();
  forget_place();
  handlers_.reset();
}

void Connection::keep() {
  forget_place();
}

void Connection::forget_place() {
  if (!place_.owner) return;
  place_.owner->erase(place_.at);
  place_.owner.reset();
}

std::string Connection::remote_host() const {
  sockaddr_storage other{};
  socklen_t size = sizeof other;
  if (!fd_ || ::getpeername(fd_.get(), reinterpret_cast<sockaddr*>(&other), &size) != 0) return {};
  return number_of(reinterpret_cast<const sockaddr&>(other));
}

}  // namespace berth::net
