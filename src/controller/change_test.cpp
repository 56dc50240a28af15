// What scancel and scontrol may change, on a small state: rights, arrays, keys, partitions.
#include <gtest/gtest.h>

#include "controller/change_cancel.h"
#include "controller/change_conf.h"
#include "controller/change_jobs.h"
#include "controller/change_update.h"
#include "job/state_test_fixture.h"
#include "wire/job_names.h"

namespace berth::controller {
namespace {

using job::testing::kAlice;
using job::testing::kBob;
using job::testing::kRoot;

class ChangeTest : public ::testing::Test {
 protected:
  job::testing::Controller c;
  Users users;
  controller::Setup setup;

  ChangeTest() {
    setup.cluster = c.state.cluster();
    for (const cluster::Partition& partition : setup.cluster.partitions) {
      conf::PartitionLine line;
      line.name = partition.name;
      line.nodes = conf::Located<std::string>{"ALL", {}};
      line.is_default = conf::Located<bool>{partition.is_default, {}};
      setup.config.slurm.partitions.push_back(line);
    }
  }

  static Caller here(const job::Caller& who) {
    return {who.uid, who.gid, who.privileged, Proof::socket};
  }
  static wire::CancelJobs naming(const std::vector<std::string>& names) {
    wire::CancelJobs ask;
    for (const std::string& name : names) *ask.add_jobs() = *wire::parse_job_name(name);
    return ask;
  }
  wire::Results cancel(const wire::CancelJobs& ask, const job::Caller& who = kAlice) {
    return cancel_jobs(c.state, here(who), ask, users, c.now);
  }
  wire::Results act(const std::string& action, const std::string& name,
                    const job::Caller& who = kAlice) {
    wire::ActOnJobs ask;
    ask.set_action(action);
    *ask.add_jobs() = *wire::parse_job_name(name);
    return act_on_jobs(c.state, here(who), ask, c.now);
  }
  /// "" when it was done, else the text.
  std::string update(const std::string& what, std::vector<std::pair<std::string, std::string>> keys,
                     const job::Caller& who = kAlice, const std::string& action = "update") {
    wire::Change ask;
    ask.set_what(what);
    ask.set_action(action);
    for (auto& [name, value] : keys) {
      wire::Variable& key = *ask.add_keys();
      key.set_name(name);
      key.set_value(value);
    }
    ChangeContext context{.setup = setup, .users = users, .fetch = [this](std::uint64_t key) {
                            return std::optional<wire::Asked>(c.blobs.at(key));
                          }};
    const wire::Done done = change(c.state, here(who), ask, context, c.now);
    if (!done.has_refusal()) return "";
    return done.refusal().lines().empty() ? done.refusal().code() : done.refusal().lines(0).text();
  }
  std::string update_job(job::JobId id, const std::string& key, const std::string& value,
                         const job::Caller& who = kAlice) {
    return update("job", {{"JobId", std::to_string(id)}, {key, value}}, who);
  }
};

TEST_F(ChangeTest, CancelReportsEachJobByItsName) {
  const job::JobId mine = c.submit("-H --mem=1G");
  const job::JobId theirs = c.submit("-H --mem=1G", "sbatch", kBob);
  const auto results = cancel(naming({std::to_string(mine), std::to_string(theirs), "999999_4"}));
  EXPECT_EQ(results.done(), 1u);
  ASSERT_EQ(results.jobs_size(), 2);
  EXPECT_EQ(results.jobs(0).name(), std::to_string(theirs));
  EXPECT_EQ(results.jobs(0).code(), "access_denied");
  EXPECT_EQ(results.jobs(0).text(), "Access/permission denied");
  EXPECT_EQ(results.jobs(1).name(), "999999_4");
  EXPECT_EQ(results.jobs(1).text(), "Invalid job id specified");
  EXPECT_EQ(c.state.find(mine)->base, job::Base::cancelled);
  EXPECT_EQ(c.state.find(theirs)->base, job::Base::pending);
}

TEST_F(ChangeTest, CancelOfElementsLeavesTheOthers) {
  const job::JobId id = c.submit("-H --mem=1G --array=1-4");
  EXPECT_EQ(cancel(naming({std::to_string(id) + "_[2-3]"})).jobs_size(), 0);
  EXPECT_EQ(c.state.find(id)->shown(), std::to_string(id) + "_[1,4]");
  EXPECT_EQ(cancel(naming({std::to_string(id)})).jobs_size(), 0);
  EXPECT_TRUE(c.state.all_ended(id));
}

TEST_F(ChangeTest, FiltersMeanOnesOwnJobs) {
  const job::JobId mine = c.submit("-H --mem=1G -J x");
  const job::JobId other_name = c.submit("-H --mem=1G -J y");
  const job::JobId theirs = c.submit("-H --mem=1G -J x", "sbatch", kBob);
  wire::CancelJobs ask;
  ask.add_names("x");
  ask.set_filters_given(true);
  EXPECT_EQ(cancel(ask).done(), 1u);
  EXPECT_EQ(c.state.find(mine)->base, job::Base::cancelled);
  EXPECT_EQ(c.state.find(other_name)->base, job::Base::pending);
  EXPECT_EQ(c.state.find(theirs)->base, job::Base::pending);
  ask.add_users(std::to_string(kBob.uid));  // whose is named: said that it may not be
  const auto denied = cancel(ask);
  ASSERT_EQ(denied.jobs_size(), 1);
  EXPECT_EQ(denied.jobs(0).code(), "access_denied");
  EXPECT_EQ(cancel(ask, kRoot).done(), 1u);
  EXPECT_TRUE(cancel(wire::CancelJobs()).has_refusal());
}

TEST_F(ChangeTest, FilterAndNameMustBothFit) {
  const job::JobId id = c.submit("-H --mem=1G -J x");
  wire::CancelJobs ask = naming({std::to_string(id)});
  ask.add_states("RUNNING");
  ask.set_filters_given(true);
  const auto results = cancel(ask);
  EXPECT_EQ(results.done(), 0u);
  EXPECT_TRUE(results.jobs().empty());
  EXPECT_EQ(c.state.find(id)->base, job::Base::pending);
}

TEST_F(ChangeTest, HoldAndRelease) {
  const job::JobId id = c.submit("--mem=1G");
  EXPECT_TRUE(act("hold", std::to_string(id)).jobs().empty());
  EXPECT_EQ(c.state.find(id)->reason, "JobHeldUser");
  EXPECT_EQ(act("release", std::to_string(id), kBob).jobs(0).text(), "Access/permission denied");
  EXPECT_TRUE(act("release", std::to_string(id)).jobs().empty());
  EXPECT_FALSE(c.state.find(id)->held);
  EXPECT_EQ(act("hold", "4242").jobs(0).text(), "Invalid job id specified");
}

TEST_F(ChangeTest, HoldOfAnArrayPassesOverWhatRuns) {
  const job::JobId id = c.submit("--mem=1G --array=1-3");
  ASSERT_TRUE(c.start(id));
  const auto results = act("hold", std::to_string(id));
  EXPECT_TRUE(results.jobs().empty());
  EXPECT_EQ(results.done(), 1u);
}

TEST_F(ChangeTest, SuspendIsForAdministrators) {
  const job::JobId id = c.started("--mem=1G");
  EXPECT_EQ(act("suspend", std::to_string(id)).jobs(0).text(), "Access/permission denied");
  EXPECT_TRUE(act("suspend", std::to_string(id), kRoot).jobs().empty());
  EXPECT_EQ(c.state.find(id)->base, job::Base::suspended);
}

TEST_F(ChangeTest, RequeueOfAJobThatMayNot) {
  const job::JobId id = c.started("--mem=1G --no-requeue");
  EXPECT_EQ(act("requeue", std::to_string(id)).jobs(0).text(),
            "Requested operation is presently disabled");
}

TEST_F(ChangeTest, TimeLimitMayBeLoweredNotRaised) {
  const job::JobId id = c.submit("-H --mem=1G -t 60");
  EXPECT_EQ(update_job(id, "TimeLimit", "30"), "");
  EXPECT_EQ(c.state.find(id)->time_limit_minutes, 30u);
  EXPECT_EQ(update_job(id, "TimeLimit", "40"), "Access/permission denied");
  EXPECT_EQ(update_job(id, "timelimit", "UNLIMITED"), "Access/permission denied");
  EXPECT_EQ(update_job(id, "TimeLimit", "-10"), "");
  EXPECT_EQ(c.state.find(id)->time_limit_minutes, 20u);
  EXPECT_EQ(update_job(id, "TimeLimit", "+100", kRoot), "");
  EXPECT_EQ(c.state.find(id)->time_limit_minutes, 120u);
  EXPECT_EQ(update_job(id, "TimeLimit", "5", kBob), "Access/permission denied");
}

TEST_F(ChangeTest, KeysThatAreOptions) {
  const job::JobId id = c.submit("-H --mem=1G -n2 -J old");
  EXPECT_EQ(update_job(id, "NumTasks", "4"), "");
  EXPECT_EQ(c.state.find(id)->what->request.ntasks, 4u);
  EXPECT_EQ(update_job(id, "JobName", "new"), "");
  EXPECT_EQ(c.state.find(id)->what->job_name, "new");
  EXPECT_EQ(update_job(id, "MinMemoryNode", "2G"), "");
  EXPECT_EQ(update_job(id, "TresPerNode", "gres/gpu:2"), "");
  ASSERT_EQ(c.state.find(id)->what->request.gres_per_node.size(), 1u);
  EXPECT_EQ(c.state.find(id)->what->request.gres_per_node[0].count, 2u);
  EXPECT_NE(update_job(id, "NumTasks", "nonsense"), "");
  EXPECT_NE(update_job(id, "Gres", "gpu:1000"), "");
  EXPECT_EQ(c.state.find(id)->what->request.gres_per_node[0].count, 2u);
  EXPECT_EQ(update("job", {{"JobName", "new"}, {"Comment", "by name"}}), "");
  EXPECT_EQ(c.state.find(id)->comment, "by name");
}

TEST_F(ChangeTest, KeysThatBerthDoesNotHaveAreRefused) {
  const job::JobId id = c.submit("-H --mem=1G");
  EXPECT_EQ(update_job(id, "BurstBuffer", "x"), "Update of BurstBuffer is not supported by berth");
  EXPECT_EQ(update_job(id, "NoSuchKey", "x"),
            "Update of this parameter is not supported: NoSuchKey=x");
  EXPECT_EQ(update("job", {{"JobId", "31337"}, {"Nice", "1"}}), "Invalid job id specified");
}

TEST_F(ChangeTest, NodesNeedAReasonToLeave) {
  EXPECT_EQ(update("node", {{"NodeName", "gpu1"}, {"State", "DRAIN"}, {"Reason", "x"}}),
            "Access/permission denied");
  EXPECT_EQ(update("node", {{"NodeName", "gpu1"}, {"State", "drain"}}, kRoot),
            "You must specify a reason when DRAINING a node. Request denied");
  EXPECT_EQ(
      update("node", {{"NodeName", "gpu[1-2]"}, {"State", "drain"}, {"Reason", "disk"}}, kRoot),
      "");
  EXPECT_TRUE(c.state.find_node("gpu2")->drain);
  EXPECT_EQ(c.state.find_node("gpu2")->reason, "disk");
  EXPECT_EQ(update("node", {{"NodeName", "gpu1,gpu2"}, {"State", "RESUME"}}, kRoot), "");
  EXPECT_FALSE(c.state.find_node("gpu1")->drain);
  EXPECT_EQ(update("node", {{"NodeName", "gpu1,nowhere"}, {"Weight", "5"}}, kRoot),
            "Invalid node name specified");
  EXPECT_NE(update("node", {{"NodeName", "gpu1"}, {"State", "POWER_DOWN"}}, kRoot), "");
}

TEST_F(ChangeTest, GpusAreTakenOutByHand) {
  const auto out = [&](const char* node) {
    return c.state.cluster().nodes[*c.state.cluster().find_node(node)].gpus_out;
  };
  const auto gpu = [&](const std::string& which, const std::string& state,
                       const std::string& reason = "", const job::Caller& who = kRoot) {
    std::vector<std::pair<std::string, std::string>> keys = {{"gpu", which}, {"State", state}};
    if (!reason.empty()) keys.emplace_back("Reason", reason);
    return update("gpu", keys, who);
  };
  EXPECT_EQ(gpu("gpu1:2", "drain", "hot", kAlice), "Access/permission denied");
  EXPECT_EQ(gpu("gpu1:2", "drain"),
            "You must specify a reason when DRAINING a GPU. Request denied");
  EXPECT_EQ(gpu("gpu1:2", "down", "hot"), "Invalid GPU state specified: down");
  for (const char* which : {"gpu1", "gpu1:", ":1", "gpu1:x", "gpu1:-1", "gpu1:9", "nowhere:0"}) {
    EXPECT_NE(gpu(which, "drain", "hot"), "") << which;
  }
  EXPECT_EQ(update("gpu", {{"gpu", "gpu1:0"}, {"Weight", "1"}}, kRoot),
            "Update of this parameter is not supported: Weight=1");
  EXPECT_EQ(update("gpu", {{"gpu", "gpu1:0"}}, kRoot), "No changes specified");
  EXPECT_TRUE(out("gpu1").empty());
  EXPECT_EQ(gpu("gpu[1-2]:0,2-3", "DRAIN", "hot"), "");
  ASSERT_EQ(out("gpu1").size(), 3U);
  EXPECT_TRUE(out("gpu2").at(3).starts_with("hot [root@")) << out("gpu2").at(3);
  EXPECT_EQ(gpu("gpu1:2", "resume"), "");
  EXPECT_EQ(out("gpu1").size(), 2U);
  EXPECT_EQ(gpu("gpu1:2", "resume"), "Invalid GPU state specified");
}

TEST_F(ChangeTest, PartitionsComeChangeAndGo) {
  const std::vector<std::pair<std::string, std::string>> fresh = {
      {"PartitionName", "fresh"}, {"Nodes", "gpu[1-2]"}, {"MaxTime", "60"}};
  EXPECT_EQ(update("partition", fresh, kAlice, "create"), "Access/permission denied");
  EXPECT_EQ(update("partition", fresh, kRoot, "create"), "");
  const cluster::Partition* made = c.state.cluster().find_partition("fresh");
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->nodes.size(), 2u);
  EXPECT_EQ(made->max_time_minutes, 60u);
  EXPECT_EQ(update("partition", fresh, kRoot, "create"), "Invalid partition name specified");
  EXPECT_EQ(update("partition", {{"PartitionName", "fresh"}, {"Nodes", "+gpu3"}, {"State", "DOWN"}},
                   kRoot),
            "");
  made = c.state.cluster().find_partition("fresh");
  EXPECT_EQ(made->nodes.size(), 3u);
  EXPECT_EQ(made->max_time_minutes, 60u);
  EXPECT_EQ(made->state, cluster::PartitionState::down);
  EXPECT_NE(update("partition", {{"PartitionName", "fresh"}, {"Nodes", "nowhere"}}, kRoot), "");
  EXPECT_EQ(c.state.cluster().find_partition("fresh")->nodes.size(), 3u);
  c.submit("-H --mem=1G -p fresh");
  EXPECT_EQ(update("partition", {{"PartitionName", "fresh"}}, kRoot, "delete"),
            "Partition is in use");
  wire::CancelJobs all;
  all.set_only_mine(true);
  all.set_filters_given(true);
  cancel(all);
  EXPECT_EQ(update("partition", {{"PartitionName", "fresh"}}, kRoot, "delete"), "");
  EXPECT_EQ(c.state.cluster().find_partition("fresh"), nullptr);
}

TEST_F(ChangeTest, RecordsThatFitNoMoreAreLeftOut) {
  wire::PartitionRecord record;
  record.set_name("gone");
  wire::Variable& key = *record.add_keys();
  key.set_name("State");
  key.set_value("DOWN");
  cluster::Cluster cluster = setup.cluster;
  job::Policy policy;
  EXPECT_EQ(apply_partition_records({record}, setup, cluster, policy).size(), 1u);
  EXPECT_EQ(cluster.partitions.size(), setup.cluster.partitions.size());
}

}  // namespace
}  // namespace berth::controller
