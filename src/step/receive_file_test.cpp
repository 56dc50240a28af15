// A receiver as its agent and its client see it: a process of its own, as always.
#include "step/receive_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>

#include "net/client.h"
#include "step/lease_file.h"
#include "step/spool.h"

namespace berth::step {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using testing::EndsWith;
using testing::HasSubstr;

constexpr auto kPatience = std::chrono::seconds(60);

class ReceiveFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/berth-receive-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = fs::canonical(pattern);
    fs::create_directories(directory_ + "/spool/n0");
    fs::create_directory(directory_ + "/to");
    wire::AccessSpec spec;
    spec.set_uid(::getuid());
    spec.set_gid(::getgid());
    order_.mutable_file()->mutable_ticket()->set_spec(spec.SerializeAsString());
    order_.mutable_file()->set_path(directory_ + "/to/file");
    order_.mutable_file()->set_mode(0640);
    order_.set_record(directory_ + "/spool/n0/file.5.1.1");
  }
  void TearDown() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    fs::remove_all(directory_);
  }
  void start() {
    int agent[2];
    int client[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, agent), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client), 0);
    pid_ = ::fork();
    ASSERT_GE(pid_, 0);
    if (pid_ == 0) {
      ::close(agent[0]);
      ::close(client[0]);
      Peer its_agent((Fd(agent[1])));
      ::_exit(receive_file(order_, its_agent, client[1]));
    }
    ::close(agent[1]);
    ::close(client[1]);
    agent_.reset(agent[0]);
    client_.emplace(Fd(client[0]));
  }
  void send(const std::string& data, bool end) {
    wire::FileBlock block;
    block.set_data(data);
    block.set_end(end);
    ASSERT_TRUE(client_->send(block, kPatience));
  }
  /// "" or why not.
  std::string answer() {
    const auto frame = client_->receive(kPatience);
    if (!frame) return std::string(frame.error().what());
    const auto done = net::Client::reply_in<wire::Done>(*frame);
    return done ? "" : std::string(done.error().what());
  }
  int ended() {
    client_.reset();
    int status = -1;
    const pid_t pid = std::exchange(pid_, 0);
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return status;
  }
  /// Until it waits for more: its file is open then.
  void wait_for_a_file() {
    const std::string folder = "/proc/" + std::to_string(pid_) + "/fd";
    const auto limit = Clock::now() + kPatience;
    for (;;) {
      std::error_code gone;
      for (const auto& entry : fs::directory_iterator(folder, gone)) {
        const fs::path target = fs::read_symlink(entry.path(), gone);
        if (target.string().starts_with(directory_ + "/to/")) return;
      }
      ASSERT_LT(Clock::now(), limit);
      ::usleep(1000);
    }
  }
  [[nodiscard]] bool nothing_there() const { return fs::is_empty(directory_ + "/to"); }

  std::string directory_;
  wire::SuperviseFile order_;
  pid_t pid_ = 0;
  Fd agent_;
  std::optional<net::Client> client_;
};

TEST_F(ReceiveFileTest, AFileComesWithItsModeAndTimes) {
  order_.mutable_file()->set_modified(1'000'000'000);
  order_.mutable_file()->set_accessed(1'100'000'000);
  start();
  const std::string large(3'000'000, 'x');
  send(large, false);
  send("end", true);
  EXPECT_EQ(answer(), "");
  EXPECT_EQ(ended(), 0);
  const std::string path = order_.file().path();
  EXPECT_EQ(read_file(path), large + "end");
  struct stat file = {};
  ASSERT_EQ(::stat(path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, 0640U);
  EXPECT_EQ(file.st_mtime, 1'000'000'000);
}

TEST_F(ReceiveFileTest, TheAgentEndsItAndTheClientIsTold) {
  start();
  send("half of it", false);
  wait_for_a_file();
  const std::string end = wire::framed(wire::SuperviseEnd());
  ASSERT_TRUE(write_all(agent_.get(), end));
  EXPECT_EQ(answer(), "Job/step already completing or completed");
  EXPECT_EQ(WEXITSTATUS(ended()), 1);
  EXPECT_TRUE(nothing_there());
}

TEST_F(ReceiveFileTest, WithoutItsAgentItEnds) {
  start();
  send("half of it", false);
  wait_for_a_file();
  agent_.reset();
  EXPECT_THAT(answer(), HasSubstr("the agent of the node was stopped"));
  EXPECT_EQ(WEXITSTATUS(ended()), 1);
  EXPECT_TRUE(nothing_there());
}

TEST_F(ReceiveFileTest, AnAgentThatWasGoneBeforeIsNoticed) {
  int agent[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, agent), 0);
  ::close(agent[0]);
  Peer gone((Fd(agent[1])));
  pid_ = ::fork();
  ASSERT_GE(pid_, 0);
  if (pid_ == 0) ::_exit(receive_file(order_, gone, -1));
  EXPECT_EQ(WEXITSTATUS(ended()), 1);
  EXPECT_TRUE(nothing_there());
}

TEST_F(ReceiveFileTest, ASenderThatGoesAwayLeavesNothing) {
  start();
  send("half of it", false);
  wait_for_a_file();
  client_.reset();
  EXPECT_EQ(WEXITSTATUS(ended()), 1);
  EXPECT_TRUE(nothing_there());
}

TEST_F(ReceiveFileTest, KilledItLeavesNothing) {
  start();
  send("half of it", false);
  wait_for_a_file();
  ::kill(pid_, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(ended()));
  EXPECT_TRUE(nothing_there());
}

TEST_F(ReceiveFileTest, AFifoIsRefused) {
  ASSERT_EQ(::mkfifo(order_.file().path().c_str(), 0600), 0);
  order_.mutable_file()->set_force(true);
  start();
  EXPECT_THAT(answer(), EndsWith("/file: is no regular file"));
  EXPECT_EQ(WEXITSTATUS(ended()), 1);
}

TEST_F(ReceiveFileTest, ItKeepsToTheLeaseOfItsJobByItself) {
  order_.set_lease_seconds(3);
  start();
  send("half of it", false);
  const auto began = Clock::now();
  EXPECT_THAT(answer(), HasSubstr("lost its controller"));
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(30));
  EXPECT_EQ(WEXITSTATUS(ended()), 1);
  EXPECT_TRUE(nothing_there());
}

TEST_F(ReceiveFileTest, ALeaseThatWasRenewedMeanwhileCounts) {
  // Renewed in an hour: as far as the receiver can see the agent is ahead of it.
  ASSERT_TRUE(
      write_lease_file(directory_ + "/spool/lease", boot_now() + std::chrono::seconds(3600)));
  order_.set_lease_seconds(1);
  start();
  send("half of it, ", false);
  wait_for_a_file();
  ::usleep(1'500'000);  // the lease would be over
  send("and the rest", true);
  EXPECT_EQ(answer(), "");
  EXPECT_EQ(ended(), 0);
}

TEST_F(ReceiveFileTest, WhoCannotEnterItsGroupsReceivesNothing) {
  order_.set_cgroup(directory_ + "/no/such/group");
  start();
  EXPECT_THAT(answer(), HasSubstr("/no/such/group"));
  EXPECT_EQ(WEXITSTATUS(ended()), 1);
  EXPECT_TRUE(nothing_there());
}

}  // namespace
}  // namespace berth::step
