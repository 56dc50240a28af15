// Copies the log into the database beside the commits, in a thread with a connection of its own: a
// checkpoint syncs many pages, and nobody should wait for that.
//
// The log begins anew when all of it is copied. While commits go on it mostly does not get to the
// end; then the committing thread does the last piece itself (Store, kMostFrames).
//
// It also verifies the pages of the database, some each second: damage is found before somebody
// needs the page, while there are backups that do not have it.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace berth::store {

/// As much of the log as nobody needs as it was; the rest next time: nothing that could fail.
void copy_log(sqlite3* connection);

class Checkpointer {
 public:
  /// each_second() is called while there is something to do.
  Checkpointer(std::string database_path, std::function<void()> each_second);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// There is something to copy. Returns at once.
  void wake();
  /// Copies what is left by this connection, of the calling thread.
  void copy_rest(sqlite3* connection);

  /// What was found damaged; "" = nothing.
  [[nodiscard]] std::string damage() const;
  [[nodiscard]] bool damaged() const { return damaged_; }
  /// When all pages were last found whole; 0 = not yet.
  [[nodiscard]] std::int64_t verified_at() const { return verified_at_; }

 private:
  void work();
  /// The next pages. Returns whether that was the last of them.
  bool verify_some(sqlite3_file& file);

  std::string path_;
  std::function<void()> each_second_;
  std::int64_t next_page_ = 0;
  std::chrono::steady_clock::time_point next_round_;
  bool all_whole_ = true;
  std::atomic<std::int64_t> verified_at_ = 0;
  std::atomic<bool> damaged_ = false;
  std::mutex copying_;        // one at a time: SQLite would turn the second away
  mutable std::mutex mutex_;  // of what follows
  std::string damage_;
  std::condition_variable called_;
  bool wanted_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace berth::store
