#include "store/sqlite.h"

#include <fmt/format.h>

#include <cstring>

#include "store/checked_file.h"

namespace berth::store {

std::unexpected<Error> failed(sqlite3* database, const char* what) {
  const int code = ::sqlite3_extended_errcode(database);
  if (code == SQLITE_IOERR_DATA) {
    return fail(Code::io, fmt::format("{}: {} is damaged", what, damaged_page()), kDamagedHint);
  }
  if ((code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB) {
    return fail(Code::io, fmt::format("{}: it is damaged ({})", what, ::sqlite3_errmsg(database)),
                kDamagedHint);
  }
  const int system = ::sqlite3_system_errno(database);
  return fail(Code::io,
              fmt::format("{}: {}{}{}", what, ::sqlite3_errmsg(database), system != 0 ? ": " : "",
                          system != 0 ? std::strerror(system) : ""));
}

Result<Database> open_database(const std::string& path, int flags, bool plain) {
  sqlite3* raw = nullptr;
  // NOMUTEX: each connection belongs to one thread.
  // URI: for VACUUM INTO, of files of another kind. The path itself is never one: it has no
  // "file:".
  const int result =
      ::sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI,
                        plain ? nullptr : checked_files());
  Database database(raw);
  if (result != SQLITE_OK) {
    return failed(raw, fmt::format("cannot open {}", path).c_str());
  }
  ::sqlite3_extended_result_codes(raw, 1);
  // Only Store empties the log, when it has made sure of what is in it.
  ::sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return database;
}

Result<void> execute(sqlite3* database, const char* sql) {
  if (::sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return failed(database, "the store failed");
  }
  return {};
}

Result<Statement> Statement::make(sqlite3* database, std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  if (::sqlite3_prepare_v3(database, sql.data(), static_cast<int>(sql.size()),
                           SQLITE_PREPARE_PERSISTENT, &raw, nullptr) != SQLITE_OK) {
    return store::failed(database, "the store cannot be asked");
  }
  Statement made;
  made.statement_.reset(raw);
  return made;
}

Statement& Statement::bind(std::int64_t value) {
  ::sqlite3_bind_int64(statement_.get(), ++bound_, value);
  return *this;
}
Statement& Statement::bind(std::string_view text) {
  ::sqlite3_bind_text64(statement_.get(), ++bound_, text.data(), text.size(), SQLITE_STATIC,
                        SQLITE_UTF8);
  return *this;
}
Statement& Statement::bind_blob(std::string_view bytes) {
  ::sqlite3_bind_blob64(statement_.get(), ++bound_, bytes.data(), bytes.size(), SQLITE_STATIC);
  return *this;
}
Statement& Statement::bind_null() {
  ::sqlite3_bind_null(statement_.get(), ++bound_);
  return *this;
}

Result<void> Statement::run() {
  while (next()) {
  }
  Result<void> result;
  if (trouble_) result = error();
  reset();
  return result;
}

bool Statement::next() {
  const int result = ::sqlite3_step(statement_.get());
  trouble_ = result != SQLITE_ROW && result != SQLITE_DONE;
  return result == SQLITE_ROW;
}

std::unexpected<Error> Statement::error() const {
  return store::failed(::sqlite3_db_handle(statement_.get()), "the store failed");
}

void Statement::reset() {
  ::sqlite3_reset(statement_.get());
  bound_ = 0;
  trouble_ = false;
}

std::int64_t Statement::number(int column) const {
  return ::sqlite3_column_int64(statement_.get(), column);
}

std::string_view Statement::bytes(int column) const {
  const void* at = ::sqlite3_column_blob(statement_.get(), column);
  const int size = ::sqlite3_column_bytes(statement_.get(), column);
  if (at == nullptr) return {};
  return {static_cast<const char*>(at), static_cast<std::size_t>(size)};
}

}  // namespace berth::store
