// The Preempt* keys: forms, defaults, refusals, and what makes no difference.
#include "conf/preempt_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conf/slurm_conf.h"

namespace berth::conf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

struct PreemptRead {
  SlurmConf conf;
  std::vector<std::string> errors, warnings;
};

PreemptRead read_preempt(const std::string& text) {
  const MemorySource source(MemorySource::Files{{"slurm.conf", "ClusterName=c\n" + text}});
  Complaints complaints;
  PreemptRead out;
  out.conf = read_slurm_conf(source, complaints);
  if (complaints.failed()) {
    for (const Message& m : complaints.as_error().messages) out.errors.push_back(m.text);
  }
  out.warnings = complaints.warnings();
  return out;
}

TEST(PreemptKeys, HaveSlurmsDefaults) {
  const PreemptKeys keys = read_preempt("").conf.daemon.preempt;
  EXPECT_EQ(keys.type, "preempt/none");
  EXPECT_EQ(keys.mode.mode, "OFF");
  EXPECT_FALSE(keys.exempt_seconds);
  EXPECT_THAT(keys.parameters, IsEmpty());
}

TEST(PreemptKeys, ReadsEveryForm) {
  const PreemptRead got = read_preempt(
      "PreemptType=preempt/partition_prio\nPreemptMode=suspend,gang,priority\n"
      "PreemptExemptTime=00:10:00\n"
      "PreemptParameters=youngest_first,min_exempt_priority=500,Send_User_Signal\n"
      "PartitionName=a PreemptMode=off GraceTime=30\nPartitionName=b PreemptMode=REQUEUE\n");
  const PreemptKeys& keys = got.conf.daemon.preempt;
  EXPECT_THAT(got.errors, IsEmpty());
  EXPECT_THAT(got.warnings, IsEmpty());
  EXPECT_EQ(keys.type, "preempt/partition_prio");
  EXPECT_EQ(keys.mode.mode, "SUSPEND");
  EXPECT_TRUE(keys.mode.gang);
  EXPECT_TRUE(keys.mode.priority);
  EXPECT_FALSE(keys.mode.within);
  EXPECT_EQ(keys.exempt_seconds, 600U);
  EXPECT_THAT(keys.parameters,
              ElementsAre(Pair("min_exempt_priority", "500"), Pair("send_user_signal", ""),
                          Pair("youngest_first", "")));
  EXPECT_EQ(got.conf.partitions[0].rules.grace_seconds->value, 30U);
}

TEST(PreemptKeys, SaysWhatItCannotMean) {
  struct Row {
    const char* text;
    const char* error;
  };
  const Row rows[] = {
      {"PreemptMode=SUSPEND", "needs GANG"},
      {"PreemptMode=CANCEL,REQUEUE", "exclude each other"},
      {"PreemptMode=SOMETIMES", "PreemptMode"},
      {"PreemptType=preempt/whim", "PreemptType"},
      {"PreemptExemptTime=soon", "PreemptExemptTime"},
      {"PreemptParameters=youngest_first=1", "allowed is youngest_first"},
      {"PreemptParameters=min_exempt_priority", "allowed is min_exempt_priority=number"},
      {"PartitionName=a PreemptMode=SUSPEND", "needs GANG in the cluster's PreemptMode"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(read_preempt(row.text).errors, ElementsAre(HasSubstr(row.error))) << row.text;
  }
}

TEST(PreemptKeys, WarnsOfWhatMakesNoDifference) {
  EXPECT_THAT(read_preempt("PreemptMode=REQUEUE").warnings,
              ElementsAre(HasSubstr("without PreemptType=preempt/partition_prio")));
  EXPECT_THAT(
      read_preempt("PreemptType=preempt/partition_prio\nPreemptMode=CANCEL,WITHIN").warnings,
      ElementsAre(HasSubstr("WITHIN makes no difference")));
  EXPECT_THAT(read_preempt("PreemptParameters=oldest_first").warnings,
              ElementsAre(HasSubstr("oldest_first is not known")));
  EXPECT_THAT(read_preempt("PreemptMode=GANG").warnings, ElementsAre(HasSubstr("no time slices")));
}

}  // namespace
}  // namespace berth::conf
