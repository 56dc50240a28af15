#include "net/paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "net/address.h"
#include "net/listener.h"
#include "net/pid_file.h"
#include "net/test_fixture.h"

namespace berth::net {
namespace {

class Paths : public LoopTest {
 protected:
  void SetUp() override {
    ::mkdir(path("run").c_str(), 0700);
    std::ofstream(path("slurm.conf")) << "ClusterName=c\n";
    std::ofstream(path("other.conf")) << "ClusterName=c\n";
    // Not root even when the test is: root's paths are fixed.
    who = {.uid = 4242, .runtime_directory = path("run"), .state_home = {}, .home = "/home/u"};
  }
  Surroundings who;
};

TEST_F(Paths, TheKeyIsOfTheRealPath) {
  const std::string key = run_key(path("slurm.conf"));
  EXPECT_EQ(key.size(), 16U);
  EXPECT_EQ(key.find_first_not_of("0123456789abcdef"), std::string::npos);
  std::filesystem::create_symlink(path("slurm.conf"), path("link.conf"));
  EXPECT_EQ(run_key(path("link.conf")), key);
  EXPECT_NE(run_key(path("other.conf")), key);
}

TEST_F(Paths, FollowTheContract) {
  EXPECT_EQ(run_base({.uid = 0}), "/run/berth");
  EXPECT_EQ(run_base(who), path("run") + "/berth");
  EXPECT_EQ(run_base({.uid = 7}), "/tmp/berth-7");
  EXPECT_EQ(default_state_directory({.uid = 0}), "/var/lib/berth/default");
  EXPECT_EQ(default_state_directory(who), "/home/u/.local/state/berth/default");
  who.state_home = "/s";
  EXPECT_EQ(default_state_directory(who), "/s/berth/default");
}

TEST_F(Paths, ADirectoryIsPrivateAndOurs) {
  const std::string made = path("private");
  ASSERT_TRUE(make_private_directory(made, 0700, ::geteuid()));
  struct stat status{};
  ASSERT_EQ(::stat(made.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  ::chmod(made.c_str(), 0777);
  ASSERT_TRUE(make_private_directory(made, 0700, ::geteuid()));
  ASSERT_EQ(::stat(made.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  EXPECT_FALSE(make_private_directory(made, 0700, ::geteuid() + 1));
  std::filesystem::create_directory_symlink(made, path("planted"));
  EXPECT_FALSE(make_private_directory(path("planted"), 0700, ::geteuid()));
}

TEST_F(Paths, AClientFindsTheSocketAlsoThroughTheOtherConf) {
  // Directories of root or of the user are trusted; who runs the test is one of them.
  if (::geteuid() != 0) who.uid = ::geteuid();
  const std::string run = run_directory(path("slurm.conf"), who);
  std::filesystem::create_directories(run);
  ::chmod(run_base(who).c_str(), 0700);
  EXPECT_TRUE(controller_sockets(path("slurm.conf"), who).empty());
  auto listener = Listener::open(loop, Address::unix_socket(controller_socket(run)), {},
                                 [](std::shared_ptr<Connection>) {});
  ASSERT_TRUE(listener);
  EXPECT_EQ(controller_sockets(path("slurm.conf"), who),
            std::vector<std::string>{controller_socket(run)});
  ASSERT_TRUE(link_run_directory(path("slurm.conf"), path("other.conf"), who));
  EXPECT_EQ(controller_sockets(path("other.conf"), who).size(), 1U);
  EXPECT_FALSE(link_run_directory(path("other.conf"), path("slurm.conf"), who));
  ASSERT_TRUE(unlink_run_directory(path("other.conf"), who));
  EXPECT_TRUE(controller_sockets(path("other.conf"), who).empty());
  ::chmod(run_base(who).c_str(), 0777);  // anyone could have put the socket there
  EXPECT_TRUE(controller_sockets(path("slurm.conf"), who).empty());
}

TEST_F(Paths, APidFileIsHeldByOne) {
  const std::string file = path("pid");
  EXPECT_FALSE(PidFile::holder(file));
  {
    auto held = PidFile::take(file);
    ASSERT_TRUE(held);
    EXPECT_EQ(PidFile::holder(file), ::getpid());
    EXPECT_FALSE(PidFile::take(file));
  }
  EXPECT_FALSE(PidFile::holder(file));
  EXPECT_TRUE(PidFile::take(file));
}

TEST(Addresses, AreReadAndPrinted) {
  for (const char* text : {"/run/s.sock", "ctl:6817", "[::1]:6817", ":0"}) {
    auto address = Address::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->text(), text);
  }
  for (const char* text : {"", "ctl", "ctl:", "ctl:65536", "ctl:1x", "::1:6817", "ctl:-1"}) {
    EXPECT_FALSE(Address::parse(text)) << text;
  }
  EXPECT_FALSE(Address::parse("/" + std::string(200, 'x')));
}

}  // namespace
}  // namespace berth::net
