// Children that begin with this process's table of descriptors.
#include "step/descriptor_table.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "step/container.h"

namespace berth::step {
namespace {

std::set<int> open_descriptors() {
  std::set<int> found;
  for (int fd = 0; fd < 512; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) found.insert(fd);
  }
  return found;
}

class LowDescriptorsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(container_.low(), nullptr);
    for (int i = 0; i < 100; ++i) many_.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reading_.reset(ends[0]);
    writing_.reset(ends[1]);
  }
  /// Orphans of other tests are not for this process.
  void TearDown() override { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
  int status_of(pid_t pid) {
    int status = -1;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }
  /// Of a child that runs this.
  int status_of_child(const std::function<void()>& child) {
    const auto pids = container_.start_sharing({child});
    return pids.size() == 1 && pids[0] > 0 ? WEXITSTATUS(status_of(pids[0])) : -1;
  }

  Container container_{""};
  std::vector<Fd> many_;
  Fd reading_, writing_;
};

TEST_F(LowDescriptorsTest, TheChildHasWhatItTookAndThisProcessWhatItHad) {
  const std::set<int> before = open_descriptors();
  int none = -1;
  int out = writing_.get();
  const int status = status_of_child([&] {
    std::array wanted{&none, &out};
    if (!container_.low()->take(wanted)) ::_exit(1);
    if (none != -1) ::_exit(2);
    // Nothing above it, and what the child does now is its own affair.
    if (*open_descriptors().rbegin() > out) ::_exit(3);
    if (::write(out, "word", 4) != 4) ::_exit(4);
    for (int fd = 0; fd <= out; ++fd) ::close(fd);
    ::_exit(42);
  });
  EXPECT_EQ(status, 42);
  EXPECT_EQ(open_descriptors(), before);
  char text[8] = {};
  EXPECT_EQ(::read(reading_.get(), text, sizeof text), 4);
}

TEST_F(LowDescriptorsTest, APipeEndsWithItsLastOwner) {
  int out = writing_.get();
  EXPECT_EQ(status_of_child([&] {
              std::array wanted{&out};
              ::_exit(container_.low()->take(wanted) ? 42 : 1);
            }),
            42);
  writing_.reset();
  char text[8];
  EXPECT_EQ(::read(reading_.get(), text, sizeof text), 0);  // would wait for ever
}

TEST_F(LowDescriptorsTest, WhatIsNotOpenCannotBeTaken) {
  int closed = 500;
  EXPECT_EQ(status_of_child([&] {
              std::array wanted{&closed};
              ::_exit(container_.low()->take(wanted) ? 1 : 42);
            }),
            42);
}

}  // namespace
}  // namespace berth::step
