// What must not be done twice, written and synced before it is done: starts of jobs and steps. One
// file for all nodes of an agent and one sync for all records that wait, in a thread of its own, so
// that the agent never waits for the disk.
//
// Files in the spool say the same and more, but are not synced. They are the truth as long as the
// machine runs; after a crash of the machine this log tells what they may have lost.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "step/spool.h"

namespace berth::node {

/// A job (step = none) or a step that was begun on a node.
struct Begun {
  std::string node;
  std::uint32_t job = 0;
  std::uint32_t attempt = 0;
  std::optional<std::uint32_t> step;
  friend auto operator<=>(const Begun&, const Begun&) = default;
};

class Fence {
 public:
  /// Called in the fence's thread: "" or why the record could not be stored.
  using Stored = std::move_only_function<void(std::string trouble)>;

  /// Reads the log at `path`. What was begun before the machine last started is in lost().
  static Result<std::unique_ptr<Fence>> open(const std::string& path, const std::string& boot_id);
  ~Fence();

  /// Begun under another boot: whatever ran is gone.
  [[nodiscard]] std::set<Begun> lost() {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

  void begin(const Begun& what, Stored stored);
  /// Need not be remembered any more; synced with the next record. `job` without step drops its
  /// steps too.
  void forget(const Begun& what);

 private:
  struct Item {
    std::string line;
    Stored stored;
  };
  Fence(std::string path, std::string boot_id);
  Result<void> read();
  [[nodiscard]] std::string rewrite();
  void work();
  std::string write_batch(const std::vector<Item>& batch);
  [[nodiscard]] std::string line_of(std::string_view verb, const Begun& what) const;

  std::string path_;
  std::string boot_id_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Item> items_;
  std::set<Begun> alive_;  // guarded
  std::set<Begun> lost_;   // guarded
  bool stopping_ = false;
  Fd file_;               // of the thread
  std::size_t size_ = 0;  // of the thread
  bool damaged_ = false;  // of the thread: the end of the file is not known
  std::thread thread_;
};

}  // namespace berth::node
