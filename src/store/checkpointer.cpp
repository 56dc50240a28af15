#include "store/checkpointer.h"

#include "store/sqlite.h"

namespace berth::store {

void copy_log(sqlite3* connection) {
  ::sqlite3_wal_checkpoint_v2(connection, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

Checkpointer::Checkpointer(std::string database_path)
    : path_(std::move(database_path)), thread_([this] { work(); }) {}

Checkpointer::~Checkpointer() {
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
  called_.notify_one();
}

void Checkpointer::copy_rest(sqlite3* connection) {
  const std::lock_guard lock(copying_);
  copy_log(connection);
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
