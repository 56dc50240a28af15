// Lines that a log has left out are told of when their time is over, by a timer that runs only
// while there are any. See base/line_limit.h.
#pragma once

#include <memory>

#include "base/line_limit.h"
#include "net/loop.h"

namespace berth::net {

/// `log` has lines(), its LineGate, and tell_left_out(). Made and ended in the loop's thread.
template <class Log>
class LogTimer {
 public:
  LogTimer(Loop& loop, Log& log) : loop_(loop), log_(log) {
    log_.lines().on_left_out([this, alive = std::weak_ptr(alive_)] {
      loop_.post([this, alive] {
        if (!alive.expired()) arm();
      });
    });
  }
  ~LogTimer() { log_.lines().on_left_out({}); }
  LogTimer(const LogTimer&) = delete;
  LogTimer& operator=(const LogTimer&) = delete;

 private:
  void arm() {
    const LineLimit::Time next = log_.lines().next_end();
    if (armed_ || next == LineLimit::Time::max()) return;
    armed_ = true;
    loop_.after(next - LineLimit::Time::clock::now(), [this, alive = std::weak_ptr(alive_)] {
      if (alive.expired()) return;
      armed_ = false;
      log_.tell_left_out();
      arm();
    });
  }

  Loop& loop_;
  Log& log_;
  bool armed_ = false;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);  // for posted calls
};

}  // namespace berth::net
