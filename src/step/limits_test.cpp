// What comes with a user's request is given as far as the user could have taken it himself.
#include "step/limits.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

namespace berth::step {
namespace {

struct NicenessCase {
  std::uint32_t policy;
  int asked;
  int own;
  bool of_root;
  int given;
};

TEST(NicenessOfTask, IsNeverBetterThanTheSupervisorsExceptForRoot) {
  constexpr NicenessCase kCases[] = {
      // PropagatePrioProcess=0: the command's does not count.
      {0, -20, 0, false, 0},
      {0, 19, 0, false, 0},
      {0, -20, 5, true, 5},
      // 1: it does, but not below the supervisor's.
      {1, -20, 0, false, 0},
      {1, -20, 3, false, 3},
      {1, 7, 0, false, 7},
      {1, -20, 0, true, -20},
      {1, 1000, 0, false, 19},
      // 2: always at least one above.
      {2, -20, 0, false, 1},
      {2, -20, 0, true, 1},
      {2, 7, 0, false, 7},
      {2, 0, 19, false, 19},
  };
  for (const NicenessCase& one : kCases) {
    EXPECT_EQ(niceness_of_task(one.policy, one.asked, one.own, one.of_root), one.given)
        << one.policy << ' ' << one.asked << ' ' << one.own << ' ' << one.of_root;
  }
}

/// Runs in a process of nobody; the exit code is what `look` returns.
int as_nobody(const std::function<int()>& look) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(100);
    ::_exit(look());
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

TEST(LimitsOfAUser, ANegativeNicenessIsRefusedInWords) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const int own = ::getpriority(PRIO_PROCESS, 0);
  EXPECT_EQ(as_nobody([&] {
              const auto lines = set_niceness(1, -20);
              const bool said = std::ranges::any_of(lines, [](const std::string& line) {
                return line.starts_with("Can't propagate a niceness of -20 from submit host");
              });
              return said && ::getpriority(PRIO_PROCESS, 0) == own ? 0 : 1;
            }),
            0);
}

TEST(LimitsOfAUser, ALimitEndsAtTheHardOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  EXPECT_EQ(as_nobody([] {
              rlimit low{.rlim_cur = 100, .rlim_max = 200};
              if (::setrlimit(RLIMIT_NOFILE, &low) != 0) return 1;
              google::protobuf::RepeatedPtrField<wire::Limit> wanted;
              wire::Limit& one = *wanted.Add();
              one.set_name("NOFILE");
              one.set_value(100'000);
              one.set_demanded(true);
              const std::vector<std::string> lines = set_limits(wanted);
              rlimit now{};
              ::getrlimit(RLIMIT_NOFILE, &now);
              if (now.rlim_cur != 200 || now.rlim_max != 200) return 2;
              return lines.size() == 1 && lines[0].starts_with(
                                              "Can't propagate RLIMIT_NOFILE of "
                                              "100000 from submit host")
                         ? 0
                         : 3;
            }),
            0);
}

}  // namespace
}  // namespace berth::step
