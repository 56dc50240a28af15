// Which agent may serve a node that another one serves.
#include "controller/agents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::controller {
namespace {

Agents::Origin origin(std::string instance, std::string boot, std::string from,
                      std::string host = "h1", const std::string& socket = "") {
  Agents::Origin out{.instance = std::move(instance),
                     .boot_id = std::move(boot),
                     .from = std::move(from),
                     .address = {}};
  if (socket.empty()) {
    out.address.set_host(std::move(host));
    out.address.set_port(6818);
  } else {
    out.address.set_unix_path(socket);
  }
  return out;
}

struct Case {
  const char* what;
  Agents::Origin first;
  Agents::Origin second;
  bool succeeds;
};

TEST(Agents, WhoSucceedsWhom) {
  const Case cases[] = {
      {"it comes back", origin("i", "b", "10.0.0.7"), origin("i", "b", "10.0.0.7"), true},
      {"restarted", origin("i", "b", "10.0.0.7"), origin("j", "b", "10.0.0.7"), true},
      {"a copied machine", origin("i", "b", "10.0.0.7"), origin("j", "c", "10.0.0.8"), false},
      {"and one with its memory", origin("i", "b", "10.0.0.7"), origin("i", "b", "10.0.0.8"),
       false},
      {"a container beside it", origin("i", "b", "10.0.0.7"), origin("j", "b", "10.0.0.8"), false},
      {"behind one router", origin("i", "b", "10.0.0.7"), origin("j", "c", "10.0.0.7"), false},
      {"another name there", origin("i", "b", "10.0.0.7"), origin("j", "b", "10.0.0.7", "h2"),
       false},
      {"of an older berth", origin("", "", "10.0.0.7"), origin("", "", "10.0.0.7"), true},
      {"elsewhere, of an older berth", origin("", "", "10.0.0.7"), origin("", "", "10.0.0.8"),
       false},
      {"one socket", origin("i", "b", "", "", "/run/a"), origin("j", "b", "", "", "/run/a"), true},
      {"two sockets", origin("i", "b", "", "", "/run/a"), origin("j", "b", "", "", "/run/b"),
       false},
      {"the socket and TCP", origin("i", "b", "", "", "/run/a"), origin("j", "b", "10.0.0.7"),
       false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Agents::succeeds(c.first, c.second), c.succeeds) << c.what;
  }
}

TEST(Agents, ASocketOfAnotherMachineIsNone) {
  wire::RegisterNodes message;
  message.mutable_address()->set_unix_path("/tmp/mine");
  message.mutable_address()->set_host("h1");
  EXPECT_EQ(Agents::Origin::of(message, "").address.unix_path(), "/tmp/mine");
  EXPECT_EQ(Agents::Origin::of(message, "10.0.0.7").address.unix_path(), "");
  EXPECT_EQ(Agents::Origin::of(message, "10.0.0.7").address.host(), "h1");
}

TEST(Agents, OfOneCertificateAllThatServeNothingAreTwins) {
  Agents agents;
  const auto arrive = [&](Peer peer, const char* certificate) {
    agents.arrived(peer, {}, origin("i", "b", "10.0.0.7"), {}).certificate = certificate;
  };
  arrive(1, "a");
  agents.serve(1, "h1");
  arrive(2, "a");
  arrive(3, "a");
  arrive(4, "b");
  arrive(5, "");
  EXPECT_THAT(agents.idle_twins(3), testing::ElementsAre(2));
  agents.serve(3, "h1");  // it has taken the place of the first
  EXPECT_THAT(agents.idle_twins(3), testing::ElementsAre(1, 2));
  EXPECT_THAT(agents.idle_twins(4), testing::IsEmpty());
  EXPECT_THAT(agents.idle_twins(5), testing::IsEmpty()) << "local agents show no certificate";
}

TEST(Agents, AClaimWaitsUntilTheFirstHasLeft) {
  Agents agents;
  const auto now = Agents::Moment();
  wire::RegisterNodes message;
  agents.arrived(1, message, origin("i", "b", "10.0.0.7"), now);
  agents.serve(1, "h1");
  const Agents::Origin copy = origin("j", "c", "10.0.0.8");
  EXPECT_EQ(agents.served_elsewhere("h1", 2, copy), 1U);
  EXPECT_EQ(agents.served_elsewhere("h2", 2, copy), std::nullopt);
  agents.arrived(2, message, copy, now).claims.insert("h1");
  EXPECT_THAT(agents.claimants({"h1"}), testing::ElementsAre(2));
  EXPECT_THAT(agents.claimants({"h2"}), testing::IsEmpty());
  EXPECT_THAT(agents.left(1), testing::ElementsAre("h1"));
  EXPECT_EQ(agents.served_elsewhere("h1", 2, copy), std::nullopt);
  // It registers again, and claims what it is refused then.
  EXPECT_THAT(agents.arrived(2, message, copy, now).claims, testing::IsEmpty());
  EXPECT_EQ(copy.text(), "10.0.0.8 (h1:6818, boot c)");
}

}  // namespace
}  // namespace berth::controller
