// The end of SQLite's write-ahead log that may be believed.
//
// A commit whose write or fsync failed may have left whole frames in the log. SQLite does not look
// at them as long as it runs, but after a crash it would find a complete transaction there and
// bring back what we said was not stored. So the log is cut back to what was acknowledged, at once.
//
//   WalTail tail(path, page_size);
//   tail.note(frames);          // from SQLite's commit hook
//   tail.before_commit(); … failed …  tail.cut();
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace berth::store {

class WalTail {
 public:
  explicit WalTail(std::string database_path) : path_(std::move(database_path) + "-wal") {}

  /// The log has this many frames of that page size, all acknowledged.
  void note(std::size_t frames, std::size_t page_size) {
    frames_ = frames;
    page_size_ = page_size;
  }
  /// Remembers which generation of the log the frames belong to.
  void before_commit() { generation_ = read_generation(); }
  /// Cuts off what came after, and syncs.
  Result<void> cut() const;

 private:
  /// The salts of the log's header: they change when SQLite begins the log anew. 0 = no log.
  [[nodiscard]] std::uint64_t read_generation() const;

  std::string path_;
  std::size_t frames_ = 0;
  std::size_t page_size_ = 0;
  std::uint64_t generation_ = 0;
};

}  // namespace berth::store
