#include "auth/munge.h"

namespace berth::auth {

HelloChecker::HelloChecker() : thread_([this] { work(); }) {}

HelloChecker::~HelloChecker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    items_.clear();
  }
  changed_.notify_one();
  thread_.join();
}

void HelloChecker::check(wire::Hello hello, std::string binding, Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (items_.size() < kMostWaiting) {
      items_.push_back({std::move(hello), std::move(binding), std::move(done)});
      changed_.notify_one();
      return;
    }
  }
  done(fail(Code::no_credential, "too many connections wait for munge"));
}

void HelloChecker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !items_.empty(); });
    if (stopping_) return;
    Item item = std::move(items_.front());
    items_.pop_front();
    lock.unlock();
    item.done(check_hello(item.hello, item.binding));
    lock.lock();
  }
}

}  // namespace berth::auth
