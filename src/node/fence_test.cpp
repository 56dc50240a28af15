// What was begun is known after a crash of the machine.
#include "node/fence.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>

namespace berth::node {
namespace {

class FenceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/berth-fence-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<Fence> open(const std::string& boot) {
    auto fence = Fence::open(directory_ + "/begun.log", boot);
    EXPECT_TRUE(fence) << (fence ? "" : fence.error().what());
    return fence ? std::move(*fence) : nullptr;
  }
  static std::string begin(Fence& fence, const Begun& what) {
    std::promise<std::string> stored;
    fence.begin(what, [&](std::string trouble) { stored.set_value(std::move(trouble)); });
    return stored.get_future().get();
  }
  std::string directory_;
};

TEST_F(FenceTest, WhatWasBegunUnderAnotherBootIsLost) {
  const Begun job{.node = "n0", .job = 1, .attempt = 1, .step = {}};
  const Begun step{.node = "n0", .job = 1, .attempt = 1, .step = 0};
  const Begun other{.node = "n0", .job = 2, .attempt = 1, .step = {}};
  {
    auto fence = open("first");
    EXPECT_EQ(begin(*fence, job), "");
    EXPECT_EQ(begin(*fence, step), "");
    EXPECT_EQ(begin(*fence, other), "");
    fence->forget(other);
  }
  EXPECT_TRUE(open("first")->lost().empty());
  EXPECT_EQ(open("second")->lost(), (std::set<Begun>{job, step}));
  {
    auto fence = open("second");
    fence->forget(job);
  }
  EXPECT_TRUE(open("third")->lost().empty());
}

}  // namespace
}  // namespace berth::node
