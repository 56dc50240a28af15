// Files of a directory: absent, unreadable, large, and not files at all.
#include "conf/source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

namespace berth::conf {
namespace {

class Directory : public testing::Test {
 protected:
  Directory() {
    std::string name = testing::TempDir() + "berth-conf-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~Directory() override { std::filesystem::remove_all(path_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(path_ / name) << text;
  }
  std::filesystem::path path_;
};

TEST_F(Directory, ReadsWhatIsThere) {
  write("slurm.conf", "ClusterName=x\n");
  const DirectorySource source(path_);
  EXPECT_EQ(source.read("slurm.conf").value(), "ClusterName=x\n");
  EXPECT_EQ(source.read((path_ / "slurm.conf").string()).value(), "ClusterName=x\n");
  EXPECT_EQ(source.read("gres.conf").value(), std::nullopt);
  EXPECT_EQ(source.read("slurm.conf/x").value(), std::nullopt);
}

TEST_F(Directory, RefusesWhatIsNoFile) {
  const DirectorySource source(path_);
  const auto folder = source.read(".");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, Code::io);
  ASSERT_EQ(::mkfifo((path_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(source.read("pipe"));
}

TEST_F(Directory, StopsAtTheBound) {
  write("big", "x");
  std::filesystem::resize_file(path_ / "big", kMaxFileBytes + 1);
  const auto big = DirectorySource(path_).read("big");
  ASSERT_FALSE(big);
  EXPECT_EQ(big.error().code, Code::limit);
}

}  // namespace
}  // namespace berth::conf
