// A process that shares memory until it runs its program, and the environment it is given.
#include "step/shared_start.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "step/container.h"
#include "step/environment.h"

namespace berth::step {
namespace {

int status_of(pid_t pid) {
  int status = -1;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

class SharedStart : public testing::TestWithParam<int> {};

TEST_P(SharedStart, AllRunTheirProgramsAsChildrenOfTheCaller) {
  Container container("");
  const int count = GetParam();
  std::vector<std::string> texts;
  std::vector<std::function<void()>> children;
  for (int i = 0; i < count; ++i) texts.push_back("exit " + std::to_string(i + 4));
  for (std::string& text : texts) {
    children.emplace_back([&text] {
      char* argv[] = {const_cast<char*>("sh"), const_cast<char*>("-c"), text.data(), nullptr};
      char* none[] = {nullptr};
      ::execve("/bin/sh", argv, none);
    });
  }
  const std::vector<pid_t> pids = container.start_sharing(children);
  ASSERT_EQ(pids.size(), children.size());
  for (int i = 0; i < count; ++i) {
    ASSERT_GT(pids[static_cast<std::size_t>(i)], 0);
    EXPECT_EQ(WEXITSTATUS(status_of(pids[static_cast<std::size_t>(i)])), i + 4);
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // who started them is gone
}

INSTANTIATE_TEST_SUITE_P(FewAndMany, SharedStart, testing::Values(0, 1, 8, 16, 23, 24, 67));

TEST(SharedStartOne, ThatCannotRunItsProgramEndsAlone) {
  Container container("");
  const pid_t parent = ::getpid();
  const std::vector<pid_t> pids =
      container.start_sharing({[&] { ::_exit(::getppid() == parent ? 9 : 8); }, [] {}});
  ASSERT_EQ(pids.size(), 2U);
  EXPECT_EQ(WEXITSTATUS(status_of(pids[0])), 9);
  EXPECT_EQ(WEXITSTATUS(status_of(pids[1])), 127);
}

/// Before it runs its program a child belongs to the user already, who can stop it.
TEST(SharedStartOne, ThatIsStoppedDoesNotStopItsParent) {
  for (const std::size_t count : {2U, 24U}) {
    Container container("");
    std::vector<std::function<void()>> children(count, [] { ::_exit(3); });
    children[1] = [] {
      ::kill(::getpid(), SIGSTOP);
      ::_exit(4);
    };
    const std::vector<pid_t> pids = container.start_sharing(children);
    ASSERT_EQ(pids.size(), count);
    if (!BorrowedStack::make()) ::kill(pids[1], SIGKILL);  // a fork: nobody waits for it
    const int stopped = status_of(pids[1]);
    EXPECT_TRUE(WIFSIGNALED(stopped) && WTERMSIG(stopped) == SIGKILL) << stopped;
    EXPECT_EQ(WEXITSTATUS(status_of(pids[0])), 3);
    for (std::size_t i = 2; i < count; ++i) EXPECT_EQ(WEXITSTATUS(status_of(pids[i])), 3);
  }
}

TEST(SharedStartOne, ADescriptorThatIsNoCgroupIsAnError) {
  const auto stack = BorrowedStack::make();
  if (!stack) GTEST_SKIP() << "this build starts tasks by fork";
  EXPECT_EQ(stack->start(STDIN_FILENO + 1000, [] {}), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(StepEnvironmentBlock, HasWhatTheMapHas) {
  const CommonVariables all(Environment{{"A", "1"}, {"AB", ""}, {"B", "x=y"}});
  EnvironmentBlock block{TaskEnvironment(all)};
  char other[] = "A=2";
  block.replace(other);
  std::vector<std::string> words;
  for (char** at = block.get(); *at != nullptr; ++at) words.emplace_back(*at);
  EXPECT_THAT(words, testing::ElementsAre("A=2", "AB=", "B=x=y"));
  EXPECT_EQ(*EnvironmentBlock().get(), nullptr);
}

}  // namespace
}  // namespace berth::step
