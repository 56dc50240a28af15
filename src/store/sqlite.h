// SQLite as values: a database, a prepared statement, errors in words. Inside of src/store only.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::store {

inline constexpr const char* kDamagedHint =
    "`berthctld --check` says what is wrong; `berth restore FILE` puts a backup in its place";

struct CloseDatabase {
  // v2: statements that are still there keep it open until they are finalized.
  void operator()(sqlite3* database) const { ::sqlite3_close_v2(database); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

/// An error with what SQLite and the system say; when the files are damaged, with what to do.
std::unexpected<Error> failed(sqlite3* database, const char* what);

/// With a checksum for every page (checked_file.h), unless `plain`.
Result<Database> open_database(const std::string& path, int flags, bool plain = false);
/// Statements without results.
Result<void> execute(sqlite3* database, const char* sql);

/// A prepared statement. Bound in order of its question marks, then run; reset afterwards.
///   insert.bind(id).bind(name); insert.run();
///   select.bind(id); while (select.next()) use(select.number(0)); if (select.failed()) …;
///   select.reset();
class Statement {
 public:
  Statement() = default;
  static Result<Statement> make(sqlite3* database, std::string_view sql);

  Statement& bind(std::int64_t value);
  Statement& bind(std::uint32_t value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(std::uint64_t value) { return bind(static_cast<std::int64_t>(value)); }
  /// Text and blobs must stay as they are until the statement has run.
  Statement& bind(std::string_view text);
  Statement& bind_blob(std::string_view bytes);
  Statement& bind_null();
  template <class T>
  Statement& bind_if(bool given, T value) {
    return given ? bind(value) : bind_null();
  }

  /// Runs it to its end.
  Result<void> run();
  /// The next row, if there is one.
  bool next();
  [[nodiscard]] bool failed() const { return trouble_; }
  [[nodiscard]] std::unexpected<Error> error() const;
  void reset();

  [[nodiscard]] std::int64_t number(int column) const;
  [[nodiscard]] std::string_view bytes(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { ::sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
  bool trouble_ = false;
};

}  // namespace berth::store
