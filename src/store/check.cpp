#include "store/check.h"

#include <fmt/format.h>

#include <filesystem>

#include "store/acknowledged.h"
#include "store/checked_file.h"
#include "store/claim.h"
#include "store/page_sum.h"
#include "store/schema.h"
#include "store/sqlite.h"

namespace berth::store {
namespace {

constexpr std::size_t kMostTroubles = 100;

class Check {
 public:
  explicit Check(sqlite3* database) : database_(database) {}

  Checked run() {
    if (const auto version = check_version(database_); !version) {
      note(version.error());
      find_pages();
      return std::move(checked_);
    }
    // Order and references of all pages; every page in use is read, and its checksum verified.
    each("PRAGMA integrity_check", [&](const Statement& row) {
      if (row.bytes(0) != "ok") note(std::string(row.bytes(0)));
    });
    each("SELECT name, value FROM meta", [&](const Statement& row) {
      const auto value = static_cast<std::uint64_t>(row.number(1));
      if (row.bytes(0) == "commits") checked_.commits = value;
      if (row.bytes(0) == "epoch") checked_.epoch = value;
    });
    checked_.jobs = read<wire::JobRecord>("SELECT record, 'job ' || id FROM jobs");
    checked_.steps =
        read<wire::StepRecord>("SELECT record, 'step ' || step || ' of job ' || job FROM steps");
    read<wire::NodeRecord>("SELECT record, 'node ' || name FROM nodes");
    read<wire::PartitionRecord>("SELECT record, 'partition ' || name FROM partitions");
    read<wire::ReservationRecord>("SELECT record, 'reservation ' || name FROM reservations");
    checked_.scripts = read<wire::Asked>("SELECT bytes, 'script ' || key FROM blobs");
    each("SELECT id FROM jobs WHERE asked <> 0 AND asked NOT IN (SELECT key FROM blobs)",
         [&](const Statement& row) {
           note(fmt::format("the script of job {} is missing", row.number(0)));
         });
    if (!checked_.troubles.empty()) find_pages();
    return std::move(checked_);
  }

 private:
  void note(std::string trouble) {
    if (checked_.troubles.size() < kMostTroubles) checked_.troubles.push_back(std::move(trouble));
  }
  void note(const Error& error) { note(std::string(error.what())); }

  template <class Fn>
  void each(std::string_view sql, Fn&& fn) {
    Result<Statement> select = Statement::make(database_, sql);
    if (!select) return note(select.error());
    while (select->next()) fn(*select);
    if (select->failed()) note(select->error().error());
  }
  template <class M>
  std::uint64_t read(std::string_view sql) {
    std::uint64_t count = 0;
    each(sql, [&](const Statement& row) {
      ++count;
      if (!message_in<M>(row, 0)) note(fmt::format("{} cannot be read", row.bytes(1)));
    });
    return count;
  }
  /// Names the pages whose checksum is wrong: a question stops at the first of them.
  void find_pages() {
    sqlite3_file* file = nullptr;
    ::sqlite3_file_control(database_, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    sqlite3_int64 size = 0;
    if (file == nullptr || file->pMethods->xFileSize(file, &size) != SQLITE_OK) return;
    std::vector<char> page(kPageSize);
    for (sqlite3_int64 at = 0; at < size; at += static_cast<sqlite3_int64>(kPageSize)) {
      const int result = file->pMethods->xRead(file, page.data(), kPageSize, at);
      if (result == SQLITE_IOERR_DATA) note(damaged_page() + " is damaged");
    }
  }

  sqlite3* database_;
  Checked checked_;
};

}  // namespace

bool is_without_checksums(const std::string& path) {
  const Result<Database> plain = open_database(path, SQLITE_OPEN_READWRITE, /*plain=*/true);
  if (!plain) return false;
  const Result<int> version = version_of(plain->get());
  return version && *version == 1;
}

Result<Checked> check_file(const std::string& path) {
  // Its log is read after a crash, so it is opened for writing; nothing is written.
  Result<Database> database = open_database(path, SQLITE_OPEN_READWRITE);
  if (!database) return pass(std::move(database.error()));
  return Check(database->get()).run();
}

Result<Checked> check(const std::string& directory) {
  const std::string path = database_path(directory);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return fail(Code::io, fmt::format("there is no store in {}", directory));
  }
  const Result<Fd> claimed = claim_store(directory);
  if (!claimed) {
    Error why = claimed.error();
    why.hint = "a running controller verifies its store by itself: `sdiag` says what it found";
    return pass(std::move(why));
  }
  const auto told = AcknowledgedFile::read(directory);
  if (told && !*told && is_without_checksums(path)) {
    return fail(Code::io, fmt::format("{} was written by a berth without checksums", path),
                "the next start of berthctld adds them");
  }
  Result<Checked> checked = check_file(path);
  if (!checked) return checked;
  if (!told) {
    checked->troubles.emplace_back(told.error().what());
  } else if (!*told && checked->commits > 0) {
    checked->troubles.push_back(AcknowledgedFile::path(directory) + " is missing");
  } else if (*told) {
    const auto whole =
        compare_acknowledged(directory, {checked->commits, checked->epoch, 0}, **told);
    if (!whole) checked->troubles.emplace_back(whole.error().what());
  }
  return checked;
}

}  // namespace berth::store
