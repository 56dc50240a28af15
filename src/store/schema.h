// The tables, and what both readers of them share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/batch.h"
#include "store/sqlite.h"
#include "wire/record.pb.h"
#include "wire/submit.pb.h"

namespace berth::store {

inline constexpr int kVersion = 2;  // PRAGMA user_version; 1 had no checksums

std::string database_path(const std::string& directory);
Result<int> version_of(sqlite3* database);
/// Makes the tables of an empty file; an error when a newer berth wrote it.
Result<void> prepare_schema(sqlite3* database);
/// An error unless the file is of this version.
Result<void> check_version(sqlite3* database);

/// Rows of a job are next to each other: its id, then the number of its run.
constexpr std::int64_t row_key(std::uint32_t id, std::uint32_t run) {
  return static_cast<std::int64_t>(id) << 24 | (run & 0xffffff);
}
constexpr std::int64_t first_key_of(std::uint32_t id) {
  return row_key(id, 0);
}
constexpr std::int64_t last_key_of(std::uint32_t id) {
  return row_key(id, 0xffffff);
}

/// Columns "record, name, account" from `column` on.
Result<JobRow> job_row(const Statement& statement, int column);
/// The blob in `column` as a message.
template <class M>
Result<M> message_in(const Statement& statement, int column) {
  const std::string_view bytes = statement.bytes(column);
  M message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(Code::io, "the store has a record that cannot be read", kDamagedHint);
  }
  return message;
}

inline constexpr std::string_view kSelectSteps =
    "SELECT record FROM steps WHERE job = ? AND attempt = ? ORDER BY step";
inline constexpr std::string_view kSelectBlob = "SELECT bytes FROM blobs WHERE key = ?";

Result<std::vector<wire::StepRecord>> read_steps(Statement& select, std::uint32_t job_id,
                                                 std::uint32_t attempt);
Result<wire::Asked> read_asked(Statement& select, std::uint64_t key);

}  // namespace berth::store
