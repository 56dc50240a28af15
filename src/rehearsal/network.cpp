// What network.h promises.
#include "rehearsal/network.h"

#include <algorithm>

namespace berth::rehearsal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kDialPatience{5};
constexpr seconds kLongestDelay{4};

}  // namespace

Host Socket::other_host() const {
  return other_host_;
}

void Socket::push(Item item) {
  item.due = std::max(last_due_, network_->agenda_.now() + network_->delay(usual_));
  last_due_ = item.due;
  under_way_.push_back(std::move(item));
  pump();
}

void Socket::send(std::string frame) {
  if (open_) push({.due = {}, .frame = std::move(frame)});
}

void Socket::close() {
  if (!std::exchange(open_, false)) return;
  handlers_ = {};
  push({.due = {}, .frame = {}, .end = true});
}

void Socket::vanish() {
  if (!std::exchange(open_, false)) return;
  handlers_ = {};
  vanished_ = true;
  under_way_.clear();
}

/// Writes down when the first of what is under way arrives. Who does so keeps this end alive until
/// all has arrived.
void Socket::pump() {
  if (pumping_ || under_way_.empty()) return;
  pumping_ = true;
  network_->agenda_.at(under_way_.front().due, [self = shared_from_this()] {
    self->pumping_ = false;
    if (self->under_way_.empty()) return;
    if (!self->network_->passes(self->host_, self->other_host_)) {
      return self->network_->stalled_.push_back(self);
    }
    Item item = std::move(self->under_way_.front());
    self->under_way_.pop_front();
    self->pump();
    if (const auto other = self->other_.lock()) return other->receive(std::move(item));
    if (self->open_ && !item.end) {
      // Nobody remembers this connection there.
      const auto closed = std::move(self->handlers_.closed);
      self->open_ = false;
      self->handlers_ = {};
      if (closed) closed();
    }
  });
}

void Socket::receive(Item item) {
  if (vanished_ && !item.end) {
    // The machine is up again, and says that it knows no such connection.
    if (const auto other = other_.lock(); other && other->open_) {
      const auto closed = std::move(other->handlers_.closed);
      other->open_ = false;
      other->handlers_ = {};
      if (closed) closed();
    }
    return;
  }
  if (!open_) return;
  const auto self = shared_from_this();
  if (item.end) {
    const auto closed = std::move(handlers_.closed);
    open_ = false;
    handlers_ = {};
    if (closed) closed();
    return;
  }
  if (const auto frame = handlers_.frame) frame(item.frame);
}

Network::~Network() {
  for (const auto& weak : all_) {
    if (const auto socket = weak.lock())
      const Socket::Handlers end = std::exchange(socket->handlers_, {});
  }
}

Moment Network::delay(Moment usual) {
  return usual / 2 + random_.skewed(usual, kLongestDelay);
}

void Network::dial(Host from, Host to, std::uint32_t uid, Dialled done) {
  const Moment usual = random_.between(microseconds(50), milliseconds(2));
  const Moment wait = delay(usual);
  agenda_.after(wait, [this, from, to, uid, usual, wait, done = std::move(done)]() mutable {
    if (!passes(from, to) || !passes(to, from)) {
      agenda_.after(kDialPatience - std::min<Moment>(wait, kDialPatience),
                    [done = std::move(done)]() mutable { done(nullptr); });
      return;
    }
    const auto listener = listeners_.find(to);
    if (listener == listeners_.end()) return done(nullptr);
    const auto near = std::make_shared<Socket>();
    const auto far = std::make_shared<Socket>();
    const auto set = [&](Socket& socket, Host own, Host others, const std::shared_ptr<Socket>& o) {
      socket.network_ = this;
      socket.host_ = own;
      socket.other_host_ = others;
      socket.other_ = o;
      socket.uid_ = uid;
      socket.usual_ = usual;
    };
    set(*near, from, to, far);
    set(*far, to, from, near);
    all_.insert(all_.end(), {near, far});
    const Accept accept = listener->second;
    accept(far);
    done(near);
  });
}

void Network::heal(Host from, Host to) {
  cuts_.erase({from, to});
  wake_stalled();
}

void Network::heal_all() {
  cuts_.clear();
  wake_stalled();
}

void Network::set_power(Host host, bool on) {
  if (!on) {
    dark_.insert(host);
    return;
  }
  dark_.erase(host);
  wake_stalled();
}

void Network::wake_stalled() {
  for (const auto& socket : std::exchange(stalled_, {})) {
    const Moment soon = agenda_.now() + delay(socket->usual_);
    for (Socket::Item& item : socket->under_way_) item.due = std::max(item.due, soon);
    socket->last_due_ = std::max(socket->last_due_, soon);
    socket->pump();
  }
}

}  // namespace berth::rehearsal
