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
