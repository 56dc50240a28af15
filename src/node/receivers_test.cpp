// Files on their way into jobs: how many, whose end they have, what is found after a restart.
#include "node/receivers.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include "node/agent_test_fixture.h"
#include "step/container.h"

namespace berth::node {
namespace {

using testing::HasSubstr;

TEST(Receivers, NumbersAreUsedAgainAndThereAreNotMany) {
  std::set<unsigned> taken;
  for (unsigned number = 1; number <= kMostReceivers; ++number) {
    EXPECT_EQ(free_receiver_number(taken), number);
    taken.insert(number);
  }
  EXPECT_EQ(free_receiver_number(taken), std::nullopt);
  taken.erase(3);
  EXPECT_EQ(free_receiver_number(taken), 3U);
}

TEST(Receivers, RecordsAreFoundByTheirNames) {
  struct Case {
    const char* name;
    std::optional<ReceiverKey> key;
  };
  for (const Case& c : {
           Case{"file.5.1.2", ReceiverKey{.job = 5, .attempt = 1, .number = 2}},
           Case{"file.4294967295.4294967295.16",
                ReceiverKey{.job = UINT32_MAX, .attempt = UINT32_MAX, .number = 16}},
           Case{"file.4294967296.1.1", std::nullopt},
           Case{"file.5.1.0", std::nullopt},
           Case{"file.5.1.17", std::nullopt},
           Case{"file.5.1", std::nullopt},
           Case{"file.5.1.2.d", std::nullopt},
           Case{"file.5.1.2x", std::nullopt},
           Case{"file.-5.1.2", std::nullopt},
           Case{"file.", std::nullopt},
           Case{"step.5.1.2", std::nullopt},
           Case{"job.5.1", std::nullopt},
       }) {
    EXPECT_EQ(read_receiver_record_name(c.name), c.key) << c.name;
    if (c.key) {
      EXPECT_EQ(receiver_record_name(c.key->job, c.key->attempt, c.key->number), c.name);
    }
  }
}

class ReceiversTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    std::filesystem::create_directory(directory_ + "/to");
  }
  void TearDown() override {
    for (const pid_t pid : pids()) ::kill(pid, SIGCONT);
    AgentTest::TearDown();
  }
  void begin() {
    tell(begin_job());
    ASSERT_TRUE(until([&] { return begun_.has_value(); }));
  }
  /// As sbcast, with the first half of a file.
  net::Client send_half(const std::string& name, std::uint32_t attempt = 1) {
    wire::AccessSpec spec;
    spec.set_job_id(7);
    spec.set_attempt(attempt);
    spec.set_node("n0");
    spec.set_purpose("file");
    spec.set_uid(::getuid());
    spec.set_gid(::getgid());
    spec.set_expires(std::time(nullptr) + 300);
    wire::PutFile put;
    *put.mutable_ticket() = auth::sign_ticket("n0", spec, kKey);
    put.set_path(directory_ + "/to/" + name);
    put.set_mode(0600);
    auto client = net::Client::connect(
        net::Address::unix_socket(net::node_socket(directory_ + "/run")), kLong);
    EXPECT_TRUE(client);
    client->queue(put);
    wire::FileBlock block;
    block.set_data("one half,");
    client->queue(block);
    EXPECT_TRUE(client->flush());
    return std::move(*client);
  }
  /// "" or why not.
  std::string answer(net::Client& client) {
    std::optional<std::string> text;
    EXPECT_TRUE(until([&] {
      const auto frame = client.try_receive();
      if (!frame) text = std::string(frame.error().what());
      if (frame && *frame) {
        const auto done = net::Client::reply_in<wire::Done>(**frame);
        text = done ? "" : std::string(done.error().what());
      }
      return text.has_value();
    }));
    return text.value_or("nothing");
  }
  std::string send_rest(net::Client& client) {
    wire::FileBlock block;
    block.set_data(" and the other");
    block.set_end(true);
    client.queue(block);
    EXPECT_TRUE(client.flush());
    return answer(client);
  }
  std::string record(unsigned number) {
    return directory_ + "/spool/n0/" + receiver_record_name(7, 1, number);
  }
  /// Of receivers, by their records.
  std::vector<pid_t> pids() {
    std::vector<pid_t> all;
    for (unsigned number = 1; number <= kMostReceivers; ++number) {
      for (const pid_t pid : step::processes_holding(record(number), step::kRecordDescriptor)) {
        all.push_back(pid);
      }
    }
    return all;
  }
  bool wait_for_receivers(std::size_t count) {
    return until([&] { return pids().size() == count; });
  }
  bool wait_for_file(pid_t pid) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
    return until([&] {
      std::error_code gone;
      for (const auto& entry : std::filesystem::directory_iterator(folder, gone)) {
        const auto target = std::filesystem::read_symlink(entry.path(), gone);
        if (target.string().starts_with(directory_ + "/to/")) return true;
      }
      return false;
    });
  }
  [[nodiscard]] bool nothing_there() const { return std::filesystem::is_empty(directory_ + "/to"); }
};

TEST_F(ReceiversTest, AFileArrivesAndItsReceiverIsForgotten) {
  begin();
  auto client = send_half("file");
  ASSERT_TRUE(wait_for_receivers(1));
  EXPECT_EQ(send_rest(client), "");
  EXPECT_EQ(file("to/file"), "one half, and the other");
  EXPECT_TRUE(until([&] { return !std::filesystem::exists(record(1)); }));
}

TEST_F(ReceiversTest, AJobDoesNotEndBeforeItsReceiversAreGone) {
  begin();
  auto client = send_half("file");
  ASSERT_TRUE(wait_for_receivers(1));
  const pid_t pid = pids().front();
  ASSERT_TRUE(wait_for_file(pid));
  const auto began = net::Clock::now();
  end_job();
  ASSERT_TRUE(until([&] { return gone_.has_value(); }));
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_LT(net::Clock::now() - began, std::chrono::seconds(10));  // KillWait is no matter of it
  EXPECT_TRUE(nothing_there());
  EXPECT_FALSE(std::filesystem::exists(record(1)));
  EXPECT_EQ(answer(client), "Job/step already completing or completed");
}

TEST_F(ReceiversTest, TheLeaseOfAJobEndsItsReceivers) {
  lease_ = 4;
  begin();
  auto client = send_half("file");
  ASSERT_TRUE(wait_for_receivers(1));
  ASSERT_TRUE(wait_for_file(pids().front()));
  deaf_ = true;
  EXPECT_EQ(answer(client), "Job/step already completing or completed");
  EXPECT_TRUE(until([&] { return pids().empty(); }));
  EXPECT_TRUE(nothing_there());
  deaf_ = false;
  registration_.reset();
  if (agent_link_) agent_link_->abort();
  EXPECT_TRUE(until([&] { return registration_.has_value() && gone_.has_value(); }));
}

TEST_F(ReceiversTest, AStoppedReceiverIsKilledWithItsJob) {
  begin();
  auto client = send_half("file");
  ASSERT_TRUE(wait_for_receivers(1));
  const pid_t pid = pids().front();
  ASSERT_TRUE(wait_for_file(pid));
  ::kill(pid, SIGSTOP);
  end_job();
  ASSERT_TRUE(until([&] { return gone_.has_value(); }));
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_TRUE(nothing_there());
}

/// Nothing in a test hangs in the kernel: of one whose record somebody else holds locked as well,
/// the next agent knows that it is not gone, whatever it kills.
TEST_F(ReceiversTest, AJobIsKeptUntilOneOfAnEarlierAgentIsGone) {
  begin();
  agent_.reset();
  const Fd held(::open(record(1).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(held.get(), LOCK_EX | LOCK_NB), 0);
  start_agent();
  end_job(true);
  bool waited = false;
  loop_.after(std::chrono::seconds(1), [&] { waited = true; });
  ASSERT_TRUE(until([&] { return waited; }));
  EXPECT_FALSE(gone_.has_value());
  EXPECT_TRUE(std::filesystem::exists(record(1)));
  ::flock(held.get(), LOCK_UN);
  EXPECT_TRUE(until([&] { return gone_.has_value(); }));
  EXPECT_FALSE(std::filesystem::exists(record(1)));
}

TEST_F(ReceiversTest, OneMoreThanAllowedIsRefusedInWords) {
  begin();
  std::vector<net::Client> clients;
  for (unsigned i = 0; i < kMostReceivers; ++i) {
    clients.push_back(send_half("file" + std::to_string(i)));
  }
  ASSERT_TRUE(wait_for_receivers(kMostReceivers));
  auto more = send_half("more");
  EXPECT_THAT(answer(more), HasSubstr("16 files are on their way to job 7 on n0 already"));
  EXPECT_EQ(send_rest(clients[4]), "");
  ASSERT_TRUE(until([&] { return !std::filesystem::exists(record(5)); }));
  auto again = send_half("more");
  EXPECT_EQ(send_rest(again), "");
  EXPECT_EQ(file("to/more"), "one half, and the other");
}

TEST_F(ReceiversTest, NothingIsTakenForAJobThatEndsOrAnotherAttempt) {
  auto early = send_half("early");
  EXPECT_EQ(answer(early), "Job/step already completing or completed");
  begin();
  auto other = send_half("other", 2);
  EXPECT_EQ(answer(other), "Job/step already completing or completed");
  end_job();
  ASSERT_TRUE(until([&] { return gone_.has_value(); }));
  auto late = send_half("late");
  EXPECT_EQ(answer(late), "Job/step already completing or completed");
  EXPECT_TRUE(nothing_there());
}

TEST_F(ReceiversTest, WithoutItsAgentAReceiverEndsAndTheNextAgentTidiesUp) {
  begin();
  auto client = send_half("file");
  ASSERT_TRUE(wait_for_receivers(1));
  ASSERT_TRUE(wait_for_file(pids().front()));
  agent_.reset();
  EXPECT_THAT(answer(client), HasSubstr("agent"));
  ASSERT_TRUE(wait_for_receivers(0));
  EXPECT_TRUE(nothing_there());
  start_agent();
  EXPECT_TRUE(until([&] { return !std::filesystem::exists(record(1)); }));
  // The job is as it was.
  auto again = send_half("file");
  EXPECT_EQ(send_rest(again), "");
}

TEST_F(ReceiversTest, OneThatHangsIsFoundByTheNextAgentAndKilled) {
  begin();
  auto client = send_half("file");
  ASSERT_TRUE(wait_for_receivers(1));
  const pid_t pid = pids().front();
  ASSERT_TRUE(wait_for_file(pid));
  ::kill(pid, SIGSTOP);
  agent_.reset();
  ASSERT_TRUE(wait_for_receivers(1));
  start_agent();
  EXPECT_TRUE(until([&] { return pids().empty() && !std::filesystem::exists(record(1)); }));
  EXPECT_TRUE(nothing_there());
}

}  // namespace
}  // namespace berth::node
