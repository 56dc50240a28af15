#include "store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <limits>

#include "base/fd.h"
#include "base/whole_file.h"
#include "store/acknowledged.h"
#include "store/blob_key.h"
#include "store/check.h"
#include "store/checkpointer.h"
#include "store/claim.h"
#include "store/copy.h"
#include "store/page_sum.h"
#include "store/schema.h"
#include "store/sqlite.h"
#include "store/wal_tail.h"
#include "store/writer.h"

namespace berth::store {
namespace {

/// Each 4 MB of the log are copied into the database, by the Checkpointer if there is one.
constexpr int kSomeFrames = 1000;
/// Where that does not get to the end of it, the committing thread copies what is left.
constexpr int kMostFrames = 4000;
/// Ids and commits that are left out when nobody can say how many were handed out since.
constexpr std::uint64_t kGap = 10000;

/// The store of a berth without checksums is copied once, with them.
Result<void> add_checksums(const std::string& path) {
  const std::string made = path + "-new";
  if (auto done = copy_database(path, made, /*from_plain=*/true); !done) return done;
  if (auto done = change_copy(made, {"PRAGMA user_version = 2"}); !done) return done;
  // The old log goes with the old file: all of it is in the copy. Should we be killed in between,
  // what is left is the old file, and all of it: copy_database() emptied its log into it.
  std::error_code error;
  std::filesystem::remove(path + "-wal", error);
  std::filesystem::remove(path + "-shm", error);
  std::filesystem::rename(made, path, error);
  if (error) return fail(Code::io, fmt::format("{}: {}", path, error.message()));
  return sync_directory(std::filesystem::path(path).parent_path());
}

}  // namespace

struct Start {
  std::uint64_t epoch = 0;
  std::uint64_t mark = 0;
  std::uint64_t commits = 0;  // before it
  bool settled = false;
};

struct Store::Inside {
  std::string path;
  Fd lock;
  AcknowledgedFile acknowledged;
  std::optional<AcknowledgedFile> acknowledged_beside;
  WalTail tail;
  Database database;
  Writer writer;
  Statement select_blob;
  Statement select_steps;
  Statement select_job;
  Statement select_token;
  Statement select_live;
  Statement select_nodes;
  Statement select_partitions;
  Statement select_reservations;
  Statement insert_start;
  std::uint64_t id = 0;
  std::uint64_t epoch = 0;
  std::uint64_t commits = 0;
  std::uint64_t synced_commits = 0;
  std::uint32_t next_job_id = 0;
  std::int64_t leases_rest_until = 0;
  ClockMark clock;
  std::vector<Start> starts;  // by epoch
  bool tail_uncertain = false;
  bool full_sync = true;
  int copied_at = 0;  // frames of the log when the checkpointer was called last
  std::optional<Checkpointer> checkpointer;

  explicit Inside(const std::string& directory) : path(database_path(directory)), tail(path) {}

  ~Inside();

  Result<void> open(const std::string& directory, const Opening& opening);
  Result<void> prepare();
  Result<void> read_meta();
  Result<void> read_starts();
  /// Goes on behind everything that was told.
  Result<void> accept_loss(const Acknowledged& told);
  /// What waits may have run since: an administrator says what may start.
  Result<void> hold_pending();
  Result<void> add_start(std::uint64_t epoch, std::uint64_t commits_before, bool settled);
  void acknowledge();
  /// The log as SQLite found it, copied into the database: from here on its length is known.
  Result<void> settle_log();
  Result<void> choose_sync(bool full);
  /// fn() in a transaction. After an error nothing of it is left, on disk neither.
  template <class Fn>
  Result<void> transaction(bool synced, Fn&& fn);

  /// The log has so many frames now.
  void committed(sqlite3* connection, int frames) {
    tail.note(static_cast<std::size_t>(frames), kPageSize);
    if (frames < copied_at) copied_at = 0;  // it has begun anew
    if (!checkpointer) {
      if (frames >= kSomeFrames) copy_log(connection);
    } else if (frames >= kMostFrames) {
      checkpointer->copy_rest(connection);
    } else if (frames >= copied_at + kSomeFrames) {
      copied_at = frames;
      checkpointer->wake();
    }
  }
  static int after_commit(void* self, sqlite3* database, const char*, int frames) {
    static_cast<Inside*>(self)->committed(database, frames);
    return SQLITE_OK;
  }
};

Result<void> Store::Inside::open(const std::string& directory, const Opening& opening) {
  Result<Fd> claimed = claim_store(directory);
  if (!claimed) return pass(std::move(claimed.error()));
  lock = std::move(*claimed);
  Acknowledged told;
  auto found = AcknowledgedFile::read(directory);
  if (!found && !opening.accept_loss) {
    found.error().hint = kAcceptHint;
    return pass(std::move(found.error()));
  }
  const bool known = found && *found;
  if (known) told = **found;
  if (!known && std::filesystem::file_size(path) > 0) {
    if (is_without_checksums(path)) {
      if (auto done = add_checksums(path); !done) return done;
    }
  }
  if (!opening.beside.empty()) {
    // What cannot be read there says nothing: it is a second opinion.
    if (const auto second = AcknowledgedFile::read(opening.beside); second && *second) {
      told.commits = std::max(told.commits, (*second)->commits);
      told.epoch = std::max(told.epoch, (*second)->epoch);
      told.next_job_id = std::max(told.next_job_id, (*second)->next_job_id);
    }
  }
  Result<Database> opened = open_database(path, SQLITE_OPEN_READWRITE);
  if (!opened) return pass(std::move(opened.error()));
  database = std::move(*opened);
  ::sqlite3_busy_timeout(database.get(), 2000);
  const Result<int> version = version_of(database.get());
  if (!version) return pass(version.error());
  if (*version != 0) {
    if (auto done = check_version(database.get()); !done) return done;
    if (auto done = read_meta(); !done) return done;
  }
  // Nothing was changed up to here.
  if (!known && commits > 0 && !opening.accept_loss) {
    return fail(Code::io,
                fmt::format("{} is missing: nobody can say whether the store is complete",
                            AcknowledgedFile::path(directory)),
                kAcceptHint);
  }
  if (!opening.accept_loss) {
    const Acknowledged has{commits, epoch, next_job_id};
    if (auto good = compare_acknowledged(directory, has, told); !good) return good;
  }
  static_assert(kPageSize == 4096, "as in the pragma");
  if (auto done = execute(database.get(), "PRAGMA page_size = 4096"); !done) return done;
  int reserved = kSumSize;
  ::sqlite3_file_control(database.get(), "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
  for (const char* pragma :
       {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL",
        "PRAGMA journal_size_limit = 16777216", "PRAGMA wal_autocheckpoint = 0"}) {
    if (auto done = execute(database.get(), pragma); !done) return done;
  }
  if (auto done = prepare_schema(database.get()); !done) return done;
  if (auto done = settle_log(); !done) return done;
  ::sqlite3_wal_hook(database.get(), &Inside::after_commit, this);
  if (auto done = prepare(); !done) return done;
  if (auto done = read_starts(); !done) return done;
  if (auto done = acknowledged.open(directory); !done) return done;
  if (!opening.beside.empty()) {
    acknowledged_beside.emplace();
    if (!acknowledged_beside->open(opening.beside)) acknowledged_beside.reset();
  }
  synced_commits = commits;
  if (opening.accept_loss) return accept_loss(told);
  if (id == 0) {
    std::uint64_t made = 0;
    ::sqlite3_randomness(sizeof made, &made);
    made >>= 1;
    auto done = transaction(true, [&] { return writer.put_meta("store", made); });
    if (!done) return done;
    id = made;
  }
  acknowledge();
  return {};
}

Store::Inside::~Inside() {
  checkpointer.reset();
  // A store that nobody uses is one file. What fails here is done at the next start.
  if (database && !tail_uncertain) {
    ::sqlite3_wal_hook(database.get(), nullptr, nullptr);
    ::sqlite3_wal_checkpoint_v2(database.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                                nullptr);
  }
  acknowledged.sync();
}

Result<void> Store::Inside::accept_loss(const Acknowledged& told) {
  // Above all that a node or a file may have seen, by the clock: copies of one backup differ.
  const std::uint64_t next_epoch =
      std::max({epoch + 1, told.epoch + 1, static_cast<std::uint64_t>(std::time(nullptr))});
  const std::uint64_t before = std::max(commits, told.commits) + kGap;
  const std::uint64_t next_id = std::max<std::uint64_t>({next_job_id, told.next_job_id, 1}) + kGap;
  commits = before;
  auto done = transaction(true, [&] {
    auto put = writer.put_meta("epoch", next_epoch);
    if (put) put = writer.put_meta("next_job_id", next_id);
    if (put && id == 0) {
      ::sqlite3_randomness(sizeof id, &id);
      id >>= 1;
      put = writer.put_meta("store", id);
    }
    if (put) put = add_start(next_epoch, before, true);
    return put ? hold_pending() : put;
  });
  if (!done) return done;
  epoch = next_epoch;
  next_job_id = static_cast<std::uint32_t>(next_id);
  acknowledge();
  acknowledged.sync();
  return {};
}

Result<void> Store::Inside::hold_pending() {
  Batch batch;
  select_live.bind(std::numeric_limits<std::int64_t>::max());
  Result<void> done;
  while (done && select_live.next()) {
    Result<JobRow> row = job_row(select_live, 0);
    if (!row) {
      done = pass(std::move(row.error()));
    } else if (row->record.state() == "PENDING") {
      row->record.set_held(true);
      row->record.set_held_by_admin(true);
      row->record.set_priority(0);
      row->record.set_reason("JobHeldAdmin");
      batch.jobs.push_back(std::move(*row));
    }
  }
  if (done && select_live.failed()) done = select_live.error();
  select_live.reset();
  return done ? writer.put(batch) : done;
}

Result<void> Store::Inside::add_start(std::uint64_t number, std::uint64_t commits_before,
                                      bool settled) {
  Start start{.epoch = number, .commits = commits_before, .settled = settled};
  ::sqlite3_randomness(sizeof start.mark, &start.mark);
  start.mark >>= 1;
  auto done = insert_start.bind(number)
                  .bind(start.mark)
                  .bind(commits_before)
                  .bind(std::int64_t{settled})
                  .run();
  if (done) starts.push_back(start);
  return done;
}

Result<void> Store::Inside::read_starts() {
  Result<Statement> select = Statement::make(database.get(),
                                             "SELECT epoch, mark, commits, settled FROM starts"
                                             " ORDER BY epoch");
  if (!select) return pass(std::move(select.error()));
  while (select->next()) {
    const auto number = [&](int column) {
      return static_cast<std::uint64_t>(select->number(column));
    };
    starts.push_back({number(0), number(1), number(2), number(3) != 0});
  }
  if (select->failed()) return select->error();
  return {};
}

void Store::Inside::acknowledge() {
  synced_commits = commits;
  const Acknowledged now{commits, epoch, next_job_id};
  acknowledged.note(now);
  if (acknowledged_beside) acknowledged_beside->note(now);
}

Result<void> Store::Inside::settle_log() {
  int frames = 0;
  const int result = ::sqlite3_wal_checkpoint_v2(database.get(), nullptr,
                                                 SQLITE_CHECKPOINT_TRUNCATE, &frames, nullptr);
  // Busy: someone reads. Then the log stays, and its length is what we need.
  if (result != SQLITE_OK && result != SQLITE_BUSY) {
    return failed(database.get(), "the store cannot be opened");
  }
  if (frames < 0) return fail(Code::io, "the store's log is not there");
  tail.note(static_cast<std::size_t>(frames), kPageSize);
  return {};
}

Result<void> Store::Inside::prepare() {
  Result<Writer> made = Writer::make(database.get());
  if (!made) return pass(std::move(made.error()));
  writer = std::move(*made);
  const std::pair<Statement*, std::string_view> all[] = {
      {&select_blob, kSelectBlob},
      {&select_steps, kSelectSteps},
      {&select_token, "SELECT min(id) FROM jobs WHERE token = ? AND uid = ? AND token <> ''"},
      {&select_job, "SELECT record FROM jobs WHERE key >= ? AND key <= ? AND latest = 1"},
      {&select_live,
       "SELECT record, name, account FROM jobs"
       " WHERE live = 1 OR (latest = 1 AND ended >= ?) ORDER BY key"},
      {&select_nodes, "SELECT record FROM nodes ORDER BY name"},
      {&select_partitions, "SELECT record FROM partitions ORDER BY name"},
      {&select_reservations, "SELECT record FROM reservations ORDER BY name"},
      {&insert_start, "INSERT INTO starts (epoch, mark, commits, settled) VALUES (?, ?, ?, ?)"},
  };
  for (const auto& [statement, sql] : all) {
    Result<Statement> one = Statement::make(database.get(), sql);
    if (!one) return pass(std::move(one.error()));
    *statement = std::move(*one);
  }
  return {};
}

Result<void> Store::Inside::read_meta() {
  Result<Statement> select = Statement::make(database.get(), "SELECT name, value FROM meta");
  if (!select) return pass(std::move(select.error()));
  while (select->next()) {
    const std::string_view name = select->bytes(0);
    if (name == "epoch") epoch = static_cast<std::uint64_t>(select->number(1));
    if (name == "commits") commits = static_cast<std::uint64_t>(select->number(1));
    if (name == "store") id = static_cast<std::uint64_t>(select->number(1));
    if (name == "leases_rest_until") leases_rest_until = select->number(1);
    if (name == "clock_boot") clock.boot = static_cast<std::uint64_t>(select->number(1));
    if (name == "clock_ahead") clock.ahead_nanoseconds = select->number(1);
    if (name == "clock_adopted") clock.adopted = select->number(1);
    if (name == "next_job_id") next_job_id = static_cast<std::uint32_t>(select->number(1));
  }
  if (select->failed()) return select->error();
  return {};
}

Result<void> Store::Inside::choose_sync(bool full) {
  if (full == full_sync) return {};
  // NORMAL: the log is not synced now; the next full commit syncs all of it.
  Result<void> done =
      execute(database.get(), full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
  if (done) full_sync = full;
  return done;
}

template <class Fn>
Result<void> Store::Inside::transaction(bool synced, Fn&& fn) {
  if (tail_uncertain) {
    if (auto cut = tail.cut(); !cut) return cut;
    tail_uncertain = false;
  }
  if (auto done = choose_sync(synced); !done) return done;
  tail.before_commit();
  Result<void> result = execute(database.get(), "BEGIN IMMEDIATE");
  if (result) result = fn();
  if (result) result = writer.put_meta("commits", commits + 1);
  if (result) result = execute(database.get(), "COMMIT");
  if (result) {
    ++commits;
    if (synced) acknowledge();
    return result;
  }
  if (::sqlite3_get_autocommit(database.get()) == 0) {
    [[maybe_unused]] const auto ignored = execute(database.get(), "ROLLBACK");
  }
  tail_uncertain = !tail.cut();
  return result;
}

Store::Store(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::open(const std::string& directory, const Opening& opening) {
  auto inside = std::make_unique<Inside>(directory);
  if (auto opened = inside->open(directory, opening); !opened)
    return pass(std::move(opened.error()));
  return Store(std::move(inside));
}

void Store::copy_log_beside() {
  inside_->checkpointer.emplace(inside_->path,
                                [this_one = inside_.get()] { this_one->acknowledged.sync(); });
}

std::uint64_t Store::epoch() const {
  return inside_->epoch;
}

Result<std::uint64_t> Store::raise_epoch() {
  const std::uint64_t next = inside_->epoch + 1;
  const std::size_t starts = inside_->starts.size();
  auto done = inside_->transaction(true, [&] {
    auto put = inside_->writer.put_meta("epoch", next);
    return put ? inside_->add_start(next, inside_->commits, false) : put;
  });
  if (!done) {
    inside_->starts.resize(starts);
    return pass(std::move(done.error()));
  }
  inside_->epoch = next;
  inside_->acknowledge();
  return next;
}

Memory Store::memory() const {
  return {.store = inside_->id,
          .epoch = inside_->epoch,
          .mark = inside_->starts.empty() ? 0 : inside_->starts.back().mark,
          .commits = inside_->synced_commits,
          .next_job_id = inside_->next_job_id};
}

Store::Line Store::line_of(const Memory& memory) const {
  const std::vector<Start>& starts = inside_->starts;
  const auto given_up = [&](const Start& start) {
    return start.settled && start.epoch > memory.epoch;
  };
  if (std::ranges::any_of(starts, given_up)) return Line::same;
  if (memory.store != inside_->id) return Line::foreign;
  if (memory.epoch > inside_->epoch) return Line::later;
  const auto start = std::ranges::lower_bound(starts, memory.epoch, {}, &Start::epoch);
  if (start == starts.end() || start->epoch != memory.epoch || start->mark != memory.mark) {
    return Line::later;
  }
  const auto next = start + 1;
  const std::uint64_t most = next == starts.end() ? inside_->commits : next->commits;
  return memory.commits <= most ? Line::same : Line::later;
}

bool Store::blank() const {
  return inside_->next_job_id == 0 && inside_->starts.size() <= 1;
}

bool is_damage(const Error& error) {
  return error.hint == kDamagedHint;
}

bool Store::damaged() const {
  return inside_->checkpointer && inside_->checkpointer->damaged();
}

std::string Store::damage() const {
  return inside_->checkpointer ? inside_->checkpointer->damage() : "";
}

std::int64_t Store::verified_at() const {
  return inside_->checkpointer ? inside_->checkpointer->verified_at() : 0;
}

Result<Loaded> Store::load(std::int64_t ended_since) {
  Loaded loaded;
  loaded.next_job_id = inside_->next_job_id;
  loaded.leases_rest_until = inside_->leases_rest_until;
  Result<void> result;
  const auto read = [&](Statement& select, auto&& row) {
    while (result && select.next()) row();
    if (result && select.failed()) result = select.error();
    select.reset();
  };
  const auto keep = [&](auto& into, auto made) {
    if (made) {
      into.push_back(std::move(*made));
    } else {
      result = pass(std::move(made.error()));
    }
  };
  // 0 would match rows that have not ended; those are live or of an earlier run.
  inside_->select_live.bind(std::max<std::int64_t>(ended_since, 1));
  read(inside_->select_live, [&] { keep(loaded.jobs, job_row(inside_->select_live, 0)); });
  read(inside_->select_nodes,
       [&] { keep(loaded.nodes, message_in<wire::NodeRecord>(inside_->select_nodes, 0)); });
  read(inside_->select_partitions, [&] {
    keep(loaded.partitions, message_in<wire::PartitionRecord>(inside_->select_partitions, 0));
  });
  read(inside_->select_reservations, [&] {
    keep(loaded.reservations, message_in<wire::ReservationRecord>(inside_->select_reservations, 0));
  });
  if (!result) return pass(std::move(result.error()));
  return loaded;
}

const ClockMark& Store::clock() const {
  return inside_->clock;
}

Result<void> Store::commit(const Batch& batch) {
  if (batch.empty()) return {};
  auto done = inside_->transaction(batch.synced, [&] { return inside_->writer.put(batch); });
  if (done && batch.next_job_id) inside_->next_job_id = *batch.next_job_id;
  if (done && batch.leases_rest_until) inside_->leases_rest_until = *batch.leases_rest_until;
  if (done && batch.clock) inside_->clock = *batch.clock;
  return done;
}

std::uint64_t Store::add_blob(Batch& batch, std::string bytes) {
  for (std::uint64_t key = blob_key(bytes);; key = key + 1 == 0 ? 1 : key + 1) {
    const auto same_key = std::ranges::find(batch.blobs, key, &Blob::key);
    if (same_key != batch.blobs.end()) {
      if (same_key->bytes == bytes) return key;
      continue;
    }
    inside_->select_blob.bind(key);
    const bool taken = inside_->select_blob.next() && inside_->select_blob.bytes(0) != bytes;
    inside_->select_blob.reset();
    if (taken) continue;
    // Also when the store has it: it could be purged before this batch is committed.
    batch.blobs.push_back({key, std::move(bytes)});
    return key;
  }
}

Result<std::optional<std::string>> Store::blob(std::uint64_t key) {
  Statement& select = inside_->select_blob;
  select.bind(key);
  Result<std::optional<std::string>> found = std::nullopt;
  if (select.next()) found = std::string(select.bytes(0));
  if (select.failed()) found = select.error();
  select.reset();
  return found;
}

Result<wire::Asked> Store::asked(std::uint64_t key) {
  return read_asked(inside_->select_blob, key);
}

Result<std::optional<std::uint32_t>> Store::job_with_token(std::uint32_t uid,
                                                           std::string_view token) {
  Statement& select = inside_->select_token;
  select.bind(token).bind(uid);
  Result<std::optional<std::uint32_t>> found = std::nullopt;
  // min() of no rows is NULL, which reads as 0: no job has that id.
  if (select.next() && select.number(0) != 0) {
    found = static_cast<std::uint32_t>(select.number(0));
  }
  if (select.failed()) found = select.error();
  select.reset();
  return found;
}

Result<std::optional<wire::JobRecord>> Store::job(std::uint32_t id) {
  Statement& select = inside_->select_job;
  select.bind(first_key_of(id)).bind(last_key_of(id));
  Result<std::optional<wire::JobRecord>> found = std::nullopt;
  if (select.next()) {
    Result<wire::JobRecord> record = message_in<wire::JobRecord>(select, 0);
    if (record) {
      found = std::move(*record);
    } else {
      found = pass(std::move(record.error()));
    }
  }
  if (select.failed()) found = select.error();
  select.reset();
  return found;
}

Result<std::vector<wire::StepRecord>> Store::steps(std::uint32_t job_id, std::uint32_t attempt) {
  return read_steps(inside_->select_steps, job_id, attempt);
}

Result<std::size_t> Store::purge_jobs(std::int64_t before, std::size_t most) {
  std::size_t count = 0;
  auto done = inside_->transaction(true, [&]() -> Result<void> {
    Result<std::size_t> purged = inside_->writer.purge_jobs(before, most);
    if (!purged) return pass(std::move(purged.error()));
    count = *purged;
    return {};
  });
  if (!done) return pass(std::move(done.error()));
  return count;
}

Result<std::size_t> Store::purge_blobs(std::size_t most) {
  std::size_t count = 0;
  auto done = inside_->transaction(true, [&]() -> Result<void> {
    Result<std::size_t> purged = inside_->writer.purge_blobs(most);
    if (!purged) return pass(std::move(purged.error()));
    count = *purged;
    return {};
  });
  if (!done) return pass(std::move(done.error()));
  return count;
}

}  // namespace berth::store
