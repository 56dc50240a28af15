#include "store/checkpointer.h"

#include <chrono>
#include <ctime>
#include <vector>

#include "store/checked_file.h"
#include "store/page_sum.h"
#include "store/sqlite.h"

namespace berth::store {
namespace {

constexpr std::chrono::seconds kPause{1};
/// 1 MB each second: a store of a gigabyte takes a quarter of an hour.
constexpr int kPagesAtOnce = 256;
/// From the end of one round to the begin of the next.
constexpr std::chrono::minutes kBetweenRounds{30};

}  // namespace

void copy_log(sqlite3* connection) {
  ::sqlite3_wal_checkpoint_v2(connection, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

Checkpointer::Checkpointer(std::string database_path, std::function<void()> each_second)
    : path_(std::move(database_path)),
      each_second_(std::move(each_second)),
      thread_([this] { work(); }) {}

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

std::string Checkpointer::damage() const {
  const std::lock_guard lock(mutex_);
  return damage_;
}

bool Checkpointer::verify_some(sqlite3_file& file) {
  // Pages are written by checkpoints only, and those wait for us.
  const std::lock_guard copying(copying_);
  constexpr auto kPage = static_cast<sqlite3_int64>(kPageSize);
  sqlite3_int64 size = 0;
  if (file.pMethods->xFileSize(&file, &size) != SQLITE_OK) return true;
  std::vector<char> page(kPageSize);
  for (int i = 0; i < kPagesAtOnce && next_page_ * kPage < size; ++i, ++next_page_) {
    const int result = file.pMethods->xRead(&file, page.data(), kPage, next_page_ * kPage);
    if (result == SQLITE_OK) continue;
    all_whole_ = false;
    {
      const std::lock_guard lock(mutex_);
      if (damage_.empty()) {
        damage_ = result == SQLITE_IOERR_DATA ? damaged_page() : "a page of " + path_;
      }
    }
    damaged_ = true;
  }
  return next_page_ * kPage >= size;
}

void Checkpointer::work() {
  using Steady = std::chrono::steady_clock;
  // Without a connection the committing thread does it all.
  const auto database = open_database(path_, SQLITE_OPEN_READWRITE);
  // A connection knows that there is a log once it has read something.
  if (!database || !execute(database->get(), "SELECT count(*) FROM sqlite_schema")) return;
  sqlite3_file* file = nullptr;
  ::sqlite3_file_control(database->get(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  Steady::time_point next_look = Steady::now() + kPause;
  std::unique_lock lock(mutex_);
  for (;;) {
    called_.wait_until(lock, next_look, [&] { return wanted_ || stopping_; });
    if (stopping_) return;
    const bool wanted = std::exchange(wanted_, false);
    lock.unlock();
    if (wanted) copy_rest(database->get());
    if (Steady::now() >= next_look) {
      each_second_();
      next_look = Steady::now() + kPause;
      if (file != nullptr && Steady::now() >= next_round_ && verify_some(*file)) {
        if (all_whole_) verified_at_ = std::time(nullptr);
        next_page_ = 0;
        all_whole_ = true;
        next_round_ = Steady::now() + kBetweenRounds;
      }
    }
    lock.lock();
  }
}

}  // namespace berth::store
