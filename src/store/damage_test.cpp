// Damaged files: every change of them is noticed, or makes no difference to what is read.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/whole_file.h"
#include "store/acknowledged.h"
#include "store/backup.h"
#include "store/check.h"
#include "store/history.h"
#include "store/schema.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "store/test_fixture.h"

namespace berth::store {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kJobs = 120;
constexpr const char* kDatabase = "/berth.db";
constexpr const char* kLog = "/berth.db-wal";
constexpr const char* kAcknowledged = "/berth.acked";

/// In memory: thousands of stores are opened, and what is synced does not matter here.
class Damage : public StoreTest {
 protected:
  Damage() : StoreTest("/dev/shm") {}
  /// Adds jobs first … last, each in a commit of its own.
  static void put_secret(const std::string& at, const char* name, const char* text) {
    ASSERT_TRUE(write_whole_file(at + '/' + name, text, 0600));
  }
  static void add_jobs(Store& store, std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t id = first; id <= last; ++id) {
      Batch batch;
      batch.jobs = {job(id, id % 3 == 0 ? "COMPLETED" : "PENDING", id % 3 == 0 ? 1000 + id : 0)};
      batch.jobs[0].record.set_token(fmt::format("token{}", id));
      wire::Asked asked;
      asked.set_script(fmt::format("#!/bin/sh\n# {}\n{}", id, std::string(id * 37, 'x')));
      batch.jobs[0].record.set_asked_blob(store.add_blob(batch, asked.SerializeAsString()));
      wire::StepRecord step;
      step.set_job_id(id);
      step.set_attempt(1);
      step.set_name("batch");
      batch.steps.push_back(step);
      batch.next_job_id = id + 1;
      ASSERT_TRUE(store.commit(batch));
    }
  }
  /// A store with most of it in the database and the last commits in the log, as a killed
  /// controller leaves it, in folder()/whole.
  void make_killed() {
    const std::string live = folder() + "/live";
    {
      auto store = Store::open(live);
      ASSERT_TRUE(store);
      ASSERT_TRUE(store->raise_epoch());
      add_jobs(*store, 1, kJobs - 20);
      ASSERT_TRUE(store->purge_jobs(1020, 100));
      ASSERT_TRUE(store->purge_blobs(100));
    }
    auto store = Store::open(live);
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->raise_epoch());
    add_jobs(*store, kJobs - 19, kJobs);
    copy(live, folder() + "/whole");
    expected_ = content(folder() + "/whole-read", folder() + "/whole").value();
  }
  static void copy(const std::string& from, const std::string& to) {
    fs::remove_all(to);
    fs::create_directory(to);
    for (const char* name : {kDatabase, kLog, kAcknowledged}) {
      if (fs::exists(from + name)) fs::copy_file(from + name, to + name);
    }
  }
  /// All that can be read of a copy of the store.
  static Result<std::string> content(const std::string& at, const std::string& of) {
    copy(of, at);
    auto store = Store::open(at);
    if (!store) return pass(std::move(store.error()));
    auto loaded = store->load(1);
    if (!loaded) return pass(std::move(loaded.error()));
    std::string all = fmt::format("{} {}\n", store->epoch(), loaded->next_job_id);
    for (const JobRow& row : loaded->jobs) {
      all += row.record.SerializeAsString() + row.name + row.account;
    }
    for (std::uint32_t id = 1; id <= kJobs; ++id) {
      auto one = store->job(id);
      if (!one) return pass(std::move(one.error()));
      if (!*one) {
        all += "none\n";
        continue;
      }
      auto asked = store->asked((*one)->asked_blob());
      if (!asked) return pass(std::move(asked.error()));
      auto steps = store->steps(id, 1);
      if (!steps) return pass(std::move(steps.error()));
      auto named = store->job_with_token(1000, fmt::format("token{}", id));
      if (!named) return pass(std::move(named.error()));
      all += (*one)->SerializeAsString() + asked->script() +
             fmt::format("{} {}\n", steps->size(), named->value_or(0));
    }
    auto history = History::open(at);
    if (!history) return pass(std::move(history.error()));
    for (const Filter& filter : {Filter{.earlier_runs = true}, Filter{.uids = {1000}},
                                 Filter{.from = 1}, Filter{.ids = {{.id = kJobs}}}}) {
      auto page = history->jobs(filter);
      if (!page) return pass(std::move(page.error()));
      for (const JobRow& row : page->jobs) all += row.record.SerializeAsString();
    }
    return all;
  }
  static void flip(const std::string& path, std::uintmax_t bit) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    char byte = 0;
    file.seekg(static_cast<std::streamoff>(bit / 8));
    file.get(byte);
    file.seekp(static_cast<std::streamoff>(bit / 8));
    file.put(static_cast<char>(byte ^ (1 << bit % 8)));
  }
  static int rounds(int few) { return std::getenv("BERTH_SOAK") != nullptr ? few * 50 : few; }

  /// Damages a copy `times` times and counts how often that was refused; a difference that nobody
  /// noticed fails the test.
  template <class Harm>
  int refused(int times, const Harm& harm) {
    int count = 0;
    for (int i = 0; i < times; ++i) {
      const std::string at = folder() + "/harmed";
      copy(folder() + "/whole", at);
      const std::string what = harm(at);
      auto read = content(folder() + "/read", at);
      if (!read) {
        ++count;
        EXPECT_FALSE(std::string(read.error().what()).empty());
      } else if (*read != expected_) {
        ADD_FAILURE() << what << ": changed, and nobody noticed";
      }
    }
    return count;
  }
  int flips(const char* file, int times) {
    std::mt19937_64 random(7);
    return refused(times, [&](const std::string& at) {
      const std::uintmax_t bit = random() % (fs::file_size(at + file) * 8);
      flip(at + file, bit);
      return fmt::format("bit {} of {}", bit, file);
    });
  }
  int cuts(const char* file, int times) {
    std::mt19937_64 random(8);
    return refused(times, [&](const std::string& at) {
      const std::uintmax_t size = random() % fs::file_size(at + file);
      fs::resize_file(at + file, size);
      return fmt::format("{} cut to {}", file, size);
    });
  }

  std::string expected_;
};

TEST_F(Damage, AFlippedBitOfTheDatabaseIsNoticed) {
  make_killed();
  const int times = rounds(150);
  // The rest are pages that the log has anew, or that nobody uses.
  EXPECT_GT(flips(kDatabase, times), times / 4);
}

TEST_F(Damage, AFlippedBitOfTheLogIsNoticed) {
  make_killed();
  const int times = rounds(100);
  EXPECT_GT(flips(kLog, times), times * 9 / 10);
}

TEST_F(Damage, AFlippedBitOfTheAcknowledgementIsNoticedOrHarmless) {
  make_killed();
  flips(kAcknowledged, rounds(30));
}

TEST_F(Damage, CutFilesAreNoticed) {
  make_killed();
  EXPECT_EQ(cuts(kLog, rounds(40)), rounds(40));
  EXPECT_GT(cuts(kDatabase, rounds(40)), rounds(40) / 2);
  for (const char* file : {kDatabase, kLog, kAcknowledged}) {
    EXPECT_EQ(refused(1,
                      [&](const std::string& at) {
                        fs::resize_file(at + file, 0);
                        return fmt::format("{} emptied", file);
                      }),
              1)
        << file;
    EXPECT_EQ(refused(1,
                      [&](const std::string& at) {
                        fs::remove(at + file);
                        return fmt::format("{} removed", file);
                      }),
              1)
        << file;
  }
}

TEST_F(Damage, TheLogIsVerifiedWhileItIsInUse) {
  auto store = Store::open(folder());
  ASSERT_TRUE(store);
  add_jobs(*store, 1, 30);
  for (std::uintmax_t at = 2000; at < fs::file_size(folder() + kLog); at += 4120) {
    flip(folder() + kLog, at * 8);
  }
  auto history = History::open(folder());
  const auto page = history ? history->jobs({}) : Result<Page>(pass(history.error()));
  ASSERT_FALSE(page);
  EXPECT_NE(page.error().what().find("is damaged"), std::string::npos);
  EXPECT_NE(page.error().hint.find("berthctld --check"), std::string::npos);
}

TEST_F(Damage, TheBackgroundCheckFindsAPageThatNobodyReads) {
  {
    Store store = open();
    add_jobs(store, 1, kJobs);
  }
  flip(folder() + kDatabase, fs::file_size(folder() + kDatabase) * 8 - 20000);
  Store store = open();
  EXPECT_EQ(store.damage(), "");
  store.copy_log_beside();
  for (int i = 0; i < 500 && store.damage().empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_NE(store.damage().find("page "), std::string::npos);
  EXPECT_EQ(store.verified_at(), 0);
}

TEST_F(Damage, ALossThatIsAcceptedHandsOutNoIdAgain) {
  make_killed();
  const std::string at = folder() + "/whole";
  fs::remove(at + kLog);
  auto refused = Store::open(at);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what().find("were acknowledged"), std::string::npos);
  EXPECT_NE(refused.error().hint.find("--accept-loss"), std::string::npos);
  {
    auto taken = Store::open(at, {.accept_loss = true});
    ASSERT_TRUE(taken) << taken.error().what();
    EXPECT_GT(taken->load(1)->next_job_id, kJobs + 1);
    EXPECT_GT(taken->epoch(), 2U);
  }
  auto again = Store::open(at);
  ASSERT_TRUE(again);
  EXPECT_GT(again->load(1)->next_job_id, kJobs + 1);
}

TEST_F(Damage, AnOlderCopyIsNoticedByAnotherDirectoryAndByWhoeverWasTold) {
  const std::string at = folder() + "/state";
  const std::string beside = folder() + "/run";
  fs::create_directory(beside);
  const auto start = [&] { return Store::open(at, {.beside = beside}); };
  Memory first;
  Memory later;
  {
    auto store = start();
    ASSERT_TRUE(store->raise_epoch());
    EXPECT_TRUE(store->blank());
    add_jobs(*store, 1, 5);
    EXPECT_FALSE(store->blank());
    first = store->memory();
  }
  copy(at, folder() + "/copy");
  {
    auto store = start();
    EXPECT_EQ(store->line_of(first), Store::Line::same);
    ASSERT_TRUE(store->raise_epoch());
    EXPECT_EQ(store->line_of(first), Store::Line::same);
    add_jobs(*store, 6, 9);
    later = store->memory();
    EXPECT_EQ(store->line_of(later), Store::Line::same);
  }
  copy(folder() + "/copy", at);
  auto refused = start();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what().find("older copy"), std::string::npos);
  // Without that directory the nodes know: the store is at the same start, and it is another one.
  auto store = Store::open(at);
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->raise_epoch());
  add_jobs(*store, 6, 20);
  ASSERT_EQ(store->epoch(), later.epoch);
  ASSERT_GT(store->memory().commits, later.commits);
  EXPECT_EQ(store->line_of(later), Store::Line::later);
  EXPECT_EQ(store->line_of(first), Store::Line::same);
  Memory foreign = first;
  ++foreign.store;
  EXPECT_EQ(store->line_of(foreign), Store::Line::foreign);
  // More commits in a start than the store has of it.
  Memory more = first;
  more.commits += 1;
  EXPECT_EQ(store->line_of(more), Store::Line::later);
  store = fail(Code::io, "closed");
  // Given up by an administrator: nodes that know more are taken.
  auto taken = Store::open(at, {.beside = beside, .accept_loss = true});
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->line_of(later), Store::Line::same);
  EXPECT_EQ(taken->line_of(more), Store::Line::same);
}

TEST_F(Damage, TheCheckNamesWhatIsWrongAndChangesNothing) {
  make_killed();
  const std::string at = folder() + "/whole";
  const auto bytes = [&](const char* name) {
    std::ifstream file(at + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string before = bytes(kDatabase) + bytes(kLog) + bytes(kAcknowledged);
  const auto whole = check(at);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->troubles, std::vector<std::string>());
  EXPECT_EQ(whole->epoch, 2U);
  EXPECT_GT(whole->jobs, kJobs / 2);
  EXPECT_EQ(bytes(kDatabase) + bytes(kLog) + bytes(kAcknowledged), before);

  flip(at + kLog, fs::file_size(at + kLog) * 4);
  const auto shorter = check(at);
  ASSERT_TRUE(shorter);
  ASSERT_EQ(shorter->troubles.size(), 1U);
  EXPECT_NE(shorter->troubles[0].find("were acknowledged"), std::string::npos);

  std::uintmax_t page = 0;
  while (fs::file_size(at + kDatabase) > page * 4096)
    flip(at + kDatabase, (page++ * 4096 + 50) * 8);
  const auto damaged = check(at);
  ASSERT_TRUE(damaged);
  EXPECT_GT(damaged->troubles.size(), page / 2);
  {
    Store store = open();
    EXPECT_FALSE(check(folder()));  // in use
  }
}

TEST_F(Damage, AStoreWithoutChecksumsGetsThem) {
  make_killed();
  const std::string at = folder() + "/whole";
  {
    // As a berth before checksums would have left it.
    auto now = open_database(at + kDatabase, SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(now);
    int none = 0;
    ::sqlite3_file_control(now->get(), "main", SQLITE_FCNTL_RESERVE_BYTES, &none);
    ASSERT_TRUE(execute(now->get(), fmt::format("VACUUM INTO '{}/old'", at).c_str()));
  }
  for (const char* name : {kDatabase, kLog, kAcknowledged}) fs::remove(at + name);
  fs::rename(at + "/old", at + kDatabase);
  {
    auto old = open_database(at + kDatabase, SQLITE_OPEN_READWRITE, /*plain=*/true);
    ASSERT_TRUE(old);
    for (const char* sql :
         {"PRAGMA journal_mode = WAL", "DROP TABLE starts",
          "DELETE FROM meta WHERE name IN ('commits', 'store')", "PRAGMA user_version = 1"}) {
      ASSERT_TRUE(execute(old->get(), sql));
    }
  }
  EXPECT_NE(check(at).error().what().find("without checksums"), std::string::npos);
  const auto read = content(folder() + "/read", at);
  ASSERT_TRUE(read) << read.error().what();
  EXPECT_EQ(*read, expected_);
  {
    auto store = Store::open(at);
    ASSERT_TRUE(store);
  }
  EXPECT_EQ(check(at)->troubles, std::vector<std::string>());
  flip(at + kDatabase, fs::file_size(at + kDatabase) * 8 - 20000);
  EXPECT_FALSE(check(at)->troubles.empty());
}

TEST_F(Damage, ABackupIsMadeOfARunningStoreAndHandsOutNothingAgain) {
  const std::string at = folder() + "/state";
  const std::string file = folder() + "/a backup?%20#1";
  std::uint32_t next = 0;
  {
    auto store = Store::open(at);
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->raise_epoch());
    store->copy_log_beside();
    add_jobs(*store, 1, 30);
    put_secret(at, "cluster.key", "secret");
    put_secret(at, "authority", "ours");
    const auto made = make_backup(at, file, {"cluster.key", "authority", "not-there"});
    ASSERT_TRUE(made) << made.error().what();
    EXPECT_EQ(made->jobs, 30U);
    struct stat about{};
    ASSERT_EQ(::stat(file.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600U);
    EXPECT_FALSE(make_backup(at, file, {}));  // never over another
    add_jobs(*store, 31, 40);
    EXPECT_FALSE(restore_backup(at, file, "authority", {}));  // while it runs
    next = store->memory().next_job_id;
  }
  fs::remove(at + "/cluster.key");
  const auto restored = restore_backup(at, file, "authority", {});
  ASSERT_TRUE(restored) << restored.error().what();
  EXPECT_EQ(restored->jobs, 30U);
  EXPECT_EQ(restored->lost.size(), 10U);
  EXPECT_EQ(restored->lost.front(), 31U);
  EXPECT_EQ(restored->held, 20U);
  EXPECT_EQ(restored->files, std::vector<std::string>{"cluster.key"});
  EXPECT_FALSE(fs::exists(restored->replaced + "/authority"));  // the same cluster's
  EXPECT_GT(restored->next_job_id, next);
  EXPECT_TRUE(fs::exists(restored->replaced + kDatabase));
  {
    auto store = Store::open(at);
    ASSERT_TRUE(store) << store.error().what();
    EXPECT_GT(store->epoch(), 1U);
    const auto loaded = store->load(1);
    EXPECT_GE(loaded->next_job_id, restored->next_job_id);
    for (const JobRow& row : loaded->jobs) {
      EXPECT_EQ(row.record.held_by_admin(), row.record.state() == "PENDING");
    }
  }
  EXPECT_EQ(check(at)->troubles, std::vector<std::string>());
  // Where nothing was: another machine.
  const auto elsewhere = restore_backup(folder() + "/new", file, "authority", {});
  ASSERT_TRUE(elsewhere) << elsewhere.error().what();
  EXPECT_FALSE(elsewhere->compared);
  EXPECT_GT(elsewhere->next_job_id, next);
  EXPECT_EQ(elsewhere->files, (std::vector<std::string>{"authority", "cluster.key"}));
  EXPECT_EQ(elsewhere->replaced, "");
  // Where a controller was started on an empty disk: what it made is another cluster's.
  const std::string started = folder() + "/started";
  ASSERT_TRUE(Store::open(started));
  put_secret(started, "cluster.key", "another");
  put_secret(started, "authority", "another");
  const auto after = restore_backup(started, file, "authority", {});
  ASSERT_TRUE(after) << after.error().what();
  EXPECT_EQ(after->files, (std::vector<std::string>{"authority", "cluster.key"}));
  EXPECT_EQ(*read_private_file(started + "/cluster.key"), "secret");
  EXPECT_EQ(*read_private_file(after->replaced + "/cluster.key"), "another");
  EXPECT_EQ(*read_private_file(after->replaced + "/authority"), "another");
  flip(file, fs::file_size(file) * 4);
  EXPECT_FALSE(restore_backup(folder() + "/newer", file, "authority", {}));
}

}  // namespace
}  // namespace berth::store
