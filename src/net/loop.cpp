#include "net/loop.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>

#include "net/connection.h"

namespace berth::net {
namespace {

/// Running without epoll or eventfd is impossible, and being out of them at start is an accident.
void require(bool good, const char* what) {
  if (good) return;
  fmt::print(stderr, "fatal: {}: errno {}\n", what, errno);
  std::abort();
}

std::uint32_t mask_of(Interest interest) {
  return (interest.read ? EPOLLIN | EPOLLRDHUP : 0U) | (interest.write ? EPOLLOUT : 0U);
}

}  // namespace

struct Loop::Watch {
  std::uint32_t number = 0;  // an event of an earlier watch of the same descriptor is not for us
  ReadyCallback fn;
};

Loop::Loop()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      scratch_(Connection::kReadBytes) {
  require(epoll_.get() >= 0 && wakeup_.get() >= 0, "cannot make an event loop");
  watch(wakeup_.get(), {.read = true}, [this](Ready) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wakeup_.get(), &count, sizeof count);
  });
}

Loop::~Loop() {
  // What callbacks own may call back into the loop when it is destroyed.
  auto watches = std::move(watches_);
  auto timers = std::move(timers_);
  watches_.clear();
  timers_.clear();
  timer_by_id_.clear();
}

void Loop::run() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(stopped_, false)) return;
    }
    run_once(std::chrono::hours(1));
  }
}

void Loop::run_once(Clock::duration longest) {
  std::array<epoll_event, 256> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 timeout_ms(longest));
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const auto found = watches_.find(static_cast<int>(event.data.u64 & 0xffffffff));
    if (found == watches_.end() || found->second->number != event.data.u64 >> 32) continue;
    const std::shared_ptr<Watch> kept = found->second;  // it may unwatch itself
    kept->fn({.read = (event.events & (EPOLLIN | EPOLLRDHUP)) != 0,
              .write = (event.events & EPOLLOUT) != 0,
              .error = (event.events & (EPOLLERR | EPOLLHUP)) != 0});
  }
  run_timers();
  run_posted();
}

void Loop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake();
}

void Loop::post(Callback fn) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(fn));
    if (posted_.size() > 1) return;  // woken already
  }
  wake();
}

void Loop::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wakeup_.get(), &one, sizeof one);
}

void Loop::run_posted() {
  std::vector<Callback> now;
  {
    const std::lock_guard lock(mutex_);
    now.swap(posted_);
  }
  for (Callback& fn : now) fn();
}

TimerId Loop::after(Clock::duration delay, Callback fn) {
  return at(Clock::now() + delay, std::move(fn));
}

TimerId Loop::at(Clock::time_point when, Callback fn) {
  const std::uint64_t number = ++last_timer_;
  timer_by_id_[number] = timers_.emplace(when, Timer{TimerId{number}, std::move(fn)});
  return TimerId{number};
}

void Loop::cancel(TimerId id) {
  const auto found = timer_by_id_.find(static_cast<std::uint64_t>(id));
  if (found == timer_by_id_.end()) return;
  const auto node = timers_.extract(found->second);  // destroyed last: it may own who cancels
  timer_by_id_.erase(found);
}

void Loop::run_timers() {
  if (timers_.empty()) return;
  const Clock::time_point now = Clock::now();
  const std::uint64_t newest = last_timer_;  // one that sets itself again runs in the next round
  while (!timers_.empty()) {
    const auto first = timers_.begin();
    const auto number = static_cast<std::uint64_t>(first->second.id);
    if (first->first > now || number > newest) break;
    auto node = timers_.extract(first);
    timer_by_id_.erase(number);
    node.mapped().fn();
  }
}

int Loop::timeout_ms(Clock::duration longest) const {
  Clock::duration wait = longest;
  if (!timers_.empty()) wait = std::min(wait, timers_.begin()->first - Clock::now());
  if (wait <= Clock::duration::zero()) return 0;
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  return static_cast<int>(std::min<decltype(whole)>(whole, INT_MAX));
}

void Loop::watch(int fd, Interest interest, ReadyCallback fn) {
  auto made = std::make_shared<Watch>(Watch{++last_watch_, std::move(fn)});
  epoll_event event{};
  event.events = mask_of(interest);
  event.data.u64 = std::uint64_t{made->number} << 32 | static_cast<std::uint32_t>(fd);
  require(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0, "cannot watch a descriptor");
  watches_[fd] = std::move(made);
}

void Loop::change(int fd, Interest interest) {
  const auto found = watches_.find(fd);
  if (found == watches_.end()) return;
  epoll_event event{};
  event.events = mask_of(interest);
  event.data.u64 = std::uint64_t{found->second->number} << 32 | static_cast<std::uint32_t>(fd);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::unwatch(int fd) {
  const auto found = watches_.find(fd);
  if (found == watches_.end()) return;
  const std::shared_ptr<Watch> kept = std::move(found->second);  // may own who unwatches
  watches_.erase(found);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Loop::on_signal(int signal, Callback fn) {
  off_signal(signal);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  require(::pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0, "cannot block a signal");
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  require(fd.get() >= 0, "cannot watch a signal");
  watch(fd.get(), {.read = true}, [raw = fd.get(), call = std::move(fn)](Ready) mutable {
    signalfd_siginfo info{};
    while (::read(raw, &info, sizeof info) == sizeof info) call();
  });
  signals_.emplace(signal, std::move(fd));
}

void Loop::off_signal(int signal) {
  const auto found = signals_.find(signal);
  if (found == signals_.end()) return;
  unwatch(found->second.get());
  signals_.erase(found);
}

}  // namespace berth::net
