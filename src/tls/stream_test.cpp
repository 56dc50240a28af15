#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tls/authority.h"
#include "tls/context.h"
#include "tls/handover.h"

namespace berth::tls {
namespace {

class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    char name[] = "/tmp/berth-tls-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  ~TlsTest() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] Authority authority(const std::string& file = "a.pem") const {
    return std::move(*Authority::load_or_create(directory_ + "/" + file, "test"));
  }
  [[nodiscard]] static Identity node(const Authority& authority, const std::string& name) {
    const auto key = *make_key();
    return {key.key, authority.issue_node(key.wish, {name})->certificate};
  }
  std::string directory_;
};

struct Pair {
  std::string to_server, to_client;  // raw
  std::string at_server, at_client;  // plain
  Result<void> server_says, client_says;
};

/// Bytes go to and fro until there are none.
template <class Client, class Server>
Pair talk(Client& client, Server& server) {
  Pair p;
  client.begin(p.to_server);
  for (int round = 0; round < 10 && (!p.to_server.empty() || !p.to_client.empty()); ++round) {
    const std::string up = std::exchange(p.to_server, {});
    if (p.server_says) p.server_says = server.take(up, p.at_server, p.to_client);
    const std::string down = std::exchange(p.to_client, {});
    if (p.client_says) p.client_says = client.take(down, p.at_client, p.to_server);
  }
  return p;
}

TEST_F(TlsTest, ACallerBelievesItsOwnAuthorityOnly) {
  const Authority own = authority();
  const Authority other = authority("b.pem");
  const auto serving = *Context::controller(*own.issue_controller("ctl"), own.certificate());
  for (const bool good : {true, false}) {
    Stream server = serving.open();
    Stream client = Context::caller((good ? own : other).certificate())->open();
    std::string out;
    client.put("secret", out);
    EXPECT_EQ(out, "");
    const Pair p = talk(client, server);
    EXPECT_EQ(client.established(), good);
    EXPECT_EQ(p.at_server, good ? "secret" : "");
    EXPECT_EQ(p.client_says.has_value(), good);
    EXPECT_EQ(server.certificate(), "");
  }
}

/// A session that is made, and what its client then says in `count` records.
struct Said {
  std::optional<Stream> server;
  std::string handshake;  // of the client
  std::vector<std::string> records;
};

Said say_records(const Context& serving, const Context& calling, const std::string& key,
                 int count) {
  Said said;
  said.server.emplace(serving.open());
  Stream client = calling.open("k", key);
  client.begin(said.handshake);
  std::string up = said.handshake;
  std::string plain;
  for (int round = 0; round < 4 && !up.empty(); ++round) {
    std::string down;
    EXPECT_TRUE(said.server->take(up, plain, down));
    up.clear();
    EXPECT_TRUE(client.take(down, plain, up));
  }
  EXPECT_TRUE(said.server->established());
  for (int i = 0; i < count; ++i) {
    client.put("record " + std::to_string(i) + std::string(40, '.'), said.records.emplace_back());
  }
  return said;
}

/// What a server believes of these bytes.
std::string believed(Said& said, const std::string& raw) {
  std::string plain;
  std::string out;
  (void)said.server->take(raw, plain, out);
  return plain;
}

TEST_F(TlsTest, NothingThatWasChangedAddedLeftOutOrSentTwiceIsBelieved) {
  const std::string key(32, 'k');
  const auto serving = *Context::keyed_server(
      [&](std::string_view name) { return name == "k" ? std::optional(key) : std::nullopt; });
  const auto calling = *Context::keyed_caller();
  const auto fresh = [&] { return say_records(serving, calling, key, 3); };
  Said whole = fresh();
  const std::string first = "record 0" + std::string(40, '.');
  const std::string second = "record 1" + std::string(40, '.');
  ASSERT_EQ(believed(whole, whole.records[0] + whole.records[1]), first + second);

  // Each bit of a record, its head among them: what comes before is believed, it is not.
  const std::size_t bits = whole.records[1].size() * 8;
  const std::size_t step = std::getenv("BERTH_SOAK") != nullptr ? 1 : 7;
  for (std::size_t bit = 0; bit < bits; bit += step) {
    Said said = fresh();
    std::string changed = said.records[1];
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    const std::string got = believed(said, said.records[0] + changed + said.records[2]);
    EXPECT_EQ(got, first) << "bit " << bit;
  }
  // Bytes behind it, or within it.
  for (std::size_t more = 1; more <= 4096; more *= 2) {
    Said said = fresh();
    EXPECT_EQ(believed(said, said.records[0] + std::string(more, '\x17') + said.records[1]), first)
        << more;
    Said within = fresh();
    std::string longer = within.records[0] + std::string(more, 'x');
    const std::size_t size = longer.size() - 5;
    longer[3] = static_cast<char>(size >> 8);
    longer[4] = static_cast<char>(size & 0xff);
    EXPECT_EQ(believed(within, longer), "") << more;
  }
  Said twice = fresh();
  EXPECT_EQ(believed(twice, twice.records[0] + twice.records[0]), first);
  Said left_out = fresh();
  EXPECT_EQ(believed(left_out, left_out.records[1]), "");
  Said turned = fresh();
  EXPECT_EQ(believed(turned, turned.records[0] + turned.records[2]), first);
  Said cut = fresh();
  EXPECT_EQ(believed(cut, cut.records[0].substr(0, cut.records[0].size() - 1)), "");
  // Of another session with the same key.
  Said one = fresh();
  Said other = fresh();
  EXPECT_EQ(believed(one, other.records[0]), "");
  Said again = fresh();
  EXPECT_EQ(believed(again, again.handshake), "");
}

TEST_F(TlsTest, ANodeIsKnownByItsCertificate) {
  const Authority own = authority();
  const auto serving = *Context::controller(*own.issue_controller("ctl"), own.certificate());
  Stream server = serving.open();
  Stream client = Context::node(node(own, "n7"), own.certificate())->open();
  talk(client, server);
  ASSERT_TRUE(server.established());
  const auto bearer = bearer_of(server.certificate());
  ASSERT_TRUE(bearer);
  EXPECT_EQ(bearer->nodes, std::vector<std::string>{"n7"});
  EXPECT_EQ(bearer->serial.size(), 32U);
}

TEST_F(TlsTest, ANodeOfAnotherAuthorityIsRefused) {
  const Authority own = authority();
  const Authority other = authority("b.pem");
  const auto serving = *Context::controller(*own.issue_controller("ctl"), own.certificate());
  Stream server = serving.open();
  Stream client = Context::node(node(other, "n7"), own.certificate())->open();
  const Pair p = talk(client, server);
  EXPECT_FALSE(p.server_says.has_value());
  EXPECT_FALSE(server.established());
}

TEST_F(TlsTest, ANodeCannotPoseAsTheController) {
  const Authority own = authority();
  const auto posing = *Context::controller(node(own, "n7"), own.certificate());
  Stream server = posing.open();
  Stream client = Context::caller(own.certificate())->open();
  const Pair p = talk(client, server);
  EXPECT_FALSE(p.client_says.has_value());
  EXPECT_FALSE(client.established());
}

TEST_F(TlsTest, AJoiningHostKnowsTheFingerprintOnly) {
  const Authority own = authority();
  const auto serving = *Context::controller(*own.issue_controller("ctl"), own.certificate());
  for (const bool good : {true, false}) {
    Stream server = serving.open();
    Stream client = Context::joining(good ? own.fingerprint() : std::string(64, '0'))->open();
    talk(client, server);
    EXPECT_EQ(client.established(), good);
  }
}

TEST_F(TlsTest, TheAuthorityIsReadAgainAndItsFileIsPrivate) {
  const std::string first = authority().fingerprint();
  EXPECT_EQ(authority().fingerprint(), first);
  std::filesystem::permissions(directory_ + "/a.pem", std::filesystem::perms(0644));
  EXPECT_FALSE(Authority::load_or_create(directory_ + "/a.pem", "test"));
}

TEST_F(TlsTest, BothEndsHaveOneBindingAndNoOtherSessionHasIt) {
  const Authority own = authority();
  const auto serving = *Context::controller(*own.issue_controller("ctl"), own.certificate());
  const auto calling = *Context::caller(own.certificate());
  Stream s1 = serving.open(), c1 = calling.open(), s2 = serving.open(), c2 = calling.open();
  talk(c1, s1);
  talk(c2, s2);
  EXPECT_EQ(c1.binding("x"), s1.binding("x"));
  EXPECT_NE(c1.binding("x"), c2.binding("x"));
  EXPECT_NE(c1.binding("x"), c1.binding("y"));
}

TEST_F(TlsTest, AKeyedServerTakesThoseWhoKnowTheKey) {
  const std::string key(32, 'k');
  const auto server_context =
      *Context::keyed_server([&](std::string_view name) -> std::optional<std::string> {
        if (name != "step") return std::nullopt;
        return key;
      });
  struct Row {
    const char* name;
    std::string key;
    bool good;
  };
  for (const Row& row : {Row{"step", key, true}, Row{"step", std::string(32, 'x'), false},
                         Row{"other", key, false}}) {
    Stream server = server_context.open();
    Stream client = Context::keyed_caller()->open(row.name, row.key);
    std::string out;
    client.put("run this", out);
    const Pair p = talk(client, server);
    EXPECT_EQ(client.established(), row.good);
    EXPECT_EQ(p.at_server, row.good ? "run this" : "");
    if (row.good) {
      EXPECT_EQ(server.key_name(), "step");
    }
  }
}

TEST_F(TlsTest, AKeyedCallerRefusesACertificate) {
  const Authority own = authority();
  const auto serving = *Context::controller(*own.issue_controller("ctl"), own.certificate());
  Stream server = serving.open();
  Stream client = Context::keyed_caller()->open("step", std::string(32, 'k'));
  const Pair p = talk(client, server);
  EXPECT_FALSE(client.established());
  EXPECT_FALSE(p.client_says.has_value());
}

/// The agent's side of a hand-over, then the supervisor's.
struct Served {
  Stream agent;
  std::optional<Stream> supervisor = {};
  std::string request = {};
  std::string plain = {};
  bool refuse = false;

  Result<void> take(std::string_view raw, std::string& /*unused*/, std::string& out) {
    if (supervisor) return supervisor->take(raw, plain, out);
    if (auto done = agent.take(raw, request, out); !done || !agent.ended()) return done;
    if (refuse) {
      agent.put("no", out);
      return {};
    }
    agent.end(out);
    supervisor = *take_over(agent.binding(kHandoverPurpose));
    const std::string rest = agent.rest();
    supervisor->put("hello of the supervisor", out);
    return supervisor->take(rest, plain, out);
  }
};

TEST_F(TlsTest, ASocketIsHandedOver) {
  const std::string key(32, 'k');
  const auto server_context =
      *Context::keyed_server([&](std::string_view) -> std::optional<std::string> { return key; });
  for (const bool refuse : {false, true}) {
    Served served{.agent = server_context.open()};
    served.refuse = refuse;
    auto client = *Handover::open({"step", key}, "launch");
    std::string out;
    client.put("input", out);
    const Pair p = talk(client, served);
    EXPECT_EQ(served.request, "launch");
    EXPECT_EQ(served.plain, refuse ? "" : "input");
    EXPECT_EQ(p.at_client, refuse ? "no" : "hello of the supervisor");
    EXPECT_EQ(client.established(), !refuse);
  }
}

TEST_F(TlsTest, AFlippedBitIsNoticed) {
  const std::string key(32, 'k');
  const auto server_context =
      *Context::keyed_server([&](std::string_view) -> std::optional<std::string> { return key; });
  Stream server = server_context.open();
  Stream client = Context::keyed_caller()->open("step", key);
  talk(client, server);
  std::string raw, plain, out;
  client.put("frame", raw);
  raw[raw.size() / 2] = static_cast<char>(raw[raw.size() / 2] ^ 1);
  EXPECT_FALSE(server.take(raw, plain, out));
  EXPECT_EQ(plain, "");
}

}  // namespace
}  // namespace berth::tls
