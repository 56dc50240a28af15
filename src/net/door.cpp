#include "net/door.h"

#include <utility>
#include <vector>

#include "wire/refusal.h"

namespace berth::net {

struct Door::Core : std::enable_shared_from_this<Core> {
  struct Inside {
    std::weak_ptr<Connection> connection;
    Evicted evicted;
    Visit* visit = nullptr;
  };
  Core(Loop& l, QuotaLimits limits) : loop(l), quota(limits) {}

  Quota::Admission admit(Guest guest, const Who& who) {
    return who.certificate.empty() ? quota.enter(guest, who.uid, who.free)
                                   : quota.enter_node(guest, who.certificate);
  }
  static void tell(Connection& connection, Code code, const std::string& why) {
    if (!connection.open()) return;
    wire::Done done;
    *done.mutable_refusal() =
        wire::to_refusal(fail(code, why, "docs/limits.md has the limits of each user").error());
    connection.send(done);
  }
  static void turn_away(Connection& connection, const std::string& why) {
    tell(connection, Code::limit, why);
    connection.close(std::chrono::seconds(1));
  }
  void evict(Guest guest, Code code, const std::string& why) {
    const auto found = inside.find(guest);
    if (found == inside.end()) return;
    const Inside who = found->second;  // it may go away in what follows
    const auto connection = who.connection.lock();
    if (connection && connection->session() != nullptr && !connection->session()->established()) {
      // Nothing can be said to it. Waiting until something can would keep the session, which is
      // most of what a stranger costs.
      connection->abort();
    }
    if (connection) tell(*connection, code, why);
    if (who.evicted) return who.evicted(why);
    if (connection) connection->close(std::chrono::seconds(1));
  }
  /// Something was let go: those who wait read again, and wait again where it is not enough.
  void resume_stopped(std::uint64_t but) {
    for (const Guest guest : std::exchange(stopped, {})) {
      const auto found = inside.find(guest);
      if (found == inside.end() || guest == but) continue;
      found->second.visit->go_on();
      if (const auto connection = found->second.connection.lock()) connection->resume();
    }
  }
  void watch_deadlines() {
    if (timer != TimerId::none || !quota.has_deadlines()) return;
    timer = loop.after(std::chrono::milliseconds(500), [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->timer = TimerId::none;
      for (const Guest guest : self->quota.expired(Clock::now())) {
        const auto found = self->inside.find(guest);
        if (found == self->inside.end()) continue;
        const Visit& visit = *found->second.visit;
        self->evict(guest, Code::timed_out,
                    !visit.known_      ? "who calls was not proved in time"
                    : visit.answer_by_ ? "the answer was not read in time"
                    : visit.frame_by_  ? "the message was begun and not finished in time"
                                       : "nothing was asked in time");
      }
      self->watch_deadlines();
    });
  }

  Loop& loop;
  Quota quota;
  std::unordered_map<Guest, Inside> inside;
  std::vector<Guest> stopped;
  Guest last = 0;
  TimerId timer = TimerId::none;
};

Door::Door(Loop& loop, QuotaLimits limits) : core_(std::make_shared<Core>(loop, limits)) {}

Door::~Door() {
  core_->loop.cancel(core_->timer);
}

const Quota& Door::quota() const {
  return core_->quota;
}

std::shared_ptr<Visit> Door::enter(const std::shared_ptr<Connection>& connection, Who who,
                                   Evicted evicted) {
  const Guest guest = ++core_->last;
  const Quota::Admission admission = core_->admit(guest, who);
  if (!admission.admitted) {
    core_->turn_away(*connection, admission.why);
    return nullptr;
  }
  std::shared_ptr<Visit> visit(new Visit(core_, guest));
  visit->known_ = true;
  core_->inside[guest] = {connection, std::move(evicted), visit.get()};
  if (admission.evict) core_->evict(*admission.evict, Code::limit, admission.why_evicted);
  return visit;
}

std::shared_ptr<Visit> Door::enter_unknown(const std::shared_ptr<Connection>& connection,
                                           Evicted evicted) {
  const Guest guest = ++core_->last;
  const Quota::Admission admission =
      core_->quota.enter_unknown(guest, connection->remote_host(), Clock::now());
  std::shared_ptr<Visit> visit(new Visit(core_, guest));
  core_->inside[guest] = {connection, std::move(evicted), visit.get()};
  if (admission.evict) core_->evict(*admission.evict, Code::limit, admission.why_evicted);
  core_->watch_deadlines();
  return visit;
}

Visit::~Visit() {
  const bool held = partial_ + queued_ > 0;
  core_->inside.erase(guest_);
  core_->quota.leave(guest_);
  if (held) core_->resume_stopped(guest_);
}

bool Visit::introduce(const std::shared_ptr<Connection>& connection, Door::Who who) {
  const Quota::Admission admission = core_->admit(guest_, who);
  if (!admission.admitted) {
    core_->turn_away(*connection, admission.why);
    return false;
  }
  known_ = true;
  working_ = 0;
  must_ask(false);
  if (const auto found = core_->inside.find(guest_); found != core_->inside.end()) {
    found->second.connection = connection;
  }
  if (admission.evict) core_->evict(*admission.evict, Code::limit, admission.why_evicted);
  return true;
}

void Visit::partial(Connection& connection, std::size_t held, std::size_t frame_bytes) {
  // What waits while we do not read is not the peer's fault.
  if (held == 0 || (connection.paused() && !stopped_)) {
    frame_by_.reset();
  } else if (partial_ == 0 || !frame_by_) {
    frame_bytes_ = frame_bytes;
    frame_by_ = Clock::now() + core_->quota.frame_patience(frame_bytes);
  }
  partial_ = held;
  hold(connection);
}

void Visit::queued(Connection& connection, std::size_t bytes) {
  if (bytes == queued_) return;
  queued_ = bytes;
  hold(connection);
}

void Visit::hold(Connection& connection) {
  const Quota::Hold verdict = core_->quota.hold(guest_, partial_ + queued_);
  set_deadline();
  if (verdict == Quota::Hold::drop) {
    // Not from here: the caller is in the middle of reading.
    core_->loop.post([core = core_, guest = guest_] {
      core->evict(guest, Code::limit, "too many bytes of this user's messages wait here already");
    });
  }
  if (verdict != Quota::Hold::go_on && !stopped_) {
    stopped_ = true;
    core_->stopped.push_back(guest_);
    set_deadline();
    connection.pause();
  }
  if (partial_ + queued_ == 0 && !core_->stopped.empty()) core_->resume_stopped(guest_);
}

/// Who was stopped by us could not finish: his time begins anew.
void Visit::go_on() {
  stopped_ = false;
  if (frame_by_) frame_by_ = Clock::now() + core_->quota.frame_patience(frame_bytes_);
  set_deadline();
}

void Visit::set_deadline() {
  if (!known_) return;  // the time to prove who it is runs on
  std::optional<QuotaTime> at = stopped_ ? std::nullopt : frame_by_;
  if (answer_by_ && (!at || *answer_by_ < *at)) at = answer_by_;
  if (ask_by_ && !at) at = ask_by_;
  if (core_->quota.deadline(guest_) != at) core_->quota.set_deadline(guest_, at);
  if (at) core_->watch_deadlines();
}

void Visit::heard() {
  core_->quota.heard(guest_);
}

void Visit::keep() {
  core_->quota.keep(guest_);
}

std::chrono::nanoseconds Visit::wait_for_request() {
  return core_->quota.wait_for_request(guest_, Clock::now());
}

bool Visit::may_work(std::size_t bytes) const {
  return core_->quota.may_work(guest_, bytes);
}

void Visit::begin_work(std::size_t bytes) {
  core_->quota.begin_work(guest_, bytes);
  ++working_;
  if (must_ask_) must_ask(true);
}

void Visit::end_work() {
  core_->quota.end_work(guest_);
  if (working_ > 0) --working_;
  if (must_ask_) must_ask(true);
}

void Visit::must_ask(bool must) {
  must_ask_ = must;
  ask_by_.reset();
  if (must && working_ == 0) ask_by_ = Clock::now() + core_->quota.limits().handshake;
  set_deadline();
}

Account Visit::account() const {
  return core_->quota.account(guest_);
}

void Visit::answering(std::size_t bytes) {
  answer_by_.reset();
  if (bytes > 0) answer_by_ = Clock::now() + core_->quota.answer_patience(bytes);
  set_deadline();
}

}  // namespace berth::net
