// From what GPUs tell to which of them are not given out.
#include "node/gpu_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "node/gpu_holder.h"
#include "node/xids.h"

namespace berth::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

/// Two GPUs that jobs count in the order of the library.
class Site {
 public:
  explicit Site(std::vector<MeteredGpu> gpus = {{0U, {}, "h100", 80000}, {1U, {}, "h100", 80000}})
      : health(std::move(gpus), seconds(60), [this](std::uint32_t pid) {
          const auto found = processes.find(pid);
          return found == processes.end() ? GpuHealth::Holder() : found->second;
        }) {
    for (std::uint32_t i = 0; i < 2; ++i) round.samples[i].gpu = i;
  }
  /// A second passes.
  GpuHealth::Out look() {
    now += seconds(1);
    health.round(round, held, now);
    return health.out();
  }
  GpuHealth::Out look(int times) {
    for (int i = 1; i < times; ++i) look();
    return look();
  }
  void put(std::uint32_t gpu, std::uint32_t pid, std::uint64_t memory_mb = 3000) {
    survey::Process one;
    one.gpu = gpu;
    one.pid = pid;
    one.memory_mb = memory_mb;
    round.processes.push_back(one);
  }

  std::map<std::uint32_t, GpuHealth::Holder> processes;
  GpuHealth health;
  GpuRound round;
  Bits held;
  GpuHealth::Moment now{};
};

TEST(Xids, OnlyThoseOfTheHardwareCount) {
  for (const std::uint64_t xid : {48, 64, 74, 79, 94, 95, 119, 120, 140}) {
    EXPECT_FALSE(hardware_fault(xid).empty()) << xid;
  }
  for (const std::uint64_t xid : {0, 8, 13, 31, 43, 45, 63, 68, 109, 100000}) {
    EXPECT_TRUE(hardware_fault(xid).empty()) << xid;
  }
}

TEST(GpuHealth, OneThatIsLostIsOutUntilItAnswers) {
  Site site;
  EXPECT_THAT(site.look(), IsEmpty());
  site.round.samples.erase(1);
  site.round.lost[1] = "GPU is lost";
  EXPECT_EQ(site.look(), (GpuHealth::Out{{1, "it does not answer: GPU is lost"}}));
  site.round.lost.clear();
  EXPECT_EQ(site.look(), (GpuHealth::Out{{1, "it is not there any more"}}));
  site.round.samples[1].gpu = 1;
  EXPECT_THAT(site.look(), IsEmpty());
}

TEST(GpuHealth, CountersKeepItOutUntilTheyAreReset) {
  struct Case {
    void (*set)(survey::Sample&);
    const char* why;
  };
  const std::vector<Case> cases = {
      {[](survey::Sample& s) { s.ecc_uncorrected = 1; }, "1 uncorrected ECC error: reset it"},
      {[](survey::Sample& s) { s.ecc_uncorrected = 3; }, "3 uncorrected ECC errors: reset it"},
      {[](survey::Sample& s) { s.rows_pending = 1; },
       "a row of its memory waits to be remapped: reset it"},
      {[](survey::Sample& s) { s.rows_failed = 1; },
       "a bad row of its memory could not be remapped: it has to be replaced"},
  };
  for (const Case& one : cases) {
    Site site;
    const survey::Sample well = site.round.samples[0];
    one.set(site.round.samples[0]);
    EXPECT_EQ(site.look(100), (GpuHealth::Out{{0, one.why}}));
    site.round.samples[0] = well;
    EXPECT_THAT(site.look(), IsEmpty()) << one.why;
  }
  Site site;
  site.round.samples[0].ecc_corrected = 1000;
  site.round.samples[0].rows_remapped = 2;
  EXPECT_THAT(site.look(), IsEmpty());
}

TEST(GpuHealth, AnXidCountsAtOnceAndForTheProbation) {
  Site site;
  site.look();
  site.health.xid({1, 31}, site.now, "12:03:59");
  EXPECT_THAT(site.health.out(), IsEmpty());
  site.health.xid({1, 79}, site.now, "12:03:59");
  const GpuHealth::Out out = {{1, "Xid 79 at 12:03:59: it has fallen off the bus"}};
  EXPECT_EQ(site.health.out(), out);
  EXPECT_EQ(site.look(50), out);
  // What it tells of itself comes first, and it has to be well for the whole time after that.
  site.round.samples[1].rows_pending = 1;
  EXPECT_THAT(site.look()[1], HasSubstr("remapped"));
  site.round.samples[1].rows_pending = 0;
  EXPECT_EQ(site.look(59), out);
  site.health.xid({1, 74}, site.now, "12:05:59");  // and again
  EXPECT_THAT(site.look(59)[1], HasSubstr("Xid 74 at 12:05:59"));
  EXPECT_THAT(site.look(), IsEmpty());
}

TEST(GpuHealth, GpusThatAreNotWatchedAreWell) {
  Site site({{std::nullopt, {}, "h100", 80000}, {7U, {}, "h100", 80000}});
  site.health.xid({0, 79}, site.now, "12:00:00");
  EXPECT_EQ(site.look(), (GpuHealth::Out{{1, "it is not there any more"}}));
}

TEST(GpuHealth, WhoIsLeftAfterAJobIsNamedAtOnce) {
  Site site;
  site.look();
  site.held.set(0);
  site.put(0, 4711);  // the job's own
  site.put(0, 4712);
  site.processes[4712] = {true, false, "python", "alice"};
  EXPECT_THAT(site.look(10), IsEmpty());
  site.health.freed(Bits::first_n(1));
  const GpuHealth::Out out = {{0, "pid 4712 (python of alice) has 3000 MiB on it"}};
  EXPECT_EQ(site.health.out(), out);
  site.held = {};
  site.round.processes.erase(site.round.processes.begin());
  site.round.processes.front().memory_mb = 4000;  // the words stay
  EXPECT_EQ(site.look(10), out);
  site.round.processes.clear();
  EXPECT_THAT(site.look(), IsEmpty());
}

TEST(GpuHealth, AProcessThatEndsHasAMomentToLeave) {
  Site site;
  site.look();
  site.held.set(0);
  site.put(0, 4711);
  site.look();
  site.held = {};
  site.health.freed(Bits::first_n(1));
  EXPECT_THAT(site.look(2), IsEmpty());
  EXPECT_EQ(site.look(), (GpuHealth::Out{{0, "pid 4711 has 3000 MiB on it"}}));
  // A job that has the GPU has its processes there.
  site.held.set(0);
  EXPECT_THAT(site.look(), IsEmpty());
}

TEST(GpuHealth, WhatBelongsToTheMachineStays) {
  Site site;
  site.put(1, 100);  // a display, since before the first job
  EXPECT_THAT(site.look(5), IsEmpty());
  site.put(0, 200);
  site.processes[200] = {true, true, "nvidia-cuda-mps", "root"};
  EXPECT_THAT(site.look(5), IsEmpty());
  site.round.processes.clear();
  site.look();
  site.put(1, 100);  // another one, that has got its number
  EXPECT_EQ(site.look(3).size(), 1U);
}

TEST(GpuHealth, OfAPartOnlyItsOwnProcessesCount) {
  Site site({{0U, 1U, "1g.10gb", 10000}, {0U, 2U, "1g.10gb", 10000}});
  site.look();
  site.put(0, 4711);
  site.round.processes.front().gpu_instance = 2;
  EXPECT_EQ(site.look(3), (GpuHealth::Out{{1, "pid 4711 has 3000 MiB on it"}}));
  site.health.xid({0, 48}, site.now, "12:00:00");
  EXPECT_EQ(site.health.out().size(), 2U);
}

TEST(GpuHolder, IsReadFromTheMachine) {
  const GpuHealth::Holder self = look_at_holder(static_cast<std::uint32_t>(::getpid()));
  EXPECT_TRUE(self.lives);
  EXPECT_FALSE(self.shared);
  EXPECT_EQ(self.command, "node_test");
  EXPECT_FALSE(self.user.empty());
  EXPECT_FALSE(look_at_holder(0x7ffffff0).lives);
}

TEST(GpuHealth, SomebodyMayEndTheProbation) {
  Site site;
  site.look();
  site.health.xid({0, 79}, site.now, "12:00:00");
  EXPECT_TRUE(site.health.on_probation(0));
  site.round.samples[0].ecc_uncorrected = 1;
  EXPECT_THAT(site.look().at(0), HasSubstr("ECC"));
  EXPECT_FALSE(site.health.on_probation(0)) << "it is ill";
  site.health.end_probation(0);
  EXPECT_THAT(site.look().at(0), HasSubstr("ECC")) << "what the hardware says stays";
  site.round.samples[0].ecc_uncorrected = 0;
  EXPECT_THAT(site.look(), IsEmpty());
  site.health.xid({0, 79}, site.now, "12:00:01");
  site.look();
  site.health.end_probation(0);
  site.health.end_probation(99);
  EXPECT_THAT(site.look(), IsEmpty());
}

TEST(GpuHealth, WhoIsOnAGpuOnProbationIsToldBesideIt) {
  Site site;
  site.look();
  site.health.xid({0, 79}, site.now, "12:00:00");
  site.processes[7] = {true, false, "python", "ann"};
  site.put(0, 7, 400);
  const std::string why = site.look(5).at(0);
  EXPECT_THAT(why, HasSubstr("Xid 79"));
  EXPECT_THAT(why, HasSubstr("; pid 7 (python of ann) has 400 MiB on it"));
  EXPECT_TRUE(site.health.on_probation(0));
  EXPECT_EQ(site.health.holder_on(0), "pid 7 (python of ann) has 400 MiB on it");
  EXPECT_EQ(site.health.holder_on(1), "");
  EXPECT_EQ(site.health.holder_on(99), "");
  site.health.end_probation(0);
  EXPECT_EQ(site.look().at(0), "pid 7 (python of ann) has 400 MiB on it");
}

}  // namespace
}  // namespace berth::node
