// What disk.h promises.
#include "rehearsal/disk.h"

#include <sqlite3.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <list>
#include <map>
#include <string_view>
#include <vector>

namespace berth::rehearsal {
namespace {

constexpr std::array<std::string_view, 3> kFiles{"/berth.db", "/berth.db-wal", "/berth.acked"};

/// How to undo a write: what was there, and how long the file was.
struct Undo {
  sqlite3_int64 at = 0;
  std::string bytes;
  sqlite3_int64 size = 0;
};

/// SQLite has one table of functions for each kind of file.
struct Functions {
  const sqlite3_io_methods* real = nullptr;
  sqlite3_io_methods ours{};
};

struct OpenFile {
  std::string path;
  const sqlite3_io_methods* real = nullptr;
};

/// One thread has stores in a rehearsal.
struct Memory {
  sqlite3_vfs* system = nullptr;
  bool full = false;
  sqlite3_vfs vfs{};
  std::list<Functions> functions;
  std::map<sqlite3_file*, OpenFile> open;
  std::map<std::string, std::vector<Undo>, std::less<>> unsynced;  // by path, in order
};

Memory& memory() {
  static Memory only;
  return only;
}

void note(sqlite3_file* file, const OpenFile& known, sqlite3_int64 at, sqlite3_int64 length) {
  Undo undo;
  undo.at = at;
  known.real->xFileSize(file, &undo.size);
  if (at < undo.size && length > 0) {
    undo.bytes.resize(static_cast<std::size_t>(std::min(length, undo.size - at)));
    known.real->xRead(file, undo.bytes.data(), static_cast<int>(undo.bytes.size()), at);
  }
  memory().unsynced[known.path].push_back(std::move(undo));
}

int write_file(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
  if (memory().full) return SQLITE_FULL;
  const OpenFile& known = memory().open.at(file);
  note(file, known, at, size);
  return known.real->xWrite(file, from, size, at);
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  const OpenFile& known = memory().open.at(file);
  sqlite3_int64 now = 0;
  known.real->xFileSize(file, &now);
  note(file, known, size, now - size);
  return known.real->xTruncate(file, size);
}

int sync_file(sqlite3_file* file, int flags) {
  const OpenFile& known = memory().open.at(file);
  const int result = known.real->xSync(file, flags);
  if (result == SQLITE_OK) memory().unsynced.erase(known.path);
  return result;
}

int close_file(sqlite3_file* file) {
  const sqlite3_io_methods* real = memory().open.at(file).real;
  memory().open.erase(file);
  return real->xClose(file);
}

const sqlite3_io_methods* ours(const sqlite3_io_methods* real) {
  for (const Functions& known : memory().functions) {
    if (known.real == real) return &known.ours;
  }
  Functions& made = memory().functions.emplace_back(real, *real);
  made.ours.xWrite = write_file;
  made.ours.xTruncate = truncate_file;
  made.ours.xSync = sync_file;
  made.ours.xClose = close_file;
  return &made.ours;
}

int open_file(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* out) {
  Memory& m = memory();
  const int result = m.system->xOpen(m.system, name, file, flags, out);
  const bool kept = (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)) != 0;
  if (result != SQLITE_OK || !kept || name == nullptr) return result;
  m.open[file] = {name, file->pMethods};
  file->pMethods = ours(file->pMethods);
  return result;
}

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

void Disk::install() {
  Memory& m = memory();
  if (m.system != nullptr) return;
  m.system = ::sqlite3_vfs_find(nullptr);
  m.vfs = *m.system;
  m.vfs.zName = "rehearsal";
  m.vfs.pNext = nullptr;
  m.vfs.xOpen = open_file;
  ::sqlite3_vfs_register(&m.vfs, 1);
}

void Disk::set_full(bool full) {
  memory().full = full;
}

void Disk::copy_written(const std::string& from, const std::string& to) {
  std::filesystem::create_directory(to);
  for (const std::string_view name : kFiles) {
    const std::string source = from + std::string(name);
    if (std::filesystem::exists(source)) {
      std::filesystem::copy_file(source, to + std::string(name));
    }
  }
}

void Disk::copy_synced(const std::string& from, const std::string& to, Random& random) {
  copy_written(from, to);
  for (const std::string_view name : kFiles) {
    const auto found = memory().unsynced.find(from + std::string(name));
    if (found == memory().unsynced.end() || found->second.empty()) continue;
    const std::vector<Undo>& all = found->second;
    const std::size_t kept = random.one_in(2) ? 0 : random.below(all.size() + 1);
    std::string bytes = read_all(to + std::string(name));
    for (std::size_t i = all.size(); i > kept; --i) {
      const Undo& undo = all[i - 1];
      bytes.resize(static_cast<std::size_t>(undo.size));
      bytes.replace(static_cast<std::size_t>(std::min(undo.at, undo.size)), undo.bytes.size(),
                    undo.bytes);
    }
    std::ofstream(to + std::string(name), std::ios::binary | std::ios::trunc) << bytes;
  }
}

void Disk::forget(const std::string& folder) {
  for (const std::string_view name : kFiles) {
    const auto found = memory().unsynced.find(folder + std::string(name));
    if (found != memory().unsynced.end()) memory().unsynced.erase(found);
  }
}

}  // namespace berth::rehearsal
