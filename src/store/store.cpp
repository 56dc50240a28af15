#include "store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/fd.h"
#include "store/blob_key.h"
#include "store/checkpointer.h"
#include "store/schema.h"
#include "store/sqlite.h"
#include "store/wal_tail.h"
#include "store/writer.h"

namespace berth::store {
namespace {

constexpr std::size_t kPageSize = 4096;
/// Each 4 MB of the log are copied into the database, by the Checkpointer if there is one.
constexpr int kSomeFrames = 1000;
/// Where that does not get to the end of it, the committing thread copies what is left.
constexpr int kMostFrames = 4000;

/// One controller for each store, whatever its run directory is. Also makes the file, for its mode:
/// -wal and -shm get the mode of the database.
Result<Fd> claim(const std::string& directory) {
  std::error_code trouble;
  std::filesystem::create_directories(directory, trouble);
  const std::string path = directory + "/berth.lock";
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return fail(Code::io, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Code::io, fmt::format("another controller uses {}", directory));
  }
  const std::string database = database_path(directory);
  const Fd made(::open(database.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!made) {
    return fail(Code::io, fmt::format("cannot open {}: {}", database, std::strerror(errno)));
  }
  return lock;
}

}  // namespace

struct Store::Inside {
  std::string path;
  Fd lock;
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
  std::uint64_t epoch = 0;
  std::uint32_t next_job_id = 0;
  bool tail_uncertain = false;
  bool full_sync = true;
  int copied_at = 0;  // frames of the log when the checkpointer was called last
  std::optional<Checkpointer> checkpointer;

  explicit Inside(const std::string& directory) : path(database_path(directory)), tail(path) {}

  Result<void> open(const std::string& directory);
  Result<void> prepare();
  Result<void> read_meta();
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

Result<void> Store::Inside::open(const std::string& directory) {
  Result<Fd> claimed = claim(directory);
  if (!claimed) return pass(std::move(claimed.error()));
  lock = std::move(*claimed);
  Result<Database> opened = open_database(path, SQLITE_OPEN_READWRITE);
  if (!opened) return pass(std::move(opened.error()));
  database = std::move(*opened);
  ::sqlite3_busy_timeout(database.get(), 2000);
  static_assert(kPageSize == 4096, "as in the pragma");
  for (const char* pragma :
       {"PRAGMA page_size = 4096", "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL",
        "PRAGMA journal_size_limit = 16777216", "PRAGMA wal_autocheckpoint = 0"}) {
    if (auto done = execute(database.get(), pragma); !done) return done;
  }
  if (auto done = prepare_schema(database.get()); !done) return done;
  if (auto done = settle_log(); !done) return done;
  ::sqlite3_wal_hook(database.get(), &Inside::after_commit, this);
  if (auto done = prepare(); !done) return done;
  return read_meta();
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
  if (result) result = execute(database.get(), "COMMIT");
  if (result) return result;
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

Result<Store> Store::open(const std::string& directory) {
  auto inside = std::make_unique<Inside>(directory);
  if (auto opened = inside->open(directory); !opened) return pass(std::move(opened.error()));
  return Store(std::move(inside));
}

void Store::copy_log_beside() {
  inside_->checkpointer.emplace(inside_->path);
}

std::uint64_t Store::epoch() const {
  return inside_->epoch;
}

Result<std::uint64_t> Store::raise_epoch() {
  const std::uint64_t next = inside_->epoch + 1;
  auto done = inside_->transaction(true, [&] { return inside_->writer.put_meta("epoch", next); });
  if (!done) return pass(std::move(done.error()));
  inside_->epoch = next;
  return next;
}

Result<Loaded> Store::load(std::int64_t ended_since) {
  Loaded loaded;
  loaded.next_job_id = inside_->next_job_id;
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

Result<void> Store::commit(const Batch& batch) {
  if (batch.empty()) return {};
  auto done = inside_->transaction(batch.synced, [&] { return inside_->writer.put(batch); });
  if (done && batch.next_job_id) inside_->next_job_id = *batch.next_job_id;
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
  wire::JobRecord record;
  if (select.next() && record.ParseFromString(std::string(select.bytes(0)))) {
    found = std::move(record);
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
