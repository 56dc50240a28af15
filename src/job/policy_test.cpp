// RequeueExit, RequeueExitHold, SPECIAL_EXIT, CompleteWait, MaxStepCount, rules of partitions, and
// ends that are heard of late.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <gtest/gtest.h>
#include <csignal>
#include <functional>

#include "job/state_test_fixture.h"

namespace berth::job {
namespace {

using testing::Controller;
using testing::kAlice;
using testing::kBob;
using testing::kRoot;
using testing::submission;

Policy with_exits() {
  Policy policy;
  policy.requeue_exit = {3, 99};
  policy.requeue_exit_hold = {100};
  return policy;
}

TEST(RequeueExit, ExitCodesOfTheListStartTheJobAgain) {
  Controller c(with_exits());
  const JobId again = c.started("--mem=1G");
  const JobId held = c.started("--mem=1G");
  const JobId over = c.started("--mem=1G");
  const JobId never = c.started("--mem=1G --no-requeue");
  c.runs_to_the_end(again, 99 << 8);
  c.runs_to_the_end(held, 100 << 8);
  c.runs_to_the_end(over, 4 << 8);
  c.runs_to_the_end(never, 99 << 8);
  EXPECT_EQ(c.shown(again), "PENDING BeginTime");
  EXPECT_EQ(c.at(again).restarts, 1U);
  EXPECT_EQ(c.shown(held), "PENDING+SPECIAL_EXIT job_requeued_in_held_state");
  EXPECT_EQ(c.at(held).priority, 0U);
  EXPECT_EQ(c.shown(over), "FAILED NonZeroExitCode");
  EXPECT_EQ(c.shown(never), "FAILED NonZeroExitCode");
  ASSERT_TRUE(c.state.release(held, kAlice, c.now));
  EXPECT_EQ(c.shown(held), "PENDING None");
}

TEST(RequeueExit, TooOftenIsHeld) {
  Policy policy = with_exits();
  policy.max_batch_requeue = 1;
  policy.requeue_delay = 0;
  Controller c(policy);
  const JobId id = c.started("--mem=1G");
  c.runs_to_the_end(id, 3 << 8);
  ASSERT_TRUE(c.start(id));
  c.begun(id);
  c.runs_to_the_end(id, 3 << 8);
  EXPECT_EQ(c.shown(id), "PENDING JobHoldMaxRequeue");
}

TEST(RequeueExit, AskedForByHand) {
  Controller c;
  const JobId id = c.started("--mem=1G");
  ASSERT_TRUE(c.state.requeue(id, kAlice, true, c.now, true));
  c.gone(id);
  EXPECT_EQ(c.shown(id), "PENDING+SPECIAL_EXIT job_requeued_in_held_state");
}

TEST(MaxJobCount, TheLastTenthIsForUsersWithFewJobs) {
  Policy policy;
  policy.max_job_count = 200;
  Controller c(policy);
  const auto submit = [&](const Caller& who) {
    return c.state.submit(submission("--mem=1G --hold"), 0, who, c.now);
  };
  for (int i = 0; i < 180; ++i) ASSERT_TRUE(submit(kAlice)) << i;
  const auto refused = submit(kAlice);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().hint,
            "180 jobs are in memory, and the last tenth of MaxJobCount=200 is for users with at "
            "most 2; 180 are yours");
  EXPECT_TRUE(submit(kBob));
  EXPECT_TRUE(submit(kBob));
  EXPECT_FALSE(submit(kBob));
  for (int i = 182; i < 200; ++i) ASSERT_TRUE(submit(kRoot)) << i;
  const auto full = submit(kRoot);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().hint, "MaxJobCount=200 jobs are in memory");
}

TEST(Steps, NoMoreThanMaxStepCount) {
  Policy policy;
  policy.max_step_count = 1;
  Controller c(policy);
  const JobId id = c.started("--mem=1G -n4");
  wire::CreateStep ask;
  ask.set_job_id(id);
  *ask.mutable_asked() = submission("-n1", "srun").asked();
  c.state.take_effects();
  c.state.create_step(ask, 1, kAlice, c.now);
  c.state.create_step(ask, 2, kAlice, c.now);
  const auto refused = c.effects<RefuseStep>();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].key, 2U);
  EXPECT_THAT(std::string(refused[0].error.what()), ::testing::HasSubstr("Step limit reached"));
}

TEST(Steps, AnSrunThatLeavesBeforeTheNodesTellHasCancelledNothing) {
  struct Row {
    const char* cause;
    int status;
    const char* state;
  };
  for (const Row& row : {Row{"", 0, "COMPLETED"}, Row{"", 3 << 8, "FAILED"},
                         Row{"", SIGTERM, "CANCELLED"}, Row{"SIGNAL", 0, "CANCELLED"}}) {
    Controller c;
    const JobId id = c.started("--mem=1G -n4");
    wire::CreateStep ask;
    ask.set_job_id(id);
    *ask.mutable_asked() = submission("-n1", "srun").asked();
    c.state.create_step(ask, 1, kAlice, c.now);
    ASSERT_TRUE(c.state.end_step(id, 0, kAlice, row.cause, c.now));
    c.state.take_dirty();
    c.step_ends(id, 0, row.status);
    const Dirty dirty = c.state.take_dirty();
    ASSERT_EQ(dirty.steps.size(), 1U);
    EXPECT_EQ(dirty.steps[0].state(), row.state) << row.cause << row.status;
  }
}

TEST(Steps, AnEndThatIsHeardOfAfterTheJobIsStored) {
  Controller c;
  const JobId id = c.started("--mem=1G -n4");
  wire::CreateStep ask;
  ask.set_job_id(id);
  *ask.mutable_asked() = submission("-n1", "srun").asked();
  c.state.create_step(ask, 1, kAlice, c.now);
  c.script_ends(id);
  c.state.take_dirty();
  c.gone(id);
  Dirty first = c.state.take_dirty();
  ASSERT_EQ(first.steps.size(), 1U);
  EXPECT_EQ(first.steps[0].state(), "CANCELLED");
  wire::StepEnded message;
  message.set_node(c.at(id).nodes.front());
  message.set_job_id(id);
  message.set_attempt(c.at(id).attempt);
  message.set_step_id(0);
  message.add_statuses(3 << 8);
  c.state.step_ended(message, c.now);
  Dirty second = c.state.take_dirty();
  ASSERT_EQ(second.steps.size(), 1U);
  EXPECT_EQ(second.steps[0].state(), "FAILED");
  EXPECT_EQ(second.steps[0].exit_status(), 3 << 8);
  EXPECT_EQ(c.at(id).derived_exit_status, 3 << 8);
  c.state.step_ended(message, c.now);
  EXPECT_TRUE(c.state.take_dirty().steps.empty()) << "said twice";
}

TEST(Partitions, WhoMayNotUseThemIsTold) {
  Policy policy;
  const std::string name = place::corpus::make().default_partition()->name;
  PartitionPolicy& rules = policy.partitions[name];
  Controller* at = nullptr;
  const auto refusal = [&](const Caller& who, const std::string& line) -> std::string {
    const auto made = at->state.submit(submission(line), 1, who, at->now);
    return made ? "" : std::string(made.error().what());
  };
  rules.members = PartitionPolicy::Members{{kAlice.gid}, {}};
  Controller groups(policy);
  at = &groups;
  EXPECT_EQ(refusal(kAlice, "--mem=1G"), "");
  EXPECT_THAT(refusal(kBob, "--mem=1G"),
              ::testing::EndsWith("User's group not permitted to use this partition"));
  EXPECT_EQ(refusal(kRoot, "--mem=1G"), "");
  rules = {};
  rules.allow_qos = {"high"};
  Controller qos(policy);
  at = &qos;
  EXPECT_EQ(refusal(kAlice, "--mem=1G --qos=high"), "");
  EXPECT_THAT(refusal(kAlice, "--mem=1G"), ::testing::EndsWith("Invalid qos specification"));
  rules = {};
  rules.require_reservation = true;
  Controller reserved(policy);
  at = &reserved;
  EXPECT_THAT(refusal(kAlice, "--mem=1G"), ::testing::EndsWith("Access/permission denied"));
  rules = {};
  rules.alloc_nodes = {"elsewhere"};
  Controller hosts(policy);
  at = &hosts;
  EXPECT_THAT(refusal(kAlice, "--mem=1G"), ::testing::EndsWith("Access/permission denied"));
}

/// A key of a partition (or a reservation) and the words that it keeps alice from having there.
struct AccessRow {
  const char* key;
  std::function<void(Policy&, PartitionPolicy&)> set;
  const char* words;    // of a submission
  const char* update;   // the same, to a job that waits in another partition
  const char* refused;  // end of the message
  bool root_may = true;
};

const std::vector<AccessRow>& access_rows() {
  static const std::vector<AccessRow> kRows = {
      {"RootOnly", [](Policy&, PartitionPolicy& p) { p.root_only = true; }, "", "",
       "Access/permission denied"},
      {"AllowGroups",
       [](Policy&, PartitionPolicy& p) { p.members = PartitionPolicy::Members{{77}, {}}; }, "", "",
       "User's group not permitted to use this partition"},
      {"AllowAccounts", [](Policy&, PartitionPolicy& p) { p.allow_accounts = {"physics"}; }, "", "",
       "Invalid account or account/partition combination specified", false},
      {"DenyAccounts", [](Policy&, PartitionPolicy& p) { p.deny_accounts = {"biology"}; },
       "--account=biology", "--account=biology",
       "Invalid account or account/partition combination specified", false},
      {"AllowQos", [](Policy&, PartitionPolicy& p) { p.allow_qos = {"high"}; }, "", "",
       "Invalid qos specification", false},
      {"DenyQos", [](Policy&, PartitionPolicy& p) { p.deny_qos = {"low"}; }, "--qos=low",
       "--qos=low", "Invalid qos specification", false},
      {"ReqResv", [](Policy&, PartitionPolicy& p) { p.require_reservation = true; }, "", "",
       "Access/permission denied", false},
      {"AllocNodes", [](Policy&, PartitionPolicy& p) { p.alloc_nodes = {"elsewhere"}; }, "", "",
       "Access/permission denied", false},
  };
  return kRows;
}

std::string name_of_second_partition() {
  const cluster::Cluster cluster = place::corpus::make();
  for (const cluster::Partition& one : cluster.partitions) {
    if (&one != cluster.default_partition() && one.nodes.size() > 0) return one.name;
  }
  return "";
}

std::string updated(Controller& c, JobId id, const std::string& line, const Caller& who) {
  const auto done = c.state.update_words(id, testing::words_of(line),
                                         c.blobs.at(c.at(id).asked_blob), who, c.now);
  return done ? "" : std::string(done.error().what());
}

TEST(Access, EachKeyOfAPartitionBarsSubmissionsAndChangesAlike) {
  const std::string closed = name_of_second_partition();
  ASSERT_NE(closed, "");
  for (const AccessRow& row : access_rows()) {
    Policy policy;
    row.set(policy, policy.partitions[closed]);
    Controller c(policy);
    const std::string words = fmt::format("--mem=1G -p {} {}", closed, row.words);
    const auto made = c.state.submit(submission(words), 1, kAlice, c.now);
    ASSERT_FALSE(made) << row.key;
    EXPECT_THAT(std::string(made.error().what()), ::testing::EndsWith(row.refused)) << row.key;
    const JobId id = c.submit("--mem=1G");
    const std::string before = c.at(id).partition;
    const std::string update = fmt::format("--partition={} {}", closed, row.update);
    EXPECT_EQ(updated(c, id, update, kAlice), row.refused) << row.key;
    // Nor as one of several, nor an element of an array.
    EXPECT_EQ(
        updated(c, id, fmt::format("--partition={},{} {}", before, closed, row.update), kAlice),
        row.refused)
        << row.key;
    EXPECT_EQ(c.at(id).partition, before) << row.key;
    const JobId array = c.submit("--mem=1G --array=1-4");
    const auto element = c.state.pick(Controller::named(array, 2), c.now);
    ASSERT_TRUE(element) << row.key;
    EXPECT_EQ(updated(c, element->front(), update, kAlice), row.refused) << row.key;
    // What has nothing to do with it can be changed, also where an administrator put the job.
    EXPECT_EQ(updated(c, id, "--job-name=other", kAlice), "") << row.key;
    if (!row.root_may) continue;
    EXPECT_EQ(updated(c, id, update, kRoot), "") << row.key;
    EXPECT_EQ(c.at(id).partition, closed) << row.key;
    EXPECT_EQ(updated(c, id, "--job-name=another", kAlice), "") << row.key;
  }
}

TEST(Access, AccountQosAndReservationOfAJobAreAskedAboutToo) {
  const std::string closed = name_of_second_partition();
  Policy policy;
  PartitionPolicy& rules = policy.partitions[closed];
  rules.allow_accounts = {"physics"};
  rules.deny_qos = {"low"};
  policy.licenses["matlab"] = 2;
  Controller c(policy);
  reservation::Reservation kept;
  kept.name = "course";
  kept.users.names = {"bob"};
  kept.uids = {kBob.uid};
  c.state.keep_reservation(kept, c.now);
  const JobId id = c.submit(fmt::format("--mem=1G -p {} --account=physics", closed));
  EXPECT_EQ(updated(c, id, "--account=biology", kAlice),
            "Invalid account or account/partition combination specified");
  EXPECT_EQ(updated(c, id, "--qos=low", kAlice), "Invalid qos specification");
  EXPECT_EQ(updated(c, id, "--reservation=course", kAlice),
            "Access denied to requested reservation");
  EXPECT_EQ(updated(c, id, "--licenses=matlab:3", kAlice), "Invalid license specification");
  EXPECT_EQ(updated(c, id, "--licenses=matlab:2", kAlice), "");
}

TEST(Access, ChangesOfTheSameThingDoNotPileUp) {
  Controller c;
  const JobId id = c.submit("--mem=1G");
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(updated(c, id, fmt::format("--job-name=n{} --comment=c{}", i, i), kAlice), "");
  }
  EXPECT_THAT(c.at(id).overrides, ::testing::ElementsAre("--job-name=n49", "--comment=c49"));
  EXPECT_EQ(c.at(id).what->job_name, "n49");
}

TEST(Access, DisableRootJobsIsAboutWhoseJobItIs) {
  const std::string closed = name_of_second_partition();
  Policy policy;
  policy.partitions[closed].disable_root = true;
  Controller c(policy);
  const JobId roots = c.submit("--mem=1G", "sbatch", kRoot);
  const JobId alices = c.submit("--mem=1G");
  EXPECT_EQ(updated(c, roots, "--partition=" + closed, kRoot), "Access/permission denied");
  EXPECT_EQ(updated(c, alices, "--partition=" + closed, kRoot), "");
}

TEST(Access, ALimitThatWasRaisedElsewhereDoesNotComeAlong) {
  cluster::Cluster cluster = place::corpus::make();
  const std::string brief = name_of_second_partition();
  for (cluster::Partition& one : cluster.partitions) {
    one.max_time_minutes.reset();
    one.default_time_minutes.reset();
    if (one.name == brief) one.max_time_minutes = 10;
  }
  Controller c({}, std::move(cluster));
  JobChange longer;
  longer.time_limit_minutes = std::optional<std::uint32_t>(600);
  const JobId id = c.submit("--mem=1G");
  ASSERT_TRUE(c.state.change(id, longer, kAlice, c.now));
  EXPECT_EQ(updated(c, id, "--partition=" + brief, kAlice), slurm_text(Code::invalid_time_limit));
  // Nor is it raised where the job is, when nothing was said at its submission.
  const JobId there = c.submit("--mem=1G -p " + brief);
  EXPECT_FALSE(c.state.change(there, longer, kAlice, c.now));
  EXPECT_TRUE(c.state.change(there, longer, kRoot, c.now));
}

TEST(Hold, AnAdministratorsIsNotUndoneByTheOwner) {
  JobChange zero;
  zero.priority = 0;
  JobChange one;
  one.priority = 1;
  using Act = std::function<void(Controller&, JobId)>;
  const std::vector<std::pair<const char*, Act>> holds = {
      {"hold", [](Controller& c, JobId id) { ASSERT_TRUE(c.state.hold(id, kRoot, false, c.now)); }},
      {"priority=0",
       [&](Controller& c, JobId id) { ASSERT_TRUE(c.state.change(id, zero, kRoot, c.now)); }},
  };
  const std::vector<std::pair<const char*, Act>> tries = {
      {"release", [](Controller&, JobId) {}},
      {"hold", [](Controller& c, JobId id) { (void)c.state.hold(id, kAlice, false, c.now); }},
      {"uhold", [](Controller& c, JobId id) { (void)c.state.hold(id, kAlice, true, c.now); }},
      {"priority=0",
       [&](Controller& c, JobId id) { (void)c.state.change(id, zero, kAlice, c.now); }},
      {"priority=1",
       [&](Controller& c, JobId id) { (void)c.state.change(id, one, kAlice, c.now); }},
      {"requeue", [](Controller& c, JobId id) { (void)c.state.requeue(id, kAlice, false, c.now); }},
      {"requeuehold",
       [](Controller& c, JobId id) { (void)c.state.requeue(id, kAlice, true, c.now); }},
      {"top", [](Controller& c, JobId id) { (void)c.state.top(id, kAlice, c.now); }},
      {"words",
       [](Controller& c, JobId id) { updated(c, id, "--job-name=other --requeue", kAlice); }},
  };
  for (const char* line : {"--mem=1G", "--mem=1G --array=1-4", "--mem=1G : --mem=2G"}) {
    for (const auto& [how, hold] : holds) {
      for (const auto& [what, attempt] : tries) {
        Policy policy;
        policy.user_top = true;
        Controller c(policy);
        JobId id = c.submit(line);
        hold(c, id);
        if (c.at(id).array) id = c.state.pick(Controller::named(id, 3), c.now)->front();
        const std::string trace = fmt::format("{}: {}, then {}", line, how, what);
        attempt(c, id);
        EXPECT_FALSE(c.state.release(id, kAlice, c.now)) << trace;
        EXPECT_EQ(c.shown(id), "PENDING JobHeldAdmin") << trace;
        EXPECT_EQ(c.at(id).priority, 0U) << trace;
        EXPECT_FALSE(c.start(id)) << trace;
        for (const JobId part : c.state.records_of(id)) {
          // Not by another component either.
          EXPECT_EQ(c.state.release(part, kAlice, c.now).has_value(),
                    !c.at(part).held_by_admin && !c.at(id).held_by_admin)
              << trace;
        }
        EXPECT_TRUE(c.state.release(id, kRoot, c.now)) << trace;
        EXPECT_EQ(c.shown(id), "PENDING None") << trace;
      }
    }
  }
}

TEST(Hold, AnAdministratorsIsKeptOverARequeueAndARestart) {
  Controller c;
  const JobId id = c.started("--mem=1G");
  ASSERT_TRUE(c.state.requeue(id, kRoot, true, c.now));
  c.gone(id);
  EXPECT_EQ(c.shown(id), "PENDING job_requeued_in_held_state");
  EXPECT_FALSE(c.state.release(id, kAlice, c.now));
  Controller after;
  Stored stored;
  for (const wire::JobRecord& record : c.state.take_dirty().jobs) stored.jobs.push_back(record);
  after.state.load(stored, [&](std::uint64_t blob) { return c.blobs.at(blob); }, c.now);
  EXPECT_FALSE(after.state.hold(id, kAlice, true, c.now) && after.state.release(id, kAlice, c.now));
  EXPECT_TRUE(after.state.release(id, kRoot, c.now));
}

TEST(Rights, OnlyAdministratorsRaisePriorities) {
  Policy policy;
  policy.priority.multifactor = false;
  Controller c(policy);
  const JobId plain = c.submit("--mem=1G");
  const auto warned = [&](const std::string& line, const Caller& who, JobId& id) {
    auto ask = submission(line);
    c.blobs.push_back(ask.asked());
    const auto done = c.state.submit(ask, c.blobs.size() - 1, who, c.now);
    id = done ? done->id : 0;
    std::string out;
    for (const Message& one : done->warnings) out += one.text;
    return out;
  };
  JobId id = 0;
  JobId later = 0;
  // Root's first: what alice types is the same, and not hers to have.
  EXPECT_EQ(warned("--mem=1G --nice=-1000", kRoot, id), "");
  EXPECT_EQ(c.at(id).nice, -1000);
  EXPECT_GT(c.at(id).priority, c.at(plain).priority);
  EXPECT_EQ(warned("--mem=1G --nice=-1000", kAlice, id),
            "Nice value must be non-negative, value ignored");
  EXPECT_EQ(c.at(id).nice, 0);
  EXPECT_LT(c.at(id).priority, c.at(plain).priority);
  EXPECT_EQ(warned("--mem=1G --nice=-1000", kRoot, id), "");
  EXPECT_EQ(c.at(id).nice, -1000);
  EXPECT_EQ(warned("--mem=1G --nice=5", kAlice, id), "");
  EXPECT_EQ(c.at(id).nice, 5);
  EXPECT_EQ(warned("--mem=1G --priority=4294901761", kAlice, later),
            "Only operators and administrators can set a priority, value ignored");
  EXPECT_LT(c.at(later).priority, c.at(plain).priority);
  EXPECT_EQ(warned("--mem=1G --priority=0", kAlice, later), "");
  EXPECT_EQ(c.shown(later), "PENDING JobHeldUser");
  const auto may = [&](auto set, const Caller& who) {
    JobChange change;
    set(change);
    return c.state.change(id, change, who, c.now).has_value();
  };
  EXPECT_FALSE(may([](JobChange& x) { x.nice = -5000; }, kAlice));
  EXPECT_FALSE(may([](JobChange& x) { x.nice = 4; }, kAlice));
  EXPECT_TRUE(may([](JobChange& x) { x.nice = 6; }, kAlice));
  EXPECT_FALSE(may([](JobChange& x) { x.priority = 4294967000U; }, kAlice));
  EXPECT_TRUE(may([](JobChange& x) { x.priority = 7; }, kAlice));
  EXPECT_FALSE(may([](JobChange& x) { x.priority = 8; }, kAlice));
  EXPECT_TRUE(may([](JobChange& x) { x.priority = 8; }, kRoot));
  EXPECT_TRUE(may([](JobChange& x) { x.nice = -5000; }, kRoot));
}

TEST(Nodes, CreatedOnesWaitForTheirAgentAndAreRemembered) {
  Controller c;
  cluster::Cluster larger = place::corpus::make();
  cluster::Node extra = larger.nodes.front();
  extra.name = "new1";
  larger.nodes.push_back(extra);
  for (cluster::Partition& partition : larger.partitions) partition.nodes.clear();
  larger.index_nodes();
  c.state.reconfigure(larger, {}, c.now);
  c.state.keep_node("new1", "NodeName=new1 CPUs=4", c.now);
  const NodeState& node = *c.state.find_node("new1");
  EXPECT_FALSE(node.usable());
  EXPECT_EQ(node.reason, "waits for its agent to register");
  const Dirty dirty = c.state.take_dirty();
  ASSERT_EQ(dirty.nodes.size(), 1U);
  EXPECT_EQ(dirty.nodes[0].line(), "NodeName=new1 CPUs=4");
  c.state.tick(c.now + 100000);
  EXPECT_FALSE(c.state.find_node("new1")->down) << "it has never been there";
  c.up("new1");
  EXPECT_TRUE(c.state.find_node("new1")->usable());
  EXPECT_EQ(c.state.find_node("new1")->reason, "");
  c.state.take_dirty();
  c.state.drop_node("new1");
  const Dirty gone = c.state.take_dirty();
  ASSERT_EQ(gone.nodes.size(), 1U);
  EXPECT_EQ(gone.nodes[0].line(), "");
}

TEST(Nodes, StateInSlurmConfCounts) {
  cluster::Cluster cluster = place::corpus::make();
  cluster.nodes[0].usable = cluster.nodes[1].usable = false;
  cluster.nodes[0].state_reason = "DRAIN (being repaired)";
  cluster.nodes[1].state_reason = "FUTURE";
  const State state(cluster, {});
  EXPECT_TRUE(state.node(0).drain);
  EXPECT_EQ(state.node(0).reason, "being repaired");
  EXPECT_TRUE(state.node(1).future);
}

}  // namespace
}  // namespace berth::job
