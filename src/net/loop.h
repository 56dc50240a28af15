// The event loop of a daemon: one thread, epoll, timers. Not thread safe but for post() and stop().
//
//   net::Loop loop;
//   auto id = loop.after(std::chrono::seconds(30), [&] { … });   loop.cancel(id);
//   loop.watch(fd, {.read = true}, [&](net::Ready ready) { … }); loop.unwatch(fd);
//   loop.on_signal(SIGTERM, [&] { loop.stop(); });               // signalfd; blocks the signal
//   loop.post([&] { … });                                        // from any thread, runs in the
//   loop loop.run();
//
// A callback may unwatch, cancel or destroy anything, also itself: what was removed is not called
// any more, even when it is ready in the same round. Callbacks must not throw.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/fd.h"

namespace berth::net {

using Clock = std::chrono::steady_clock;
using Callback = std::move_only_function<void()>;

struct Interest {
  bool read = false;
  bool write = false;
  friend bool operator==(const Interest&, const Interest&) = default;
};
struct Ready {
  bool read = false;  // also at end of file
  bool write = false;
  bool error = false;  // error or hang-up; reported whatever the interest
};
using ReadyCallback = std::move_only_function<void(Ready)>;

enum class TimerId : std::uint64_t { none = 0 };

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Serves until stop(). May be called again afterwards.
  void run();
  /// Ready callbacks, due timers and posted calls once; waits at most `longest` for the first.
  void run_once(Clock::duration longest);
  void stop();             // from any thread or callback
  void post(Callback fn);  // from any thread; runs in order

  TimerId after(Clock::duration delay, Callback fn);
  TimerId at(Clock::time_point when, Callback fn);
  /// Cancelling a timer that ran, or none, does nothing.
  void cancel(TimerId id);

  /// One watch for each descriptor; the descriptor stays the caller's and must be unwatched before
  /// it is closed.
  void watch(int fd, Interest interest, ReadyCallback fn);
  void change(int fd, Interest interest);
  void unwatch(int fd);

  /// Blocks the signal for this thread (call before threads are made) and calls fn for each
  /// delivery, and no other one any more. Children inherit the block: who spawns resets their mask.
  void on_signal(int signal, Callback fn);
  /// Nobody hears of the signal any more; it stays blocked.
  void off_signal(int signal);

  /// Memory that reads of all connections share; valid within one callback.
  std::vector<char>& scratch() { return scratch_; }

 private:
  struct Watch;
  struct Timer {
    TimerId id;
    Callback fn;
  };
  void wake();
  void run_posted();
  void run_timers();
  [[nodiscard]] int timeout_ms(Clock::duration longest) const;

  Fd epoll_;
  Fd wakeup_;
  std::unordered_map<int, std::shared_ptr<Watch>> watches_;
  std::multimap<Clock::time_point, Timer> timers_;
  std::unordered_map<std::uint64_t, std::multimap<Clock::time_point, Timer>::iterator> timer_by_id_;
  std::uint64_t last_timer_ = 0;
  std::uint32_t last_watch_ = 0;
  std::map<int, Fd> signals_;
  std::vector<char> scratch_;
  std::mutex mutex_;  // guards posted_ and stopped_
  std::vector<Callback> posted_;
  bool stopped_ = false;
};

}  // namespace berth::net
