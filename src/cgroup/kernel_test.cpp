// A device program on this kernel: who is in the group opens what the rules allow. Needs root and
// a cgroup v2 file system.
#include "cgroup/kernel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "cgroup/hierarchies.h"

namespace berth::cgroup {
namespace {

/// What a process in the group gets when it opens the file: 0, or errno.
int open_in(const std::string& group, const char* file) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!this_kernel().write(group + "/cgroup.procs", "0")) ::_exit(255);
    ::_exit(::open(file, O_RDONLY) >= 0 ? 0 : errno);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ThisKernel, KeepsToDeviceRules) {
  const Hierarchies here = hierarchies_here();
  if (::geteuid() != 0 || here.v2.empty()) GTEST_SKIP() << "needs root and cgroup v2";
  Kernel& kernel = this_kernel();
  const std::string above = here.v2 + "/berth-test-" + std::to_string(::getpid());
  const std::string group = above + "/below";
  ASSERT_TRUE(kernel.make(above));
  EXPECT_FALSE(kernel.make(above).value()) << "it is there";
  ASSERT_TRUE(kernel.make(group));
  const auto kept = kernel.keep_filtering(above);
  if (!kept) {
    kernel.remove(group);
    kernel.remove(above);
    GTEST_SKIP() << kept.error().what();
  }
  const std::vector<DeviceRule> rules = {{false, 1, 5, false}};
  ASSERT_TRUE(kernel.filter_devices(above, rules));
  ASSERT_TRUE(kernel.keep_filtering(above));
  EXPECT_EQ(open_in(group, "/dev/zero"), EPERM);
  EXPECT_EQ(open_in(group, "/dev/full"), 0);
  // What is allowed below was forbidden above.
  const std::vector<DeviceRule> more = {{false, 1, 5, true}, {false, 1, 7, false}};
  ASSERT_TRUE(kernel.filter_devices(group, more));
  EXPECT_EQ(open_in(group, "/dev/zero"), EPERM);
  EXPECT_EQ(open_in(group, "/dev/full"), EPERM);
  EXPECT_EQ(open_in(above, "/dev/full"), 0);
  EXPECT_TRUE(kernel.remove(group));
  EXPECT_TRUE(kernel.remove(above));
}

}  // namespace
}  // namespace berth::cgroup
