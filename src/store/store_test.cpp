#include "store/store.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "store/blob_key.h"
#include "store/history.h"
#include "store/schema.h"
#include "store/test_fixture.h"

namespace berth::store {
namespace {

class Stores : public StoreTest {};

TEST_F(Stores, WhatWasCommittedIsThereAfterReopening) {
  {
    Store store = open();
    Batch batch;
    wire::Asked asked;
    asked.set_script("#!/bin/sh\nhostname\n");
    JobRow row = job(7, "RUNNING");
    row.record.set_asked_blob(store.add_blob(batch, asked.SerializeAsString()));
    batch.jobs.push_back(row);
    batch.next_job_id = 8;
    batch.leases_rest_until = 1790000000;
    wire::StepRecord step;
    step.set_job_id(7);
    step.set_attempt(1);
    step.set_step_id(0xfffffffb);
    step.set_name("batch");
    batch.steps.push_back(step);
    wire::NodeRecord node;
    node.set_name("n0");
    node.add_flags("DRAIN");
    batch.nodes.push_back(node);
    wire::PartitionRecord partition;
    partition.set_name("p");
    batch.partitions.push_back(partition);
    ASSERT_TRUE(store.commit(batch));
    EXPECT_EQ(store.raise_epoch().value(), 1U);
  }
  Store store = open();
  EXPECT_EQ(store.epoch(), 1U);
  auto loaded = store.load(0);
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->jobs.size(), 1U);
  EXPECT_EQ(loaded->jobs[0].record.id(), 7U);
  EXPECT_EQ(loaded->jobs[0].name, "name7");
  EXPECT_EQ(loaded->jobs[0].account, "acct");
  EXPECT_EQ(loaded->next_job_id, 8U);
  EXPECT_EQ(loaded->leases_rest_until, 1790000000);
  EXPECT_EQ(loaded->nodes.at(0).flags(0), "DRAIN");
  EXPECT_EQ(loaded->partitions.at(0).name(), "p");
  EXPECT_EQ(store.asked(loaded->jobs[0].record.asked_blob())->script(), "#!/bin/sh\nhostname\n");
  auto steps = store.steps(7, 1);
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->at(0).name(), "batch");
  EXPECT_EQ(steps->at(0).step_id(), 0xfffffffbU);
}

TEST_F(Stores, LoadsTheLivingAndTheYoungDead) {
  Store store = open();
  Batch batch;
  batch.jobs = {job(1, "PENDING"), job(2, "COMPLETED", 1000), job(3, "COMPLETED", 2000),
                job(4, "FAILED", 500), job(5, "RUNNING")};
  batch.jobs[3].record.add_flags("COMPLETING");
  ASSERT_TRUE(store.commit(batch));
  EXPECT_EQ(ids(store.load(1500)->jobs), (std::vector<std::uint32_t>{1, 3, 4, 5}));
}

TEST_F(Stores, AJobIsFoundByItsIdLongAfterItsEnd) {
  Store store = open();
  Batch batch;
  batch.jobs = {job(1, "COMPLETED", 1000), job(2, "RUNNING")};
  ASSERT_TRUE(store.commit(batch));
  auto found = store.job(1);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->state(), "COMPLETED");
  auto none = store.job(3);
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
}

TEST_F(Stores, ARequeuedJobGoesOnInARowOfItsOwn) {
  Store store = open();
  Batch first;
  first.jobs = {job(1, "RUNNING")};
  ASSERT_TRUE(store.commit(first));
  Batch second;
  JobRow again = job(1, "PENDING");
  again.record.set_restarts(1);
  JobRow ended = job(1, "PREEMPTED", 900);
  second.jobs = {again, ended};  // in either order
  ASSERT_TRUE(store.commit(second));
  auto loaded = store.load(1);
  ASSERT_EQ(loaded->jobs.size(), 1U);
  EXPECT_EQ(loaded->jobs[0].record.state(), "PENDING");

  auto history = History::open(folder());
  ASSERT_TRUE(history);
  EXPECT_EQ(history->jobs({})->jobs.size(), 1U);
  Filter filter;
  filter.earlier_runs = true;
  auto page = history->jobs(filter);
  ASSERT_EQ(page->jobs.size(), 2U);
  EXPECT_EQ(page->jobs[0].record.state(), "PREEMPTED");
}

TEST_F(Stores, ARunThatNobodyEndedIsClosedWhenTheNextBegins) {
  Store store = open();
  Batch first;
  first.jobs = {job(1, "RUNNING")};
  first.jobs[0].record.set_start_time(500);
  ASSERT_TRUE(store.commit(first));
  Batch second;
  second.jobs = {job(1, "PENDING", 700)};
  second.jobs[0].record.set_restarts(1);
  ASSERT_TRUE(store.commit(second));
  auto history = History::open(folder());
  ASSERT_TRUE(history);
  auto page = history->jobs({.states = {"REQUEUED"}, .earlier_runs = true});
  ASSERT_TRUE(page);
  ASSERT_EQ(page->jobs.size(), 1U);
  EXPECT_EQ(page->jobs[0].record.end_time(), 700);
  EXPECT_EQ(page->jobs[0].record.start_time(), 500);
}

TEST_F(Stores, FiltersHistory) {
  Store store = open();
  Batch batch;
  for (std::uint32_t id = 1; id <= 9; ++id) {
    batch.jobs.push_back(job(id, id % 3 == 0 ? "FAILED" : "COMPLETED", 1000 + id));
    batch.jobs.back().record.set_uid(id % 2 == 0 ? 1000 : 1001);
    batch.jobs.back().record.set_submit_time(900 + id);
    batch.jobs.back().record.set_partition(id < 5 ? "gpu" : "cpu");
  }
  batch.jobs[7].record.set_array_job_id(20);
  batch.jobs[7].record.set_array_task_id(3);
  batch.jobs[8].record.set_array_job_id(20);
  batch.jobs[8].record.set_array_task_id(4);
  ASSERT_TRUE(store.commit(batch));
  auto history = History::open(folder());
  ASSERT_TRUE(history);
  using Ids = std::vector<std::uint32_t>;
  const auto found = [&](const Filter& filter) { return ids(history->jobs(filter)->jobs); };
  EXPECT_EQ(found({.ids = {{.id = 2}, {.id = 20}}}), (Ids{2, 8, 9}));
  EXPECT_EQ(found({.ids = {{.id = 20, .array_task = 4}}}), (Ids{9}));
  EXPECT_EQ(found({.uids = {1000}, .states = {"FAILED"}}), (Ids{6}));
  EXPECT_EQ(found({.partitions = {"gpu"}, .names = {"name1", "name7"}}), (Ids{1}));
  EXPECT_EQ(found({.from = 1004, .until = 906}), (Ids{4, 5, 6}));
  EXPECT_EQ(found({.names = {"x' OR 1=1 --"}}), (Ids{}));

  Filter paged{.uids = {1001}, .most = 2};
  Ids all;
  int pages = 0;
  do {
    auto page = history->jobs(paged);
    ASSERT_TRUE(page);
    for (const std::uint32_t id : ids(page->jobs)) all.push_back(id);
    paged.after = page->next;
  } while (paged.after != 0 && ++pages < 10);
  EXPECT_EQ(all, (Ids{1, 3, 5, 7, 9}));
}

TEST_F(Stores, EqualBlobsAreSharedAndOthersNeverMixedUp) {
  Store store = open();
  Batch batch;
  const std::uint64_t first = store.add_blob(batch, "same");
  EXPECT_EQ(store.add_blob(batch, "same"), first);
  EXPECT_EQ(batch.blobs.size(), 1U);
  EXPECT_NE(store.add_blob(batch, "other"), first);
  // Other bytes that sit where "wanted" would go.
  batch.blobs.push_back({blob_key("wanted"), "squatter"});
  const std::uint64_t moved = store.add_blob(batch, "wanted");
  EXPECT_NE(moved, blob_key("wanted"));
  ASSERT_TRUE(store.commit(batch));
  EXPECT_EQ(store.blob(moved)->value(), "wanted");
  EXPECT_EQ(store.blob(blob_key("wanted"))->value(), "squatter");
  Batch later;
  EXPECT_EQ(store.add_blob(later, "wanted"), moved);
  // A key that was not asked for: nothing of the batch is stored.
  Batch wrong;
  wrong.jobs.push_back(job(1, "PENDING"));
  wrong.blobs.push_back({first, "not the same"});
  EXPECT_FALSE(store.commit(wrong));
  EXPECT_TRUE(store.load(1)->jobs.empty());
}

TEST_F(Stores, PurgesOldJobsAndThenTheirBlobs) {
  Store store = open();
  Batch batch;
  batch.jobs = {job(1, "COMPLETED", 100), job(2, "COMPLETED", 200), job(3, "RUNNING")};
  batch.jobs[0].record.set_asked_blob(store.add_blob(batch, "one"));
  batch.jobs[2].record.set_asked_blob(store.add_blob(batch, "three"));
  ASSERT_TRUE(store.commit(batch));
  EXPECT_EQ(store.purge_blobs(10).value(), 0U);
  EXPECT_EQ(store.purge_jobs(150, 10).value(), 1U);
  EXPECT_EQ(store.purge_blobs(10).value(), 1U);
  EXPECT_FALSE(store.blob(blob_key("one"))->has_value());
  EXPECT_TRUE(store.blob(blob_key("three"))->has_value());
}

TEST_F(Stores, ATokenNamesTheJobOfItsUser) {
  Store store = open();
  Batch batch;
  batch.jobs = {job(5, "PENDING"), job(4, "PENDING"), job(6, "PENDING")};
  batch.jobs[0].record.set_token("t1");
  batch.jobs[1].record.set_token("t1");  // two components of one submission
  ASSERT_TRUE(store.commit(batch));
  EXPECT_EQ(store.job_with_token(1000, "t1").value(), 4U);
  EXPECT_EQ(store.job_with_token(1001, "t1").value(), std::nullopt);
  EXPECT_EQ(store.job_with_token(1000, "").value(), std::nullopt);
}

TEST_F(Stores, ANewerFileIsRefusedInWordsAndASecondControllerToo) {
  {
    Store store = open();
    auto second = Store::open(folder());
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().what().find("another controller"), std::string::npos);
  }
  {
    auto database = open_database(database_path(folder()), SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(database);
    ASSERT_TRUE(execute(database->get(), "PRAGMA user_version = 99"));
  }
  auto newer = Store::open(folder());
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.error().what().find("version 99"), std::string::npos);
  EXPECT_FALSE(History::open(folder()));
}

TEST_F(Stores, HistoryIsReadWhileCommitsGoOn) {
  Store store = open();
  std::atomic<bool> stop = false;
  std::atomic<int> bad = 0;
  std::thread reader([&] {
    auto history = History::open(folder());
    while (!stop) {
      auto page = history->jobs({.most = 100000});
      // Each commit adds two: never one of them alone.
      if (!page || page->jobs.size() % 2 != 0) ++bad;
    }
  });
  for (std::uint32_t id = 1; id <= 200; id += 2) {
    Batch batch;
    batch.synced = id % 4 == 1;
    batch.jobs = {job(id, "PENDING"), job(id + 1, "PENDING")};
    ASSERT_TRUE(store.commit(batch));
  }
  stop = true;
  reader.join();
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(store.load(1)->jobs.size(), 200U);
}

TEST_F(Stores, TheLogIsCopiedIntoTheDatabaseBesideTheCommits) {
  constexpr std::size_t kSize = 5'000'000;
  Store store = open();
  store.copy_log_beside();
  Batch batch;
  batch.jobs = {job(1, "PENDING")};
  batch.jobs[0].record.set_asked_blob(store.add_blob(batch, std::string(kSize, 'b')));
  ASSERT_TRUE(store.commit(batch));
  bool copied = false;
  for (int i = 0; i < 1000 && !copied; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    copied = std::filesystem::file_size(folder() + "/berth.db") > kSize;
  }
  EXPECT_TRUE(copied);
}

TEST_F(Stores, TheLogStaysShortWhileCommitsGoOn) {
  constexpr std::uint32_t kCommits = 600;
  constexpr std::uintmax_t kMost = 20'000'000;  // of 60
  Store store = open();
  store.copy_log_beside();
  std::uintmax_t longest = 0;
  for (std::uint32_t id = 1; id <= kCommits; ++id) {
    Batch batch;
    batch.synced = false;
    batch.jobs = {job(id, "PENDING")};
    batch.jobs[0].record.set_asked_blob(
        store.add_blob(batch, std::to_string(id) + std::string(100'000, 'b')));
    ASSERT_TRUE(store.commit(batch));
    longest = std::max(longest, std::filesystem::file_size(folder() + "/berth.db-wal"));
  }
  EXPECT_LT(longest, kMost);
  EXPECT_EQ(store.load(1)->jobs.size(), kCommits);
}

// A controller that is killed at any moment: every commit it was told of is there.
TEST_F(Stores, NothingAcknowledgedIsLostWhenTheProcessIsKilled) {
  std::uint32_t acknowledged = 0;
  for (int round = 0; round < 5; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = Store::open(folder());
      if (!store) ::_exit(1);
      for (std::uint32_t id = acknowledged + 1;; ++id) {
        Batch batch;
        batch.jobs = {job(id, "PENDING")};
        batch.jobs[0].record.set_asked_blob(
            store->add_blob(batch, std::string(20000, static_cast<char>('a' + id % 26))));
        batch.next_job_id = id + 1;
        if (!store->commit(batch) || ::write(ends[1], &id, sizeof id) != sizeof id) ::_exit(1);
      }
    }
    ::close(ends[1]);
    // Kill after some acknowledgements; what is still in the pipe was acknowledged, too.
    std::uint32_t id = 0;
    const std::uint32_t enough = acknowledged + 20 + static_cast<std::uint32_t>(round) * 7;
    while (id < enough && ::read(ends[0], &id, sizeof id) == sizeof id) {
    }
    ::kill(child, SIGKILL);
    while (::read(ends[0], &id, sizeof id) == sizeof id) {
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    acknowledged = id;

    Store store = open();
    auto loaded = store.load(1);
    ASSERT_TRUE(loaded);
    ASSERT_GE(loaded->jobs.size(), acknowledged);
    ASSERT_LE(loaded->jobs.size(), acknowledged + 1);
    for (const JobRow& row : loaded->jobs) {
      ASSERT_TRUE(store.blob(row.record.asked_blob())->has_value());
    }
    acknowledged = loaded->next_job_id - 1;
  }
}

TEST_F(Stores, TheClockIsKept) {
  const ClockMark mark{
      .boot = 0x7fffffffffffffff, .ahead_nanoseconds = 1'800'000'000'123'456'789, .adopted = -3600};
  {
    Store store = open();
    EXPECT_EQ(store.clock(), ClockMark());
    Batch batch;
    batch.clock = mark;
    ASSERT_FALSE(batch.empty());
    ASSERT_TRUE(store.commit(batch));
    EXPECT_EQ(store.clock(), mark);
  }
  EXPECT_EQ(open().clock(), mark);
}

}  // namespace
}  // namespace berth::store
