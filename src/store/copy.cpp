#include "store/copy.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/fd.h"
#include "store/checked_file.h"
#include "store/page_sum.h"
#include "store/sqlite.h"

namespace berth::store {

Result<void> copy_database(const std::string& from, const std::string& to, bool from_plain) {
  std::error_code ignored;
  std::filesystem::remove(to, ignored);
  // Made first, for its mode.
  const Fd made(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made) return fail(Code::io, fmt::format("cannot make {}: {}", to, std::strerror(errno)));
  Result<Database> source = open_database(from, SQLITE_OPEN_READWRITE, from_plain);
  if (!source) return pass(std::move(source.error()));
  ::sqlite3_busy_timeout(source->get(), 10000);
  if (from_plain && ::sqlite3_wal_checkpoint_v2(source->get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE,
                                                nullptr, nullptr) != SQLITE_OK) {
    return fail(Code::io, fmt::format("{}: its log cannot be written into it: {}", from,
                                      ::sqlite3_errmsg(source->get())));
  }
  int reserved = kSumSize;
  ::sqlite3_file_control(source->get(), "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
  checked_files();  // is known by its name from here on
  Result<Statement> copy = Statement::make(source->get(), "VACUUM INTO ?");
  if (!copy) return pass(std::move(copy.error()));
  // Characters that mean something in a URI.
  std::string uri = "file:";
  for (const char c : to) {
    uri += c == '%' || c == '?' || c == '#' ? fmt::format("%{:02x}", static_cast<unsigned>(c))
                                            : std::string(1, c);
  }
  uri += "?vfs=berth";
  return copy->bind(std::string_view(uri)).run();
}

Result<void> change_copy(const std::string& path, const std::vector<std::string>& statements) {
  Result<Database> database = open_database(path, SQLITE_OPEN_READWRITE);
  if (!database) return pass(std::move(database.error()));
  for (const std::string& sql : statements) {
    if (auto done = execute(database->get(), sql.c_str()); !done) return done;
  }
  database->reset();
  const Fd written(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!written || ::fsync(written.get()) != 0) {
    return fail(Code::io, fmt::format("{}: {}", path, std::strerror(errno)));
  }
  return {};
}

}  // namespace berth::store
