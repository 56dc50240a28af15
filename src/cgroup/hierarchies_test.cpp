// Mounts as kernels list them, and the choice of means.
#include "cgroup/hierarchies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cgroup {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kHybrid =
    "25 30 0:23 / /proc rw - proc proc rw\n"
    "30 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "36 35 0:30 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
    "37 35 0:31 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "38 35 0:32 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
    "39 35 0:33 / /sys/fs/cgroup/my\\040devices rw - cgroup cgroup rw,devices\n"
    "40 35 0:34 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(Hierarchies, AreReadFromMounts) {
  const Hierarchies here = read_mounts(kHybrid);
  EXPECT_EQ(here.v2, "/sys/fs/cgroup/unified");
  EXPECT_EQ(here.v1.at("memory"), "/sys/fs/cgroup/memory");
  EXPECT_EQ(here.v1.at("cpuacct"), "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(here.v1.at("devices"), "/sys/fs/cgroup/my devices");
  EXPECT_FALSE(here.v1.contains("cpuset"));
  EXPECT_TRUE(read_mounts("").v2.empty());
  EXPECT_TRUE(read_mounts("- cgroup2\n - \n1 2 - cgroup cgroup rw,memory\n").v1.empty());
}

TEST(Hierarchies, EachThingIsLimitedWhereItCanBe) {
  Hierarchies here = read_mounts(kHybrid);
  std::vector<std::string> missing;
  Means means = choose_means(here, Plugin::autodetect, {true, true, true}, missing);
  EXPECT_EQ(means, (Means{Version::v2, Version::v1, Version::none}));
  EXPECT_THAT(missing, ElementsAre(HasSubstr(
                           "ConstrainCores cannot be done: there is cgroup v2 at "
                           "/sys/fs/cgroup/unified without cpuset, and of cgroup v1: cpu cpuacct "
                           "devices memory")));
  missing.clear();
  means = choose_means(here, Plugin::v1, {true, true, false}, missing);
  EXPECT_EQ(means, (Means{Version::v1, Version::v1, Version::none}));
  EXPECT_THAT(missing, ElementsAre());
  means = choose_means(here, Plugin::v2, {true, true, false}, missing);
  EXPECT_EQ(means, (Means{Version::v2, Version::none, Version::none}));
  EXPECT_THAT(missing, ElementsAre(HasSubstr("by CgroupPlugin=cgroup/v2")));
  missing.clear();
  here.v2_controllers = {"memory", "cpuset"};
  means = choose_means(here, Plugin::autodetect, {true, true, true}, missing);
  EXPECT_EQ(means, (Means{Version::v2, Version::v2, Version::v2}));
  EXPECT_THAT(missing, ElementsAre());
  EXPECT_EQ(choose_means({}, Plugin::autodetect, {false, false, false}, missing), Means{});
  EXPECT_THAT(missing, ElementsAre());
  choose_means({}, Plugin::autodetect, {true, true, true}, missing);
  EXPECT_EQ(missing.size(), 3U);
}

}  // namespace
}  // namespace berth::cgroup
