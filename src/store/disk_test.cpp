// Disks that fail: what was refused stays refused, what was acknowledged stays, and the store goes
// on by itself.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "store/store.h"
#include "store/test_fixture.h"

namespace berth::store {
namespace {

/// SQLite's file functions with faults in those of the log. SQLite has one table of functions for
/// each kind of file, so a copy with two functions changed is given to log files only.
struct FaultyDisk {
  static inline int syncs_left = -1;   // -1: no limit
  static inline int writes_left = -1;  // -1: no limit
  static inline const sqlite3_io_methods* real = nullptr;
  static inline sqlite3_io_methods faulty{};
  static inline sqlite3_vfs* system = nullptr;
  static inline sqlite3_vfs vfs{};

  static int sync(sqlite3_file* file, int flags) {
    if (syncs_left == 0) return SQLITE_IOERR_FSYNC;
    if (syncs_left > 0) --syncs_left;
    return real->xSync(file, flags);
  }
  static int write(sqlite3_file* file, const void* data, int size, sqlite3_int64 at) {
    if (writes_left == 0) return SQLITE_FULL;
    if (writes_left > 0) --writes_left;
    return real->xWrite(file, data, size, at);
  }
  static int open(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* out) {
    const int result = system->xOpen(system, name, file, flags, out);
    if (result == SQLITE_OK && (flags & SQLITE_OPEN_WAL) != 0) {
      real = file->pMethods;
      faulty = *real;
      faulty.xSync = sync;
      faulty.xWrite = write;
      file->pMethods = &faulty;
    }
    return result;
  }
  FaultyDisk() {
    system = ::sqlite3_vfs_find(nullptr);
    vfs = *system;
    vfs.zName = "faulty";
    vfs.pNext = nullptr;
    vfs.xOpen = open;
    ::sqlite3_vfs_register(&vfs, 1);
    syncs_left = -1;
    writes_left = -1;
  }
  ~FaultyDisk() {
    ::sqlite3_vfs_unregister(&vfs);
    ::sqlite3_vfs_register(system, 1);
  }
};

class Disk : public StoreTest {
 protected:
  Result<void> put(Store& store, std::uint32_t id) {
    Batch batch;
    batch.jobs = {job(id, "PENDING")};
    return store.commit(batch);
  }
  /// What another process would find: the files as they are now, as after a crash.
  std::vector<std::uint32_t> after_a_crash() {
    const std::string copy = folder() + "/copy";
    std::filesystem::remove_all(copy);
    std::filesystem::create_directory(copy);
    for (const char* name : {"/berth.db", "/berth.db-wal", "/berth.acked"}) {
      if (std::filesystem::exists(folder() + name)) {
        std::filesystem::copy_file(folder() + name, copy + name);
      }
    }
    auto store = Store::open(copy);
    EXPECT_TRUE(store);
    return ids(store->load(1)->jobs);
  }
  using Ids = std::vector<std::uint32_t>;
};

TEST_F(Disk, AFailedSyncIsNotAcknowledgedAndDoesNotComeBack) {
  FaultyDisk disk;
  Store store = open();
  ASSERT_TRUE(put(store, 1));
  FaultyDisk::syncs_left = 0;
  EXPECT_FALSE(put(store, 2));
  EXPECT_EQ(ids(store.load(1)->jobs), Ids{1});
  FaultyDisk::syncs_left = -1;
  EXPECT_EQ(after_a_crash(), Ids{1});
  ASSERT_TRUE(put(store, 3));
  EXPECT_EQ(after_a_crash(), (Ids{1, 3}));
}

TEST_F(Disk, AFailedSyncOfAFreshLogDoesNotComeBackEither) {
  FaultyDisk disk;
  {
    Store store = open();
    ASSERT_TRUE(put(store, 1));
  }
  Store store = open();        // the log is empty now
  FaultyDisk::syncs_left = 1;  // that of the log's new header
  EXPECT_FALSE(put(store, 2));
  FaultyDisk::syncs_left = -1;
  EXPECT_EQ(after_a_crash(), Ids{1});
  ASSERT_TRUE(put(store, 3));
  EXPECT_EQ(after_a_crash(), (Ids{1, 3}));
}

TEST_F(Disk, AFailureWhenTheLogBeginsAnewDoesNotComeBack) {
  FaultyDisk disk;
  Store store = open();
  // Enough for a checkpoint; the next commit begins the log anew.
  Batch large;
  large.jobs = {job(1, "PENDING")};
  large.jobs[0].record.set_asked_blob(store.add_blob(large, std::string(5000000, 'b')));
  ASSERT_TRUE(store.commit(large));
  FaultyDisk::syncs_left = 1;  // that of the log's new header
  EXPECT_FALSE(put(store, 2));
  FaultyDisk::syncs_left = -1;
  EXPECT_EQ(after_a_crash(), Ids{1});
  ASSERT_TRUE(put(store, 3));
  EXPECT_EQ(after_a_crash(), (Ids{1, 3}));
}

TEST_F(Disk, WhereverAWriteFailsNothingOfTheCommitIsLeft) {
  for (int writes = 0; writes < 12; ++writes) {
    FaultyDisk disk;
    Store store = open();
    const auto base = static_cast<std::uint32_t>(writes) * 10;
    const Ids before = ids(store.load(1)->jobs);
    FaultyDisk::writes_left = writes;
    const bool acknowledged = put(store, base + 1).has_value();
    FaultyDisk::writes_left = -1;
    Ids expected = before;
    if (acknowledged) expected.push_back(base + 1);
    EXPECT_EQ(ids(store.load(1)->jobs), expected) << writes;
    EXPECT_EQ(after_a_crash(), expected) << writes;
    ASSERT_TRUE(put(store, base + 2)) << writes;
    expected.push_back(base + 2);
    EXPECT_EQ(after_a_crash(), expected) << writes;
  }
}

// A disk that is really full, as far as one process can have that: files may not grow.
TEST_F(Disk, AFullDiskIsAnErrorAndRoomMakesItWorkAgain) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    auto store = Store::open(folder());
    if (!store) ::_exit(10);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit small{300 * 1024, limit.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    std::uint32_t id = 0;
    std::uint32_t refused = 0;
    Ids acknowledged;
    while (refused < 3 && id < 10000) {
      if (put(*store, ++id)) {
        acknowledged.push_back(id);
      } else {
        ++refused;
      }
    }
    if (refused != 3) ::_exit(11);
    if (ids(store->load(1)->jobs) != acknowledged) ::_exit(12);
    ::setrlimit(RLIMIT_FSIZE, &limit);
    if (!put(*store, ++id)) ::_exit(13);
    acknowledged.push_back(id);
    if (after_a_crash() != acknowledged) ::_exit(14);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace berth::store
