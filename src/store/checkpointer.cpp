#include "store/checkpointer.h"

#include "store/sqlite.h"

namespace berth::store {

Checkpointer::~Checkpointer() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  called_.notify_one();
  thread_.join();
}

void Checkpointer::wake() {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = true;
  }
  if (thread_.joinable()) return called_.notify_one();
  thread_ = std::thread([this] { work(); });
}

void Checkpointer::copy_rest(sqlite3* connection) {
  const std::lock_guard lock(copying_);
  // What it cannot copy now (a reader needs it as it was) it copies next time.
  ::sqlite3_wal_checkpoint_v2(connection, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

void Checkpointer::work() {
  // Without a connection the committing thread does it all.
  const auto database = open_database(path_, SQLITE_OPEN_READWRITE);
  // A connection knows that there is a log once it has read something.
  if (!database || !execute(database->get(), "SELECT count(*) FROM sqlite_schema")) return;
  std::unique_lock lock(mutex_);
  for (;;) {
    called_.wait(lock, [&] { return wanted_ || stopping_; });
    if (stopping_) return;
    wanted_ = false;
    lock.unlock();
    copy_rest(database->get());
    lock.lock();
  }
}

}  // namespace berth::store
