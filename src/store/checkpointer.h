// Copies the log into the database beside the commits, in a thread with a connection of its own: a
// checkpoint syncs many pages, and nobody should wait for that.
//
// The log begins anew when all of it is copied. While commits go on it mostly does not get to the
// end; then the committing thread does the last piece itself (Store, kMostFrames).
#pragma once

#include <sqlite3.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace berth::store {

/// As much of the log as nobody needs as it was; the rest next time: nothing that could fail.
void copy_log(sqlite3* connection);

class Checkpointer {
 public:
  explicit Checkpointer(std::string database_path);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// There is something to copy. Returns at once.
  void wake();
  /// Copies what is left by this connection, of the calling thread.
  void copy_rest(sqlite3* connection);

 private:
  void work();

  std::string path_;
  std::mutex copying_;  // one at a time: SQLite would turn the second away
  std::mutex mutex_;    // of what follows
  std::condition_variable called_;
  bool wanted_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace berth::store
