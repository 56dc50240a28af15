// Who is believed to be whom, by each way of proving it.
#include "controller/trust.h"

#include <gtest/gtest.h>

#include <vector>

namespace berth::controller {
namespace {

constexpr std::uint32_t kRootUid = 0;
constexpr std::uint32_t kSlurmUid = 64030;
constexpr std::uint32_t kAliceUid = 1000;

const Trust kSite{.administrators = {kSlurmUid, kRootUid}};

TEST(Trust, WhoIsAdmittedAndWhoIsAnAdministrator) {
  Trust munge_admins = kSite;
  munge_admins.munge_admins = true;
  // The cluster of an ordinary user, without root.
  const Trust own{.administrators = {kAliceUid}, .owner = kAliceUid};
  enum { refused, user, administrator };
  struct Row {
    const Trust* trust;
    std::uint32_t uid;
    int socket, token, munge, vouched;
  };
  const std::vector<Row> rows = {
      {&kSite, kRootUid, administrator, administrator, refused, refused},
      {&kSite, kSlurmUid, administrator, administrator, refused, refused},
      {&kSite, kAliceUid, user, user, user, user},
      {&munge_admins, kRootUid, administrator, administrator, administrator, refused},
      {&munge_admins, kSlurmUid, administrator, administrator, administrator, refused},
      {&munge_admins, kAliceUid, user, user, user, user},
      {&own, kRootUid, administrator, administrator, refused, refused},
      {&own, kAliceUid, administrator, administrator, refused, user},
      {&own, kSlurmUid, user, user, user, user},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const auto standing = [&](Proof proof) -> int {
      const auto caller = row.trust->admit(row.uid, 7, proof);
      if (!caller) return refused;
      EXPECT_EQ(caller->uid, row.uid);
      EXPECT_EQ(caller->gid, 7U);
      EXPECT_EQ(caller->proof, proof);
      return caller->privileged ? administrator : user;
    };
    EXPECT_EQ(standing(Proof::socket), row.socket) << i;
    EXPECT_EQ(standing(Proof::token), row.token) << i;
    EXPECT_EQ(standing(Proof::munge), row.munge) << i;
    EXPECT_EQ(standing(Proof::vouched), row.vouched) << i;
    EXPECT_EQ(standing(Proof::none), refused) << i;
  }
}

TEST(Trust, MungeIsNotBelievedFromTheMachinesOfNodes) {
  Trust trust = kSite;
  trust.nodes_at = {{"10.0.0.7", "n1"}};
  EXPECT_TRUE(trust.munge_from("10.0.0.8"));
  const auto refused = trust.munge_from("10.0.0.7");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what().find("node n1"), std::string::npos);
  EXPECT_NE(refused.error().hint.find("munge_from_nodes"), std::string::npos);
  trust.munge_from_nodes = true;
  EXPECT_TRUE(trust.munge_from("10.0.0.7"));
}

TEST(Trust, ATokenOfAnEarlierGenerationIsVoid) {
  Trust trust = kSite;
  const auth::UserClaim claim{.uid = kAliceUid, .gid = 100, .expires = 50, .generation = 0};
  ASSERT_TRUE(trust.admit_token(claim));
  EXPECT_EQ(trust.admit_token(claim)->proof, Proof::token);
  EXPECT_TRUE(trust.admit_token({.uid = kSlurmUid})->privileged);
  trust.token_generations = {{kAliceUid, 2}};
  for (const std::uint64_t generation : {0, 1, 3}) {
    EXPECT_FALSE(trust.admit_token({.uid = kAliceUid, .generation = generation})) << generation;
  }
  EXPECT_TRUE(trust.admit_token({.uid = kAliceUid, .generation = 2}));
  EXPECT_TRUE(trust.admit_token({.uid = kSlurmUid}));
}

TEST(Trust, WhoGetsATokenAndForHowLong) {
  constexpr job::Time kNone = -1;
  const Caller alice(kAliceUid, kAliceUid, false, Proof::socket);
  const Caller root(kRootUid, 0, true, Proof::socket);
  const auto by = [](Caller caller, Proof proof) {
    caller.proof = proof;
    return caller;
  };
  struct Row {
    Caller caller;
    TokenAsk ask;
    job::Time seconds;
  };
  const std::vector<Row> rows = {
      {alice, {}, 1800},
      {alice, {.lifespan = 60}, 60},
      {alice, {.lifespan = 1800}, 1800},
      {alice, {.lifespan = 1801}, kNone},
      {alice, {.lifespan = -1}, kNone},
      {alice, {.to_join = true}, kNone},
      {alice, {.for_another = true}, kNone},
      {root, {}, 1800},
      {root, {.to_join = true}, 3600},
      {root, {.for_another = true}, 1800},
      {root, {.for_another = true, .lifespan = 366 * 86400}, 366 * 86400},
      {root, {.lifespan = 366 * 86400 + 1}, kNone},
      {by(alice, Proof::munge), {}, 1800},
      {by(alice, Proof::munge), {.lifespan = 1801}, kNone},
      {by(root, Proof::munge), {.to_join = true}, 3600},
      {by(alice, Proof::token), {}, kNone},
      {by(root, Proof::token), {}, kNone},
      {by(root, Proof::token), {.to_join = true}, kNone},
      {by(alice, Proof::vouched), {}, kNone},
      {by(root, Proof::none), {}, kNone},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(token_lifespan(rows[i].caller, rows[i].ask).value_or(kNone), rows[i].seconds) << i;
  }
}

}  // namespace
}  // namespace berth::controller
