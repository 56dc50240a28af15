// A relay in a process of its own; the test is its client and the agents of its nodes.
#include "step/relay.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstring>
#include <filesystem>

#include "step/peer.h"
#include "step/supervisor_test_fixture.h"

namespace berth::step {
namespace {

using testing::ElementsAre;

class RelayTest : public testing::Test {
 protected:
  struct Agent {
    Fd listener;
    std::unique_ptr<Peer> relay;  // who dialled
  };

  void SetUp() override {
    std::string pattern = testing::TempDir() + "/berth-relay-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    std::filesystem::remove_all(directory_);
  }

  /// Node i has rank i and an agent of its own.
  void start(int nodes, std::uint32_t width) {
    wire::SuperviseRelay order;
    order.set_uid(::getuid());
    order.set_gid(::getgid());
    order.mutable_relay()->set_width(width);
    order.mutable_relay()->add_programs()->add_argv("true");
    for (int i = 0; i < nodes; ++i) {
      const std::string path = directory_ + "/n" + std::to_string(i);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
      Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
                0);
      ASSERT_EQ(::listen(listener.get(), 4), 0);
      agents_.push_back({std::move(listener), nullptr});
      wire::RelayNode& node = *order.mutable_relay()->add_nodes();
      node.mutable_ticket()->set_node("n" + std::to_string(i));
      node.mutable_address()->set_unix_path(path);
      node.add_ranks(static_cast<std::uint32_t>(i));
    }
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(pair[0]);
      for (Agent& agent : agents_) agent.listener.reset();
      ::_exit(run_relay(std::move(order), Fd(pair[1])));
    }
    ::close(pair[1]);
    client_ = std::make_unique<Peer>(Fd(pair[0]));
  }

  /// Waits for the first frame that an agent hears.
  template <class M>
  std::optional<M> first(std::size_t agent) {
    std::optional<M> got;
    eventually([&] {
      if (!agents_[agent].relay) {
        Fd fd(::accept4(agents_[agent].listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!fd) return false;
        agents_[agent].relay = std::make_unique<Peer>(std::move(fd));
      }
      return take(*agents_[agent].relay, got);
    });
    return got;
  }
  template <class M>
  bool take(Peer& peer, std::optional<M>& got) {
    peer.read();
    const auto frame = peer.next();
    if (!frame) return false;
    EXPECT_EQ(frame->kind, wire::KindOf<M>::value) << wire::name_of(frame->kind);
    got = wire::decode<M>(frame->payload);
    return true;
  }
  /// The next frame that a peer hears.
  template <class M>
  std::optional<M> next(Peer& peer) {
    std::optional<M> got;
    eventually([&] { return take(peer, got); });
    return got;
  }
  template <class M>
  void say(Peer& peer, const M& message) {
    peer.send(message);
    EXPECT_TRUE(peer.flush());
  }
  void node_runs(std::size_t node) {
    ASSERT_TRUE(first<wire::Launch>(node));
    wire::LaunchReply reply;
    reply.add_ranks(static_cast<std::uint32_t>(node));
    say(*agents_[node].relay, reply);
    const auto told = next<wire::LaunchReply>(*client_);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->node(), "n" + std::to_string(node));
  }
  bool relay_gone() {
    return eventually([&] { return ::waitpid(pid_, nullptr, WNOHANG) == pid_; }) &&
           (pid_ = 0, true);
  }
  /// The other end of an agent's connection was closed.
  bool hung_up(std::size_t node) {
    return eventually([&] {
      while (agents_[node].relay->next()) {
      }
      return !agents_[node].relay->read();
    });
  }

  std::string directory_;
  pid_t pid_ = 0;
  std::vector<Agent> agents_;
  std::unique_ptr<Peer> client_;
};

TEST_F(RelayTest, LaunchesItsOwnNodeAndPassesSharesOn) {
  start(6, 2);
  const auto own = first<wire::Launch>(0);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->ticket().node(), "n0");
  const auto left = first<wire::Relay>(1);
  const auto right = first<wire::Relay>(4);
  ASSERT_TRUE(left && right);
  EXPECT_EQ(left->nodes_size(), 3);
  EXPECT_EQ(right->nodes_size(), 2);
  EXPECT_EQ(right->nodes(1).ticket().node(), "n5");
}

TEST_F(RelayTest, CarriesFramesBothWaysAndEndsWithTheLastNode) {
  start(2, 4);
  node_runs(0);
  node_runs(1);
  wire::Input input;
  input.set_data("to all");
  say(*client_, input);
  for (const std::size_t node : {0, 1}) {
    const auto got = next<wire::Input>(*agents_[node].relay);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->data(), "to all");
  }
  input.set_rank(1);
  input.set_data("to one");
  say(*client_, input);
  wire::SignalTasks signal;
  signal.set_signal(SIGUSR1);
  say(*client_, signal);
  EXPECT_EQ(next<wire::Input>(*agents_[1].relay)->data(), "to one");
  EXPECT_TRUE(next<wire::SignalTasks>(*agents_[1].relay));
  EXPECT_TRUE(next<wire::SignalTasks>(*agents_[0].relay));  // and no input before it

  wire::Output output;
  output.set_rank(1);
  output.set_data("said\n");
  say(*agents_[1].relay, output);
  EXPECT_EQ(next<wire::Output>(*client_)->data(), "said\n");
  for (const std::size_t node : {0, 1}) {
    wire::NodeDone done;
    done.set_node("n" + std::to_string(node));
    say(*agents_[node].relay, done);
    EXPECT_EQ(next<wire::NodeDone>(*client_)->node(), done.node());
  }
  client_->close();
  EXPECT_TRUE(relay_gone());
}

TEST_F(RelayTest, ANodeThatGoesIsNamed) {
  start(3, 4);
  for (const std::size_t node : {0, 1, 2}) node_runs(node);
  agents_[1].relay->close();
  const auto lost = next<wire::NodeLost>(*client_);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->node(), "n1");
}

TEST_F(RelayTest, ARelayBelowThatGoesTakesItsNodesAlong) {
  start(4, 1);  // n0 itself, and n1 with n2 and n3
  ASSERT_TRUE(first<wire::Relay>(1));
  wire::LaunchReply reply;
  reply.set_node("n2");
  say(*agents_[1].relay, reply);
  ASSERT_TRUE(next<wire::LaunchReply>(*client_));
  agents_[1].relay->close();
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    if (const auto lost = next<wire::NodeLost>(*client_)) names.push_back(lost->node());
  }
  EXPECT_THAT(names, ElementsAre("n1", "n2", "n3"));
}

TEST_F(RelayTest, AClientThatVanishesEndsItAndEverythingBelow) {
  start(3, 4);
  for (const std::size_t node : {0, 1, 2}) node_runs(node);
  client_->close();
  EXPECT_TRUE(relay_gone());
  for (const std::size_t node : {0, 1, 2}) EXPECT_TRUE(hung_up(node));
}

TEST_F(RelayTest, NodesThatDidNotAnswerAreGivenUpWhenToldTo) {
  start(2, 4);
  node_runs(0);
  ASSERT_TRUE(first<wire::Launch>(1));
  say(*client_, wire::GiveUpStarting());
  EXPECT_TRUE(hung_up(1));
  wire::NodeDone done;
  done.set_node("n0");
  say(*agents_[0].relay, done);
  ASSERT_TRUE(next<wire::NodeDone>(*client_));
  client_->close();
  EXPECT_TRUE(relay_gone());
}

TEST_F(RelayTest, ASlowClientHoldsTheNodesBack) {
  start(1, 4);
  node_runs(0);
  wire::Output output;
  output.set_data(std::string(64 * 1024, 'x'));
  const std::string frame = wire::framed(output);
  Peer& node = *agents_[0].relay;
  // Far more than all buffers on the way; the relay must stop reading long before.
  constexpr std::size_t kMuch = 64U << 20U;
  std::size_t sent = 0;
  int stuck = 0;
  while (sent < kMuch && stuck < 40) {
    if (node.backlog() == 0) {
      node.send_bytes(frame);
      sent += frame.size();
    }
    ASSERT_TRUE(node.flush());
    if (node.backlog() > 0) {
      ++stuck;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } else {
      stuck = 0;
    }
  }
  EXPECT_LT(sent, kMuch / 4);
}

}  // namespace
}  // namespace berth::step
