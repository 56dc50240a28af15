// What the controller keeps: rows in SQLite, one synced transaction for each turn. Why it is so,
// and what happens when the disk fails, is in docs/design/store.md.
//
//   auto store = store::Store::open(state_directory);       // D/state: berth.db
//   auto epoch = store->raise_epoch();                      // synced
//   auto live = store->load(now - min_job_age);             // at start
//   …
//   store->commit(batch);                                   // each turn; see batch.h
//   auto asked = store->asked(record.asked_blob());         // script and environment
//
// One thread; questions about history go through store::History (history.h) in another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/batch.h"
#include "wire/record.pb.h"
#include "wire/submit.pb.h"

namespace berth::store {

struct Loaded {
  /// The last row of each job that has not ended, still completes, or ended at or after the time
  /// asked for; by id.
  std::vector<JobRow> jobs;
  std::vector<wire::NodeRecord> nodes;
  std::vector<wire::PartitionRecord> partitions;
  std::vector<wire::ReservationRecord> reservations;
  std::uint32_t next_job_id = 0;  // 0 = never stored
  std::int64_t leases_rest_until = 0;
};

/// What somebody was told of a store: whoever shows it again proves how far the store was once.
struct Memory {
  std::uint64_t store = 0;    // which store: a number of its own, for ever
  std::uint64_t epoch = 0;    // start of the controller
  std::uint64_t mark = 0;     // of that start; a start on another copy has another
  std::uint64_t commits = 0;  // that were on disk
  std::uint32_t next_job_id = 0;
};

struct Opening {
  /// A directory on another disk, which remembers how far the store was, too. "" = none.
  std::string beside = {};
  /// Take the store as it is although more was acknowledged: no id is handed out again, and what
  /// waits is held, since it may have run.
  bool accept_loss = false;
};

/// The files are not as they were written. The hint of the error says what to do.
bool is_damage(const Error& error);

class Store {
 public:
  /// Opens or makes `directory`/berth.db. A file of a newer berth is an error that says so, and so
  /// is one that is damaged, or has less than was acknowledged.
  static Result<Store> open(const std::string& directory, const Opening& opening = {});
  /// From now on a thread copies the log into the database, and commits do not stop for it.
  void copy_log_beside();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// The number of starts of the controller on this store; 0 = none yet.
  [[nodiscard]] std::uint64_t epoch() const;
  /// One more, synced; returned.
  Result<std::uint64_t> raise_epoch();

  /// What nodes are told; the commits in it are on disk.
  [[nodiscard]] Memory memory() const;
  enum class Line {
    same,     // of this store, and the store has it
    later,    // of this store, which was further than it is now, or went on another way
    foreign,  // of another store
  };
  /// `same` too for whatever was known before somebody took this store as it is (accept_loss).
  [[nodiscard]] Line line_of(const Memory& memory) const;
  /// Nothing but starts was ever stored.
  [[nodiscard]] bool blank() const;

  /// What the background check has found damaged: "page 17 of …"; "" = nothing. Any thread.
  [[nodiscard]] std::string damage() const;
  [[nodiscard]] bool damaged() const;
  /// When all pages were last verified, and none was damaged; 0 = not yet. Any thread.
  [[nodiscard]] std::int64_t verified_at() const;

  Result<Loaded> load(std::int64_t ended_since);
  /// As it was committed last; all 0 where none ever was. All moments that are stored are of that
  /// clock.
  [[nodiscard]] const ClockMark& clock() const;

  /// All or nothing. On disk when it returns (unless !batch.synced). After an error nothing of the
  /// batch is there, nor does it come back after a crash; later commits work again as soon as the
  /// disk does.
  Result<void> commit(const Batch& batch);

  /// Puts `bytes` into the batch and returns its key: the same for the same bytes, another for
  /// others.
  std::uint64_t add_blob(Batch& batch, std::string bytes);
  Result<std::optional<std::string>> blob(std::uint64_t key);
  /// A blob as Asked; an error when there is none.
  Result<wire::Asked> asked(std::uint64_t key);

  /// The lowest job id that was submitted by `uid` with this token: a retry of a submission that
  /// memory has forgotten.
  Result<std::optional<std::uint32_t>> job_with_token(std::uint32_t uid, std::string_view token);

  /// The last row of a job that memory may have forgotten; nullopt = there is none.
  Result<std::optional<wire::JobRecord>> job(std::uint32_t id);

  Result<std::vector<wire::StepRecord>> steps(std::uint32_t job_id, std::uint32_t attempt);

  /// Removes up to `most` jobs (rows, steps) that ended before `before`; returns how many.
  Result<std::size_t> purge_jobs(std::int64_t before, std::size_t most);
  /// Removes up to `most` blobs that no row names; returns how many.
  Result<std::size_t> purge_blobs(std::size_t most);

 private:
  struct Inside;
  explicit Store(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace berth::store
