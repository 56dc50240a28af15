// A GPU that is out of service: not given out, kept by who has it, and given out again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/record.h"
#include "job/state_test_fixture.h"

namespace berth::job::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

void take_out(Controller& c, const std::string& node, const std::map<int, std::string>& gpus) {
  wire::GpuHealth message;
  message.set_node(node);
  for (const auto& [gpu, why] : gpus) {
    wire::GpuOut& out = *message.add_out();
    out.set_index(static_cast<std::uint32_t>(gpu));
    out.set_why(why);
  }
  c.state.gpu_health(message);
}

Bits gpus_of(const Controller& c, JobId id) {
  return c.at(id).allocation.nodes.front().gpus();
}

TEST(GpuHealthOfNodes, OneThatIsOutIsNotGivenOut) {
  Controller c;
  take_out(c, "gpu1", {{0, "Xid 79"}});
  const cluster::NodeIndex index = *c.state.cluster().find_node("gpu1");
  EXPECT_TRUE(c.state.cluster().nodes[index].usable);  // the node is in service
  EXPECT_EQ(c.state.usage().rooms().at(index).gpus, 3U);
  const JobId all =
      c.submit("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:4");  // not refused: it may come back
  EXPECT_FALSE(c.start(all));
  const JobId three = c.started("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:3");
  EXPECT_EQ(gpus_of(c, three), Bits::range(1, 3));
  c.runs_to_the_end(three);
  const JobId whole = c.started("-w gpu1 -N1 --mem=1G --exclusive");
  EXPECT_EQ(gpus_of(c, whole), Bits::range(1, 3));
  c.runs_to_the_end(whole);
  take_out(c, "gpu1", {});
  EXPECT_TRUE(c.start(all));
  c.begun(all);
  c.runs_to_the_end(all);
  EXPECT_TRUE(c.idle());
}

TEST(GpuHealthOfNodes, NeitherAreItsShards) {
  Controller c;
  std::map<int, std::string> out;
  for (int i = 0; i < 7; ++i) out[i] = "Xid 79";
  take_out(c, "gpu6", out);
  const JobId id = c.started("-w gpu6 -N1 -n1 --mem=1G --gres=shard:3");
  EXPECT_EQ(gpus_of(c, id), Bits::of({7}));
  EXPECT_FALSE(c.start(c.submit("-w gpu6 -N1 -n1 --mem=1G --gres=shard:2")));
}

TEST(GpuHealthOfNodes, WhoHasItKeepsItAndIsTold) {
  Controller c;
  const JobId id = c.started("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:2");
  const JobId other = c.started("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:1");
  const std::size_t first = gpus_of(c, id).next();
  c.state.take_effects();
  take_out(c, "gpu1", {{static_cast<int>(first), "3 uncorrected ECC errors"}});
  const auto log = c.effects<Log>();
  ASSERT_EQ(log.size(), 2U);
  EXPECT_THAT(log[0].text, HasSubstr("is out of service: 3 uncorrected ECC errors"));
  EXPECT_EQ(c.shown(id), "RUNNING None");
  ASSERT_TRUE(c.at(id).gpu_uses);
  EXPECT_EQ(c.at(id).gpu_uses->all[0].trouble(), "3 uncorrected ECC errors");
  EXPECT_FALSE(c.at(other).gpu_uses);
  // It stays with the job when the GPU is well again, when more is told, and in the store.
  take_out(c, "gpu1", {});
  wire::JobGpus use;
  use.set_node("gpu1");
  use.set_job_id(id);
  use.set_attempt(c.at(id).attempt);
  use.add_gpus()->set_index(static_cast<std::uint32_t>(first));
  c.state.job_gpus(use, c.now);
  const Job again = from_record(c.state.cluster(), to_record(c.state.cluster(), c.at(id)));
  EXPECT_EQ(again.gpu_uses->all[0].trouble(), "3 uncorrected ECC errors");
  c.runs_to_the_end(id);
  c.runs_to_the_end(other);
  EXPECT_TRUE(c.idle());
}

TEST(GpuHealthOfNodes, ARegistrationTellsAllOfIt) {
  Controller c;
  take_out(c, "gpu1", {{0, "Xid 79"}});
  wire::NodeReport report;
  report.add_gpus_out()->set_index(2);
  c.up("gpu1", report);
  const cluster::NodeIndex index = *c.state.cluster().find_node("gpu1");
  EXPECT_TRUE(c.state.cluster().nodes[index].gpus_out.contains(2));
  EXPECT_FALSE(c.state.cluster().nodes[index].gpus_out.contains(0));
  c.up("gpu1");
  EXPECT_THAT(c.state.cluster().nodes[index].gpus_out, IsEmpty());
}

TEST(GpuHealthOfNodes, ANewConfigurationForgetsNothing) {
  Controller c;
  take_out(c, "gpu1", {{0, "Xid 79"}, {99, "no such GPU"}, {2000000, "nor this"}});
  const JobId id = c.started("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:3");
  take_out(c, "gpu1", {{0, "Xid 79"}, {1, "Xid 79"}});
  c.state.reconfigure(place::corpus::make(), {}, c.now);
  EXPECT_EQ(c.shown(id), "RUNNING None");
  const cluster::NodeIndex index = *c.state.cluster().find_node("gpu1");
  EXPECT_EQ(c.state.usage().at(index).open_devices[0], 0U);
  c.runs_to_the_end(id);
  EXPECT_EQ(c.state.usage().at(index).open_devices[0], 2U);
  // Others of the same hardware are not concerned, nor what could ever run.
  EXPECT_EQ(c.state.usage().at(*c.state.cluster().find_node("gpu2")).open_devices[0], 4U);
  EXPECT_NE(c.submit("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:4"), 0U);
}

GpuChange by_hand(const Bits& gpus, bool drain, const Caller& caller = kRoot) {
  return {gpus, drain, "fan is broken", "root@2026-01-31T12:00:00", caller};
}

TEST(GpuHealthOfNodes, OneIsTakenOutByHandAndStaysOut) {
  Controller c;
  const cluster::NodeIndex index = *c.state.cluster().find_node("gpu1");
  const auto out = [&] { return c.state.cluster().nodes[index].gpus_out; };
  const JobId has = c.started("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:1");
  ASSERT_TRUE(c.state.change_gpus({"gpu1"}, by_hand(Bits::range(0, 1), true)));
  EXPECT_EQ(out().at(0), "fan is broken [root@2026-01-31T12:00:00]");
  EXPECT_EQ(c.shown(has), "RUNNING None");  // who has it keeps it
  EXPECT_FALSE(c.at(has).gpu_uses) << "nothing is wrong for the job";
  EXPECT_EQ(gpus_of(c, c.started("-w gpu1 -N1 -n1 --mem=1G --gres=gpu:2")), Bits::range(2, 3));
  EXPECT_TRUE(c.state.cluster().nodes[index].usable);

  // What the node tells comes and goes beside it; so do registrations and configurations.
  take_out(c, "gpu1", {{0, "Xid 79"}});
  EXPECT_EQ(out().at(0), "fan is broken [root@2026-01-31T12:00:00], Xid 79");
  wire::NodeReport report;
  for (const JobId id : c.state.node(index).jobs) {
    wire::HeldJob& held = *report.add_jobs();
    held.set_job_id(id);
    held.set_attempt(1);
  }
  c.up("gpu1", report);
  EXPECT_EQ(out().size(), 2U);
  EXPECT_EQ(out().at(0), "fan is broken [root@2026-01-31T12:00:00]");
  c.state.reconfigure(place::corpus::make(), {}, c.now);
  EXPECT_EQ(out().size(), 2U);

  Dirty dirty = c.state.take_dirty();
  Stored stored;
  stored.nodes = std::move(dirty.nodes);
  stored.jobs = std::move(dirty.jobs);
  State again(place::corpus::make(), {});
  again.load(stored, [&](std::uint64_t blob) { return std::optional(c.blobs.at(blob)); }, c.now);
  EXPECT_EQ(again.cluster().nodes[index].gpus_out, out());
  EXPECT_EQ(again.find(has)->base, Base::running) << "it keeps the GPU over a restart, too";

  ASSERT_TRUE(c.state.change_gpus({"gpu1"}, by_hand(Bits::of({0}), false)));
  EXPECT_FALSE(out().contains(0));
  EXPECT_TRUE(out().contains(1));
  EXPECT_EQ(c.state.take_dirty().nodes.at(0).gpus_drained_size(), 1);
}

TEST(GpuHealthOfNodes, ResumeEndsAProbationAndNothingElse) {
  Controller c;
  const auto resume = [&](std::size_t gpu) {
    return c.state.change_gpus({"gpu1"}, by_hand(Bits::of({gpu}), false));
  };
  wire::GpuHealth message;
  message.set_node("gpu1");
  wire::GpuOut& watched = *message.add_out();
  watched.set_index(2);
  watched.set_why("Xid 79 at 12:00:00");
  watched.set_probation(true);
  wire::GpuOut& ill = *message.add_out();
  ill.set_index(3);
  ill.set_why("2 uncorrected ECC errors: reset it");
  c.state.gpu_health(message);
  c.state.take_effects();

  ASSERT_TRUE(resume(2));
  const auto told = c.effects<EndProbation>();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].node, "gpu1");
  EXPECT_EQ(told[0].gpu, 2U);

  const auto refused = resume(3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().hint,
            "GPU 3 of node gpu1 stays out of service: 2 uncorrected ECC errors: reset it");
  ASSERT_TRUE(c.state.change_gpus({"gpu1"}, by_hand(Bits::of({3}), true)));
  const auto in_part = resume(3);
  ASSERT_TRUE(in_part);
  ASSERT_EQ(in_part->size(), 1U);
  EXPECT_THAT(in_part->front().text, HasSubstr("stays out of service: 2 uncorrected"));

  // Ended or not: a process that no job knows keeps it out, and that is said.
  message.mutable_out(0)->set_why("Xid 79 at 12:00:00; pid 7 has 400 MiB on it");
  message.mutable_out(0)->set_beyond_probation("pid 7 has 400 MiB on it");
  c.state.gpu_health(message);
  const auto held = resume(2);
  EXPECT_EQ(c.effects<EndProbation>().size(), 1U);
  ASSERT_TRUE(held);
  ASSERT_EQ(held->size(), 1U);
  EXPECT_EQ(held->front().text,
            "berth: GPU 2 of node gpu1 stays out of service: pid 7 has 400 MiB on it");

  EXPECT_EQ(resume(0).error().hint, "it is in service");
  c.state.node_lost("gpu1", c.now);
  EXPECT_THAT(resume(2).error().hint, HasSubstr("its node does not respond"));
}

TEST(GpuHealthOfNodes, ByHandIsForAdministratorsAndForGpusThatExist) {
  Controller c;
  const GpuChange drain = by_hand(Bits::of({3}), true);
  EXPECT_FALSE(c.state.change_gpus({"gpu1"}, by_hand(Bits::of({0}), true, kAlice)));
  EXPECT_EQ(c.state.change_gpus({"gpu1"}, by_hand(Bits::of({4}), true)).error().hint,
            "gpu1 has GPUs 0-3");
  EXPECT_EQ(c.state.change_gpus({"cpu1"}, drain).error().hint, "cpu1 has no GPUs");
  EXPECT_EQ(c.state.change_gpus({"gpu1", "none"}, drain).error().hint, "none is not in slurm.conf");
  const cluster::NodeIndex index = *c.state.cluster().find_node("gpu1");
  EXPECT_THAT(c.state.cluster().nodes[index].gpus_out, IsEmpty()) << "all of them, or none";
}

TEST(GpuHealthOfNodes, AThousandTimesInAndOutLeavesNothing) {
  Controller c;
  const cluster::NodeIndex index = *c.state.cluster().find_node("gpu1");
  for (int i = 0; i < 1000; ++i) {
    take_out(c, "gpu1", {{i % 4, "it does not answer"}});
    ASSERT_EQ(c.state.usage().at(index).open_devices[0], 3U);
    take_out(c, "gpu1", {});
    c.state.take_effects();
  }
  EXPECT_EQ(c.state.usage().at(index).open_devices[0], 4U);
  EXPECT_LT(c.state.usage().state_count(), 200U);
}

}  // namespace
}  // namespace berth::job::testing
