// How soon a process is killed for want of memory: each test in a process of its own, as one may
// not be allowed back.
#include "step/oom_score.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "step/identity.h"

namespace berth::step {
namespace {

int exit_code_of(const std::function<int()>& child) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(child());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

TEST(OomScore, AnybodyMayMakeItselfKilledSooner) {
  EXPECT_EQ(exit_code_of([] {
              if (!set_oom_score(500)) return 1;
              const StartsUnspared changes_nothing;
              return oom_score() == 500 ? 0 : 2;
            }),
            0);
}

TEST(OomScore, IsPassedOnToNobody) {
  constexpr int kMayNot = 100;
  const int code = exit_code_of([] {
    if (!set_oom_score(kNeverKilled)) return kMayNot;
    {
      const StartsUnspared as_others;
      if (oom_score() != 0) return 1;
    }
    if (oom_score() != kNeverKilled) return 2;
    const Identity who{.uid = ::geteuid(), .gid = ::getegid(), .groups = {::getegid()}};
    if (!who.become()) return 3;
    return oom_score() == 0 ? 0 : 4;
  });
  if (code == kMayNot) GTEST_SKIP() << "needs CAP_SYS_RESOURCE";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace berth::step
