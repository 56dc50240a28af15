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
                               "ConstrainDevices=no\nAllowedRAMSpace=90\n"}}),
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
  EXPECT_THAT(complaints.unused_keys()[0].keys, testing::ElementsAre("AllowedRAMSpace (line 4)"));
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

}  // namespace
}  // namespace berth::conf
