// Files that appear when they are whole, with and without a name until then.
#include "step/new_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/process.h"
#include "step/spool.h"

namespace berth::step {
namespace {

namespace fs = std::filesystem;
using Open = Result<NewFile> (*)(std::string, bool);

class NewFileTest : public testing::TestWithParam<Open> {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/berth-new-file-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    path_ = directory_ + "/file";
  }
  void TearDown() override { fs::remove_all(directory_); }

  static Result<NewFile> open(const std::string& path, bool replace) {
    return GetParam()(path, replace);
  }
  [[nodiscard]] bool nameless() const { return GetParam() == &NewFile::open; }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  std::string directory_;
  std::string path_;
};

INSTANTIATE_TEST_SUITE_P(Ways, NewFileTest,
                         testing::Values(&NewFile::open, &NewFile::open_in_place),
                         [](const auto& which) {
                           return which.param == &NewFile::open ? "WithoutAName" : "InPlace";
                         });

TEST_P(NewFileTest, IsThereWhenItIsFinished) {
  auto file = open(path_, false);
  ASSERT_TRUE(file) << file.error().what();
  ASSERT_TRUE(write_all(file->fd(), "all of it"));
  if (nameless()) {
    EXPECT_EQ(files(), 0U);
  }
  ASSERT_TRUE(file->finish());
  EXPECT_EQ(read_file(path_), "all of it");
  EXPECT_EQ(files(), 1U);
}

TEST_P(NewFileTest, IsGoneWhenItIsNotFinished) {
  {
    auto file = open(path_, false);
    ASSERT_TRUE(file);
    ASSERT_TRUE(write_all(file->fd(), "half of"));
  }
  EXPECT_EQ(files(), 0U);
}

TEST_P(NewFileTest, AnotherFileIsReplacedOnlyWhenThatIsAskedFor) {
  ASSERT_TRUE(write_file(path_, "the old one, which is longer"));
  auto refused = open(path_, false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(std::string(refused.error().what()), testing::EndsWith("file: File exists"));
  EXPECT_EQ(read_file(path_), "the old one, which is longer");
  {
    auto file = open(path_, true);
    ASSERT_TRUE(file);
    ASSERT_TRUE(write_all(file->fd(), "new"));
    if (nameless()) {
      EXPECT_EQ(read_file(path_), "the old one, which is longer");
    }
    ASSERT_TRUE(file->finish());
  }
  EXPECT_EQ(read_file(path_), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_P(NewFileTest, OneThatCameMeanwhileStays) {
  if (!nameless()) GTEST_SKIP() << "it has its name from the beginning";
  auto file = open(path_, false);
  ASSERT_TRUE(file);
  ASSERT_TRUE(write_file(path_, "of somebody else"));
  auto done = file->finish();
  ASSERT_FALSE(done);
  EXPECT_THAT(std::string(done.error().what()), testing::EndsWith("File exists"));
  EXPECT_EQ(read_file(path_), "of somebody else");
}

TEST_P(NewFileTest, WhatIsNoFileIsRefusedAndNotOpened) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  ASSERT_EQ(::symlink("target", (directory_ + "/link").c_str()), 0);
  for (const std::string& path :
       {path_, directory_ + "/link", directory_, std::string("/dev/null")}) {
    for (const bool replace : {false, true}) {
      auto refused = open(path, replace);
      ASSERT_FALSE(refused) << path;
      EXPECT_EQ(std::string(refused.error().what()), path + ": is no regular file");
    }
  }
  EXPECT_FALSE(fs::exists(directory_ + "/target"));
  EXPECT_EQ(files(), 2U);
}

TEST_P(NewFileTest, AFifoThatCameMeanwhileIsNotReplaced) {
  if (!nameless()) GTEST_SKIP() << "it has its name from the beginning";
  auto file = open(path_, true);
  ASSERT_TRUE(file);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(file->finish());
  EXPECT_EQ(files(), 1U);
  EXPECT_TRUE(fs::is_fifo(path_));
}

TEST_P(NewFileTest, WhyItCannotBeMadeIsSaid) {
  auto none = open(directory_ + "/no/such/file", true);
  ASSERT_FALSE(none);
  EXPECT_THAT(std::string(none.error().what()), testing::EndsWith("No such file or directory"));
}

}  // namespace
}  // namespace berth::step
