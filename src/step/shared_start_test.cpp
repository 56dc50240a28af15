// A process that shares memory until it runs its program, and the environment it is given.
#include "step/shared_start.h"

#include <gmock/gmock.h>
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

TEST(SharedStart, TheCallerGoesOnWhenTheProgramRuns) {
  Container container("");
  for (int i = 0; i < 3; ++i) {
    std::string text = "exit " + std::to_string(i + 4);
    char* argv[] = {const_cast<char*>("sh"), const_cast<char*>("-c"), text.data(), nullptr};
    char* none[] = {nullptr};
    const pid_t pid = container.start_sharing([&] { ::execve("/bin/sh", argv, none); });
    ASSERT_GT(pid, 0);
    EXPECT_EQ(WEXITSTATUS(status_of(pid)), i + 4);
  }
}

TEST(SharedStart, AChildThatCannotRunItsProgramEndsAlone) {
  Container container("");
  const pid_t parent = ::getpid();
  const pid_t pid = container.start_sharing([&] { ::_exit(::getppid() == parent ? 9 : 8); });
  ASSERT_GT(pid, 0);
  EXPECT_EQ(WEXITSTATUS(status_of(pid)), 9);
  const pid_t returned = container.start_sharing([] {});
  EXPECT_EQ(WEXITSTATUS(status_of(returned)), 127);
}

TEST(SharedStart, ADescriptorThatIsNoCgroupIsAnError) {
  const auto stack = BorrowedStack::make();
  if (!stack) GTEST_SKIP() << "this build starts tasks by fork";
  EXPECT_EQ(stack->start(STDIN_FILENO + 1000, [] {}), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(StepEnvironmentBlock, HasWhatTheMapHas) {
  EnvironmentBlock block({{"A", "1"}, {"AB", ""}, {"B", "x=y"}});
  char other[] = "A=2";
  block.replace(other);
  std::vector<std::string> words;
  for (char** at = block.get(); *at != nullptr; ++at) words.emplace_back(*at);
  EXPECT_THAT(words, testing::ElementsAre("A=2", "AB=", "B=x=y"));
  EXPECT_EQ(*EnvironmentBlock().get(), nullptr);
}

}  // namespace
}  // namespace berth::step
