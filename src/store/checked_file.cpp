#include "store/checked_file.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "store/page_sum.h"

namespace berth::store {
namespace {

constexpr sqlite3_int64 kPage = kPageSize;
constexpr int kBodySize = static_cast<int>(kPageSize - kSumSize);
// https://www.sqlite.org/fileformat2.html#walformat
constexpr sqlite3_int64 kFirstPageOfLog = 32 + 24;
constexpr sqlite3_int64 kFrame = kPage + 24;

thread_local std::string last_damaged;

/// Sums of the pages of one log, shared by all connections of this process.
class LogSums {
 public:
  void note(std::size_t frame, std::uint64_t sum) {
    const std::lock_guard lock(mutex_);
    if (sums_.size() <= frame) sums_.resize(frame + 1, 0);
    sums_[frame] = sum;
  }
  void forget_from(std::size_t frame) {
    const std::lock_guard lock(mutex_);
    if (sums_.size() > frame) sums_.resize(frame);
  }
  /// 0 = not known.
  std::uint64_t of(std::size_t frame) {
    const std::lock_guard lock(mutex_);
    return frame < sums_.size() ? sums_[frame] : 0;
  }
  /// Of the log at `path`; the same as long as somebody has it.
  static std::shared_ptr<LogSums> at(const std::string& path) {
    static std::mutex mutex;
    static std::map<std::string, std::weak_ptr<LogSums>> all;
    const std::lock_guard lock(mutex);
    std::erase_if(all, [](const auto& one) { return one.second.expired(); });
    std::shared_ptr<LogSums> sums = all[path].lock();
    if (!sums) all[path] = sums = std::make_shared<LogSums>();
    return sums;
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t> sums_;
};

enum class Kind { database, log, other };

/// What we know of an open file; SQLite's memory for it follows.
struct Checked {
  sqlite3_file base;
  Kind kind;
  std::string* path;
  std::shared_ptr<LogSums>* sums;
};

// What SQLite's own file needs is aligned as this is.
constexpr std::size_t kOwn = (sizeof(Checked) + 15) / 16 * 16;

Checked* checked(sqlite3_file* file) {
  return reinterpret_cast<Checked*>(file);
}
sqlite3_file* inner(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + kOwn);
}

bool whole_page(int size, sqlite3_int64 at) {
  return size == kPage && at % kPage == 0;
}
std::uint64_t place_of(sqlite3_int64 at) {
  return static_cast<std::uint64_t>(at / kPage + 1);
}
/// The frame whose page is at this place of the log; -1 = it is no page.
sqlite3_int64 frame_of(int size, sqlite3_int64 at) {
  if (size != kPage || at < kFirstPageOfLog || (at - kFirstPageOfLog) % kFrame != 0) return -1;
  return (at - kFirstPageOfLog) / kFrame;
}

int damaged(const Checked& file, const char* what, sqlite3_int64 number) {
  last_damaged = fmt::format("{} {} of {}", what, number, *file.path);
  return SQLITE_IOERR_DATA;
}

int close_file(sqlite3_file* file) {
  const int result = inner(file)->pMethods->xClose(inner(file));
  delete checked(file)->path;
  delete checked(file)->sums;
  return result;
}

int read_file(sqlite3_file* file, void* to, int size, sqlite3_int64 at) {
  const int result = inner(file)->pMethods->xRead(inner(file), to, size, at);
  if (result != SQLITE_OK) return result;
  const Checked& own = *checked(file);
  if (own.kind == Kind::database && whole_page(size, at)) {
    std::uint64_t written = 0;
    std::memcpy(&written, static_cast<const char*>(to) + kBodySize, sizeof written);
    if (written != sum_of(to, kBodySize, place_of(at))) {
      return damaged(own, "page", at / kPage + 1);
    }
  } else if (own.kind == Kind::log) {
    const sqlite3_int64 frame = frame_of(size, at);
    const std::uint64_t known = frame < 0 ? 0 : (*own.sums)->of(static_cast<std::size_t>(frame));
    if (known != 0 && known != sum_of(to, kPageSize, static_cast<std::uint64_t>(frame))) {
      return damaged(own, "frame", frame + 1);
    }
  }
  return result;
}

int write_file(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
  const Checked& own = *checked(file);
  if (own.kind == Kind::database && whole_page(size, at)) {
    alignas(16) char page[kPageSize];
    std::memcpy(page, from, static_cast<std::size_t>(kBodySize));
    const std::uint64_t sum = sum_of(page, kBodySize, place_of(at));
    std::memcpy(page + kBodySize, &sum, sizeof sum);
    return inner(file)->pMethods->xWrite(inner(file), page, size, at);
  }
  const int result = inner(file)->pMethods->xWrite(inner(file), from, size, at);
  if (own.kind == Kind::log && result == SQLITE_OK) {
    const sqlite3_int64 frame = frame_of(size, at);
    if (frame >= 0) {
      (*own.sums)->note(static_cast<std::size_t>(frame),
                        sum_of(from, kPageSize, static_cast<std::uint64_t>(frame)));
    } else if (at >= kFirstPageOfLog - 24 && size != 24) {
      // In pieces: what is there now is not known.
      (*own.sums)->forget_from(static_cast<std::size_t>((at - 32) / kFrame));
    }
  }
  return result;
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  if (checked(file)->kind == Kind::log) {
    const sqlite3_int64 frames = std::max<sqlite3_int64>(size - 32, 0) / kFrame;
    (*checked(file)->sums)->forget_from(static_cast<std::size_t>(frames));
  }
  return inner(file)->pMethods->xTruncate(inner(file), size);
}

int sync_file(sqlite3_file* file, int flags) {
  return inner(file)->pMethods->xSync(inner(file), flags);
}
int file_size(sqlite3_file* file, sqlite3_int64* size) {
  return inner(file)->pMethods->xFileSize(inner(file), size);
}
int lock_file(sqlite3_file* file, int level) {
  return inner(file)->pMethods->xLock(inner(file), level);
}
int unlock_file(sqlite3_file* file, int level) {
  return inner(file)->pMethods->xUnlock(inner(file), level);
}
int check_reserved_lock(sqlite3_file* file, int* out) {
  return inner(file)->pMethods->xCheckReservedLock(inner(file), out);
}
int file_control(sqlite3_file* file, int what, void* with) {
  return inner(file)->pMethods->xFileControl(inner(file), what, with);
}
int sector_size(sqlite3_file* file) {
  return inner(file)->pMethods->xSectorSize(inner(file));
}
int device_characteristics(sqlite3_file* file) {
  return inner(file)->pMethods->xDeviceCharacteristics(inner(file));
}
int shm_map(sqlite3_file* file, int page, int size, int extend, volatile void** out) {
  return inner(file)->pMethods->xShmMap(inner(file), page, size, extend, out);
}
int shm_lock(sqlite3_file* file, int offset, int count, int flags) {
  return inner(file)->pMethods->xShmLock(inner(file), offset, count, flags);
}
void shm_barrier(sqlite3_file* file) {
  inner(file)->pMethods->xShmBarrier(inner(file));
}
int shm_unmap(sqlite3_file* file, int remove) {
  return inner(file)->pMethods->xShmUnmap(inner(file), remove);
}

// Version 2: no mapping of pages into memory, which would go past xRead.
const sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = file_size,
    .xLock = lock_file,
    .xUnlock = unlock_file,
    .xCheckReservedLock = check_reserved_lock,
    .xFileControl = file_control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = device_characteristics,
    .xShmMap = shm_map,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = shm_unmap,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int open_file(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* out) {
  sqlite3_vfs* system = ::sqlite3_vfs_find(nullptr);
  file->pMethods = nullptr;
  const int result = system->xOpen(system, name, inner(file), flags, out);
  if (result != SQLITE_OK) return result;
  Checked& own = *checked(file);
  own.kind = (flags & SQLITE_OPEN_MAIN_DB) != 0 ? Kind::database
             : (flags & SQLITE_OPEN_WAL) != 0   ? Kind::log
                                                : Kind::other;
  own.path = new std::string(name == nullptr ? "" : name);
  own.sums = new std::shared_ptr<LogSums>(own.kind == Kind::log ? LogSums::at(*own.path) : nullptr);
  own.base.pMethods = &kMethods;
  return SQLITE_OK;
}

}  // namespace

const char* checked_files() {
  static sqlite3_vfs vfs = [] {
    sqlite3_vfs made = *::sqlite3_vfs_find(nullptr);
    made.szOsFile += static_cast<int>(kOwn);
    made.pNext = nullptr;
    made.zName = "berth";
    made.xOpen = open_file;
    return made;
  }();
  [[maybe_unused]] static const int registered = ::sqlite3_vfs_register(&vfs, 0);
  return vfs.zName;
}

const std::string& damaged_page() {
  return last_damaged;
}

}  // namespace berth::store
