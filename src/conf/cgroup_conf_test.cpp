// cgroup.conf: its switches, and complaints.
#include "conf/cgroup_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::conf {
namespace {

TEST(CgroupConf, ReadsSwitches) {
  Complaints complaints;
  const auto conf = read_cgroup_conf(
      MemorySource(
          MemorySource::Files{{"cgroup.conf",
                               "ConstrainDevices=yes\nconstraincores=TRUE ConstrainRAMSpace=0\n"
                               "ConstrainDevices=no\nSystemdTimeout=90\n"}}),
      "c", complaints);
  ASSERT_TRUE(conf);
  EXPECT_FALSE(complaints.failed());
  EXPECT_FALSE(conf->constrain_devices);
  EXPECT_TRUE(conf->constrain_cores);
  EXPECT_FALSE(conf->constrain_ram);
  EXPECT_THAT(
      complaints.warnings(),
      testing::ElementsAre(
          "cgroup.conf:3: ConstrainDevices was given before, in cgroup.conf:1; this one counts"));
  ASSERT_EQ(complaints.unused_keys().size(), 1u);
  EXPECT_THAT(complaints.unused_keys()[0].keys, testing::ElementsAre("SystemdTimeout (line 4)"));
}

TEST(CgroupConf, RefusesWithFileAndLine) {
  Complaints complaints;
  read_cgroup_conf(
      MemorySource(MemorySource::Files{{"cgroup.conf", "ConstrainDevice=yes\nConstrainCores=2\n"}}),
      "c", complaints);
  ASSERT_TRUE(complaints.failed());
  const Error error = complaints.as_error();
  ASSERT_EQ(error.messages.size(), 2u);
  EXPECT_EQ(error.messages[0].text,
            "cgroup.conf:1: ConstrainDevice is not a key of cgroup.conf; did you mean "
            "ConstrainDevices?");
  EXPECT_EQ(error.messages[1].text, "cgroup.conf:2: ConstrainCores=2: allowed are YES and NO");
}

TEST(CgroupConf, ReadsTheRulesOfMemory) {
  Complaints complaints;
  const auto conf = read_cgroup_conf(
      MemorySource(MemorySource::Files{
          {"cgroup.conf",
           "ConstrainRAMSpace=yes AllowedRAMSpace=110.5\nAllowedSwapSpace=10 MaxRAMPercent=98\n"
           "MaxSwapPercent=50 MinRAMSpace=64 CgroupSlice=jobs.slice\n"}}),
      "c", complaints);
  ASSERT_TRUE(conf);
  EXPECT_FALSE(complaints.failed());
  EXPECT_EQ(conf->allowed_ram_percent, 110.5);
  EXPECT_EQ(conf->allowed_swap_percent, 10);
  EXPECT_EQ(conf->max_ram_percent, 98);
  EXPECT_EQ(conf->max_swap_percent, 50);
  EXPECT_EQ(conf->min_ram_mb, 64U);
  EXPECT_EQ(conf->slice, "jobs.slice");
}

TEST(CgroupConf, RefusesWhatCannotBe) {
  Complaints complaints;
  read_cgroup_conf(
      MemorySource(MemorySource::Files{
          {"cgroup.conf",
           "CgroupPlugin=disabled\nConstrainCores=yes\nMaxRAMPercent=101\nAllowedRAMSpace=-1\n"
           "CgroupSlice=../x.slice\nAllowedSwapSpace=1e3\n"}}),
      "c", complaints);
  std::vector<std::string> texts;
  for (const Message& message : complaints.as_error().messages) texts.push_back(message.text);
  EXPECT_THAT(texts,
              testing::UnorderedElementsAre(
                  "cgroup.conf:2: ConstrainCores=yes needs cgroups, and CgroupPlugin=disabled "
                  "forbids them",
                  "cgroup.conf:3: MaxRAMPercent=101: allowed is a percentage from 0 to 100",
                  "cgroup.conf:4: AllowedRAMSpace=-1: allowed is a percentage from 0 to 100000",
                  "cgroup.conf:5: CgroupSlice=../x.slice: allowed is the name of a slice, such as "
                  "system.slice",
                  "cgroup.conf:6: AllowedSwapSpace=1e3: allowed is a percentage from 0 to 100000"));
}

}  // namespace
}  // namespace berth::conf
