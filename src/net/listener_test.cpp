#include "net/listener.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <thread>

#include "net/client.h"
#include "net/test_fixture.h"

namespace berth::net {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);

/// Answers Ping with Pong.
class Server : public LoopTest {
 protected:
  Result<std::unique_ptr<Listener>> listen(const Address& address, Listener::Options options) {
    return Listener::open(loop, address, options, [this](std::shared_ptr<Connection> c) {
      ++accepted;
      c->start({.on_frame =
                    [this](Connection& peer, const wire::Frame& frame) {
                      if (frame.kind == wire::Kind::Beat) peer.keep();
                      if (frame.kind == wire::Kind::Ping) peer.send(wire::Pong{});
                      ++frames;
                    },
                .on_closed = [this](Connection&, std::string_view) { ++closed; },
                .on_drained = {}});
    });
  }
  /// Connections that say `bytes` and no more.
  std::vector<Client> crowd(const Address& address, std::size_t count, std::string_view bytes) {
    std::vector<Client> made;
    for (std::size_t i = 0; i < count; ++i) {
      auto client = Client::connect(address, kPatience);
      EXPECT_TRUE(client);
      if (!client) break;
      client->queue_bytes(bytes);
      EXPECT_TRUE(client->flush());
      made.push_back(std::move(*client));
      if (i % 64 == 0) loop.run_once(std::chrono::milliseconds(0));
    }
    return made;
  }
  /// Whether a fresh client is served.
  bool served(const Address& address) {
    bool good = false;
    bool over = false;
    std::thread asks([&] {
      auto client = Client::connect(address, kPatience);
      good = client && client->ask<wire::Pong>(wire::Ping{}, kPatience);
      loop.post([&] { over = true; });
    });
    until([&] { return over; });
    asks.join();
    return good;
  }
  int accepted = 0;
  int closed = 0;
  int frames = 0;
};

TEST_F(Server, ReplacesAStaleSocketAndRespectsALivingOne) {
  const Address address = Address::unix_socket(path("s"));
  {
    const Fd dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    auto place = resolve(address);
    ASSERT_EQ(::bind(dead.get(), place->get(), place->size), 0);
  }
  auto first = listen(address, {.mode = 0720});
  ASSERT_TRUE(first);
  struct stat status{};
  ASSERT_EQ(::stat(address.path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0720U);
  EXPECT_FALSE(listen(address, {}));
  EXPECT_TRUE(served(address));
  first->reset();
  EXPECT_NE(::stat(address.path.c_str(), &status), 0);
}

TEST_F(Server, ServesOthersWhileHundredsAreSilentOrSlow) {
  const Address address = Address::unix_socket(path("s"));
  auto listener = listen(address, {.most = 200});
  ASSERT_TRUE(listener);
  const auto silent = crowd(address, 300, "");
  const auto slow = crowd(address, 100, wire::framed(wire::Ping{}).substr(0, 1));
  EXPECT_TRUE(served(address));
  EXPECT_LE((*listener)->evictable(), 200U);
  EXPECT_GE(closed, 200);
}

TEST_F(Server, DropsWhoWasSilentLongestAndNeverWhoMatters) {
  const Address address = Address::unix_socket(path("s"));
  auto listener = listen(address, {.most = 3});
  ASSERT_TRUE(listener);
  auto agent = crowd(address, 1, wire::framed(wire::Beat{}));
  ASSERT_TRUE(until([&] { return frames == 1; }));
  auto silent = crowd(address, 1, "");
  ASSERT_TRUE(until([&] { return accepted == 2; }));
  auto talks = crowd(address, 1, "");
  ASSERT_TRUE(until([&] { return accepted == 3; }));
  silent[0].queue(wire::Ping{});  // heard of later than `talks`, which is the oldest now
  ASSERT_TRUE(silent[0].flush());
  ASSERT_TRUE(until([&] { return frames == 2; }));
  const auto more = crowd(address, 2, "");
  ASSERT_TRUE(until([&] { return accepted == 5; }));
  EXPECT_EQ(closed, 1);
  EXPECT_TRUE(silent[0].receive(kPatience));
  EXPECT_FALSE(talks[0].receive(kPatience));
  EXPECT_EQ(agent[0].receive(std::chrono::milliseconds(0)).error().code, Code::timed_out);
}

TEST_F(Server, GoesOnWhenDescriptorsRunOut) {
  const Address address = Address::unix_socket(path("s"));
  auto listener = listen(address, {.most = 100000});
  ASSERT_TRUE(listener);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int highest = ::dup(0);
  ::close(highest);
  const rlimit few{static_cast<rlim_t>(highest) + 40, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<Client> clients;
  for (int i = 0; i < 30; ++i) {
    auto client = Client::connect(address, kPatience);
    if (!client) break;
    clients.push_back(std::move(*client));
    loop.run_once(std::chrono::milliseconds(0));
  }
  for (int i = 0; i < 50; ++i) loop.run_once(std::chrono::milliseconds(0));
  EXPECT_GT(closed, 0);
  for (int i = 0; i < 3; ++i) clients.pop_back();  // room for the one that asks
  EXPECT_TRUE(served(address));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(Server, OverTcpToo) {
  auto listener = listen(Address::tcp("127.0.0.1", 0), {});
  ASSERT_TRUE(listener);
  ASSERT_NE((*listener)->address().port, 0);
  EXPECT_TRUE(served(Address::tcp("localhost", (*listener)->address().port)));
  // Unknown peers may send no more than kUnknownPeerBytes.
  wire::ListJobs large;
  large.add_names(std::string(wire::kUnknownPeerBytes, 'n'));
  const auto clients = crowd((*listener)->address(), 1, wire::framed(large).substr(0, 6));
  EXPECT_TRUE(until([&] { return closed == 2; }));
}

TEST_F(Server, IsDialledWithoutBlocking) {
  const Address address = Address::unix_socket(path("s"));
  std::string refused;
  Connection::dial(loop, address, kPatience, [&](auto result) {
    refused = result ? "" : std::string(result.error().what());
  });
  EXPECT_TRUE(until([&] { return !refused.empty(); }));
  auto listener = listen(Address::tcp("127.0.0.1", 0), {});
  ASSERT_TRUE(listener);
  bool pong = false;
  Connection::dial(loop, (*listener)->address(), kPatience, [&](auto result) {
    ASSERT_TRUE(result);
    (*result)->start({.on_frame =
                          [&](Connection& c, const wire::Frame& frame) {
                            pong = frame.kind == wire::Kind::Pong;
                            c.close();
                          },
                      .on_closed = {},
                      .on_drained = {}});
    (*result)->send(wire::Ping{});
  });
  EXPECT_TRUE(until([&] { return pong && closed == 1; }));
}

TEST_F(Server, AClientGetsTheRefusalAsItsError) {
  const Address address = Address::unix_socket(path("s"));
  auto listener = Listener::open(loop, address, {}, [&](std::shared_ptr<Connection> c) {
    c->start({.on_frame =
                  [](Connection& peer, const wire::Frame&) {
                    wire::Done done;
                    *done.mutable_refusal() =
                        wire::to_refusal(fail(Code::nodes_busy, "later").error());
                    peer.send(done);
                  },
              .on_closed = {},
              .on_drained = {}});
  });
  ASSERT_TRUE(listener);
  bool over = false;
  Result<wire::JobsReply> reply;
  std::thread asks([&] {
    auto client = Client::connect(address, kPatience);
    reply = client->ask<wire::JobsReply>(wire::ListJobs{}, kPatience);
    loop.post([&] { over = true; });
  });
  until([&] { return over; });
  asks.join();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::nodes_busy);
  EXPECT_EQ(reply.error().what(), "later");
}

}  // namespace
}  // namespace berth::net
