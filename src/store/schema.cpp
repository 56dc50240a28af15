#include "store/schema.h"

#include <fmt/format.h>

namespace berth::store {
namespace {

// What history filters by is a column, the rest is in the record: a field added to a message needs
// no change here. `live` marks rows that are read at start.
constexpr const char* kTables = R"sql(
BEGIN;
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE blobs (key INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE jobs (
  key INTEGER PRIMARY KEY,
  id INTEGER NOT NULL,
  uid INTEGER NOT NULL,
  submitted INTEGER NOT NULL,
  started INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  state TEXT NOT NULL,
  partition TEXT NOT NULL,
  account TEXT NOT NULL,
  name TEXT NOT NULL,
  array_job INTEGER,
  array_task INTEGER,
  het_job INTEGER,
  het_offset INTEGER NOT NULL,
  token TEXT NOT NULL,
  asked INTEGER NOT NULL,
  live INTEGER NOT NULL,
  latest INTEGER NOT NULL,
  record BLOB NOT NULL);
CREATE INDEX jobs_live ON jobs (key) WHERE live = 1;
CREATE INDEX jobs_ended ON jobs (ended);
CREATE INDEX jobs_uid ON jobs (uid, submitted);
CREATE INDEX jobs_array ON jobs (array_job) WHERE array_job IS NOT NULL;
CREATE INDEX jobs_het ON jobs (het_job) WHERE het_job IS NOT NULL;
CREATE INDEX jobs_token ON jobs (token) WHERE token <> '';
CREATE INDEX jobs_asked ON jobs (asked);
CREATE TABLE steps (
  job INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  step INTEGER NOT NULL,
  record BLOB NOT NULL,
  PRIMARY KEY (job, attempt, step)) WITHOUT ROWID;
CREATE TABLE nodes (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE partitions (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
PRAGMA user_version = 2;
COMMIT;
)sql";

// Came later: a store that an older berth has made gets it when it is opened; that one can still
// read it.
constexpr const char* kReservations =
    "CREATE TABLE IF NOT EXISTS reservations (name TEXT PRIMARY KEY, record BLOB NOT NULL)"
    " WITHOUT ROWID";
// One row for each start of the controller. `mark` is a number that no other start has, also not
// one that came from a copy of this file; `commits` were there before; `settled`: what came before
// this start in other copies is given up (restore, --accept-loss).
constexpr const char* kStarts =
    "CREATE TABLE IF NOT EXISTS starts (epoch INTEGER PRIMARY KEY, mark INTEGER NOT NULL,"
    " commits INTEGER NOT NULL, settled INTEGER NOT NULL)";

}  // namespace

Result<int> version_of(sqlite3* database) {
  Result<Statement> ask = Statement::make(database, "PRAGMA user_version");
  if (!ask) return pass(std::move(ask.error()));
  const bool found = ask->next();
  if (!found || ask->failed()) return ask->error();
  return static_cast<int>(ask->number(0));
}

std::string database_path(const std::string& directory) {
  return directory + "/berth.db";
}

Result<void> prepare_schema(sqlite3* database) {
  const Result<int> version = version_of(database);
  if (!version) return pass(version.error());
  Result<void> done = *version == 0 ? execute(database, kTables) : check_version(database);
  if (done) done = execute(database, kReservations);
  if (done) done = execute(database, kStarts);
  return done;
}

Result<void> check_version(sqlite3* database) {
  const Result<int> version = version_of(database);
  if (!version) return pass(version.error());
  if (*version != kVersion) {
    return fail(
        Code::bad_config,
        fmt::format("the store has version {}, this berth reads version {}", *version, kVersion),
        *version > kVersion ? "a newer berth wrote it: start that one" : "");
  }
  return {};
}

Result<JobRow> job_row(const Statement& statement, int column) {
  Result<wire::JobRecord> record = message_in<wire::JobRecord>(statement, column);
  if (!record) return pass(std::move(record.error()));
  return JobRow{std::move(*record), std::string(statement.bytes(column + 1)),
                std::string(statement.bytes(column + 2))};
}

Result<std::vector<wire::StepRecord>> read_steps(Statement& select, std::uint32_t job_id,
                                                 std::uint32_t attempt) {
  std::vector<wire::StepRecord> steps;
  Result<void> result;
  select.bind(job_id).bind(attempt);
  while (result && select.next()) {
    Result<wire::StepRecord> step = message_in<wire::StepRecord>(select, 0);
    if (step) {
      steps.push_back(std::move(*step));
    } else {
      result = pass(std::move(step.error()));
    }
  }
  if (select.failed()) result = select.error();
  select.reset();
  if (!result) return pass(std::move(result.error()));
  return steps;
}

Result<wire::Asked> read_asked(Statement& select, std::uint64_t key) {
  select.bind(key);
  Result<wire::Asked> asked = fail(Code::io, "the store does not have what was asked for");
  if (select.next()) asked = message_in<wire::Asked>(select, 0);
  if (select.failed()) asked = select.error();
  select.reset();
  return asked;
}

}  // namespace berth::store
