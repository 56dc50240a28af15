// The Suspend* and Resume* keys: forms, defaults, refusals.
#include "conf/power_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conf/slurm_conf.h"

namespace berth::conf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SlurmConf read_power(const std::string& text, std::string* error = nullptr) {
  const MemorySource source(MemorySource::Files{{"slurm.conf", "ClusterName=c\n" + text}});
  Complaints complaints;
  SlurmConf conf = read_slurm_conf(source, complaints);
  if (error != nullptr && complaints.failed()) {
    *error = complaints.as_error().messages.front().text;
  }
  if (error == nullptr) {
    EXPECT_FALSE(complaints.failed()) << complaints.as_error().what();
  }
  return conf;
}

TEST(PowerKeys, ReadsEveryForm) {
  EXPECT_FALSE(read_power("").daemon.power.enabled());
  const SlurmConf conf = read_power(
      "SuspendProgram=/s ResumeProgram=/r ResumeFailProgram=/f SuspendTime=300\n"
      "SuspendTimeout=1 ResumeTimeout=2 SuspendRate=0 ResumeRate=7\n"
      "SuspendExcNodes=n[1-3]:2,login SuspendExcParts=a,b SuspendExcStates=down,PLANNED\n"
      "NodeName=n[1-3],login SuspendTime=-1\n"
      "PartitionName=p Nodes=ALL SuspendTime=INFINITE SuspendTimeout=3 ResumeTimeout=4 "
      "PowerDownOnIdle=YES\n");
  const PowerKeys& keys = conf.daemon.power;
  EXPECT_TRUE(keys.enabled());
  EXPECT_EQ(keys.suspend_seconds, 300U);
  EXPECT_EQ(keys.suspend_rate, 0U);
  ASSERT_EQ(keys.kept_on.size(), 2U);
  EXPECT_EQ(keys.kept_on[0].count, 2U);
  EXPECT_EQ(keys.kept_on[0].nodes.size(), 3U);
  EXPECT_FALSE(keys.kept_on[1].count);
  EXPECT_THAT(keys.kept_on_states, ElementsAre("DOWN", "PLANNED"));
  EXPECT_EQ(conf.nodes.front().suspend_seconds->value, kNeverSuspend);
  const PartitionRules& rules = conf.partitions.front().rules;
  EXPECT_EQ(rules.suspend_seconds->value, kNeverSuspend);
  EXPECT_EQ(rules.suspend_timeout_seconds->value, 3U);
  EXPECT_EQ(rules.resume_timeout_seconds->value, 4U);
  EXPECT_TRUE(rules.power_down_on_idle->value);
}

TEST(GpuIdleKeys, ReadsEveryForm) {
  const SlurmConf conf = read_power(
      "PartitionName=DEFAULT GpuIdleTimeout=30\nPartitionName=a MaxGpuIdleTimeout=8h\n"
      "PartitionName=b GpuIdleTimeout=90s\nPartitionName=c GpuIdleTimeout=UNLIMITED\n");
  EXPECT_EQ(conf.partitions[0].rules.gpu_idle_seconds->value, 1800U);
  EXPECT_EQ(conf.partitions[0].rules.max_gpu_idle_seconds->value, 8 * 3600U);
  EXPECT_EQ(conf.partitions[1].rules.gpu_idle_seconds->value, 90U);
  EXPECT_FALSE(conf.partitions[1].rules.max_gpu_idle_seconds);
  EXPECT_EQ(conf.partitions[2].rules.gpu_idle_seconds->value, 0U);
  std::string error;
  read_power("PartitionName=a GpuIdleTimeout=soon\n", &error);
  EXPECT_THAT(error, HasSubstr("GpuIdleTimeout=soon: allowed are minutes"));
}

TEST(PowerKeys, SaysWhatIsAllowed) {
  struct Row {
    const char* text;
    const char* error;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"SuspendProgram=suspend\n", "give the whole path"},
           {"SuspendTime=soon\n", "SuspendTime=soon"},
           {"SuspendExcNodes=n1:x\n", "a count of how many stay on"},
           {"SuspendExcStates=SLEEPY\n", "SuspendExcStates=SLEEPY"},
       }) {
    std::string error;
    read_power(row.text, &error);
    EXPECT_THAT(error, HasSubstr(row.error)) << row.text;
  }
}

}  // namespace
}  // namespace berth::conf
