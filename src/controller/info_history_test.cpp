// sacct's answers from a real store.
#include "controller/info_history.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "place/corpus_cluster_test_fixture.h"
#include "store/store.h"
#include "wire/refusal.h"
#include "wire/step_ids.h"

namespace berth::controller {
namespace {

class History : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/berth-history-XXXXXX";
    directory_ = mkdtemp(path);
    Result<store::Store> store = store::Store::open(directory_);
    ASSERT_TRUE(store);
    store::Batch batch;
    wire::Asked asked;
    asked.set_command("sbatch");
    for (const char* word : {"-n2", "--mem=1G", "-J", "train", "job.sh"}) asked.add_words(word);
    asked.set_script("#!/bin/sh\ntrue\n");
    asked.set_directory("/home/alice");
    asked.set_submit_line("sbatch -n2 job.sh");
    wire::Variable& variable = *asked.add_environment();
    variable.set_name("KEY");
    variable.set_value("1");
    const std::uint64_t blob = store->add_blob(batch, asked.SerializeAsString());
    const auto record = [&](std::uint32_t id, const char* state) {
      wire::JobRecord out;
      out.set_id(id);
      out.set_asked_blob(blob);
      out.set_uid(1001);
      out.set_gid(1001);
      out.set_state(state);
      out.set_reason("None");
      out.set_submit_time(1000);
      out.set_partition("debug");
      return out;
    };
    wire::JobRecord done = record(7, "COMPLETED");
    done.set_attempt(1);
    done.set_start_time(1010);
    done.set_end_time(1100);
    wire::NodeShare& share = *done.mutable_allocation()->add_nodes();
    share.set_node("gpu1");
    share.set_cores("0-1");
    share.set_cpus(2);
    share.set_memory_mb(1024);
    batch.jobs.push_back({done, "train", "physics"});
    wire::JobRecord rest = record(8, "PENDING");
    rest.set_array_job_id(8);
    rest.set_array_rest("3-5");
    batch.jobs.push_back({rest, "train", "physics"});
    wire::JobRecord other = record(9, "FAILED");
    other.set_uid(1002);
    other.set_end_time(1050);
    batch.jobs.push_back({other, "other", ""});
    for (const std::uint32_t id : {0U, wire::kBatchStep}) {
      wire::StepRecord step;
      step.set_job_id(7);
      step.set_attempt(1);
      step.set_step_id(id);
      step.set_name(id == 0 ? "app" : "batch");
      step.set_state("COMPLETED");
      step.mutable_use()->set_max_rss_kb(2048);
      if (id == 0) step.set_submit_line("srun ./app --key=1");
      batch.steps.push_back(step);
    }
    ASSERT_TRUE(store->commit(batch));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  wire::HistoryReply ask(const wire::ListHistory& what, const Caller& caller) {
    Result<store::History> history = store::History::open(directory_);
    EXPECT_TRUE(history);
    auto site = std::make_shared<HistorySite>();
    site->cluster = place::corpus::make();
    site->cluster_name = "oracle";
    site->disclosure = disclosure_;
    wire::HistoryReply all;
    HistoryAnswer answer(*history, site, users_,
                         [](std::uint32_t) { return std::vector<wire::StepInfo>(); });
    if (auto begun = answer.begin(what, caller, 2000); !begun) {
      *all.mutable_refusal() = wire::to_refusal(begun.error());
      return all;
    }
    for (bool more = true; more;) {
      const wire::HistoryReply page = answer.next();
      more = page.more();
      all.MergeFrom(page);
    }
    return all;
  }
  static std::vector<std::uint32_t> ids(const wire::HistoryReply& reply) {
    std::vector<std::uint32_t> out;
    for (const wire::HistoryJob& job : reply.jobs()) out.push_back(job.job().id());
    return out;
  }

  std::string directory_;
  Users users_;
  Disclosure disclosure_ = {};
  const Caller alice_{1001, 1001, false};
};

using Ids = std::vector<std::uint32_t>;

TEST_F(History, ShowsAJobWithItsStepsInOrder) {
  wire::ListHistory what;
  what.add_ids()->set_id(7);
  what.set_all_users(true);
  what.set_with_steps(true);
  what.set_with_script(true);
  const wire::HistoryReply reply = ask(what, alice_);
  ASSERT_EQ(ids(reply), Ids{7});
  const wire::HistoryJob& job = reply.jobs(0);
  EXPECT_EQ(job.job().name(), "train");
  EXPECT_EQ(job.job().account(), "physics");
  EXPECT_EQ(job.job().nodes(), "gpu1");
  EXPECT_EQ(job.job().alloc_tres(), "cpu=2,mem=1G,node=1,billing=2");
  EXPECT_EQ(job.job().req_tres(), "cpu=2,mem=1G,node=1,billing=2");
  EXPECT_EQ(job.job().work_dir(), "/home/alice");
  EXPECT_EQ(job.script(), "#!/bin/sh\ntrue\n");
  ASSERT_EQ(job.steps_size(), 2);
  EXPECT_EQ(job.steps(0).step().name(), "batch");
  EXPECT_EQ(job.steps(1).step().name(), "app");
  EXPECT_EQ(job.steps(1).max_rss_kb(), 2048U);
}

TEST_F(History, WhatWasTypedAndScriptsAreTheirOwners) {
  wire::ListHistory what;
  what.add_ids()->set_id(7);
  what.set_all_users(true);
  what.set_with_steps(true);
  what.set_with_script(true);
  what.set_with_environment(true);
  const auto shown = [&](const Caller& caller) {
    const wire::HistoryReply reply = ask(what, caller);
    const wire::HistoryJob& job = reply.jobs(0);
    EXPECT_EQ(job.job().name(), "train");
    std::string out;
    if (!job.job().command().empty()) out += " command";
    if (!job.job().submit_line().empty()) out += " line";
    for (const wire::HistoryStep& step : job.steps()) {
      if (!step.step().submit_line().empty()) out += " step";
    }
    if (!job.script().empty()) out += " script";
    if (!job.environment().empty()) out += " environment";
    return out;
  };
  const std::string all = " command line step script environment";
  EXPECT_EQ(shown(alice_), all);
  EXPECT_EQ(shown({0, 0, true}), all);
  const Caller bob{1002, 1002, false};
  EXPECT_EQ(shown(bob), "");
  disclosure_.command_lines = true;
  EXPECT_EQ(shown(bob), " command line step") << "a script is shown to nobody else";
}

TEST_F(History, ShowsOnesOwnJobsUnlessAllAreAskedFor) {
  wire::ListHistory what;
  EXPECT_EQ(ids(ask(what, alice_)), (Ids{7, 8}));
  what.set_all_users(true);
  EXPECT_EQ(ids(ask(what, alice_)), (Ids{7, 8, 9}));
  disclosure_.jobs = false;
  EXPECT_EQ(ids(ask(what, alice_)), (Ids{7, 8}));
  EXPECT_EQ(ids(ask(what, {0, 0, true})), (Ids{7, 8, 9}));
  what.add_users("nobody-of-that-name");
  EXPECT_TRUE(ask(what, alice_).has_refusal());
}

TEST_F(History, FindsElementsInThePendingRest) {
  wire::ListHistory what;
  what.add_ids()->set_id(8);
  what.mutable_ids(0)->set_array_task(4);
  what.set_all_users(true);
  const wire::HistoryReply found = ask(what, alice_);
  ASSERT_EQ(ids(found), Ids{8});
  EXPECT_EQ(found.jobs(0).job().array_task_id(), 4U);
  EXPECT_EQ(found.jobs(0).job().array_tasks(), "");
  what.mutable_ids(0)->set_array_task(6);
  EXPECT_EQ(ids(ask(what, alice_)), Ids{});
}

}  // namespace
}  // namespace berth::controller
