#include "controller/identities.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "auth/random.h"

namespace berth::controller {
namespace {

class IdentitiesTest : public testing::Test {
 protected:
  IdentitiesTest() {
    std::filesystem::create_directories(state_);
    ids_.emplace(*Identities::load(state_, "test"));
  }
  ~IdentitiesTest() override { std::filesystem::remove_all(state_); }

  /// Joins as the node; what its certificate says of it.
  tls::Bearer join(const std::string& node) {
    const auto secrets = ids_->invite({node}, false, 1000, 100);
    const auto joined = accept(message(secrets->front()), 200);
    EXPECT_TRUE(joined);
    return *tls::bearer_of(joined->certificate);
  }
  /// Asks and takes what is offered.
  Result<Identities::Offer> accept(const wire::JoinNode& message, job::Time now) {
    auto offer = ids_->offer(message, now);
    if (!offer) return offer;
    if (auto done = ids_->accept(*offer, "10.0.0.7", now); !done) return pass(done.error());
    return offer;
  }
  static wire::JoinNode message(const Identities::Secret& secret) {
    wire::JoinNode out;
    out.set_id(secret.id);
    out.set_secret(secret.secret);
    out.set_wish(tls::make_key()->wish);
    return out;
  }

  std::string state_ = testing::TempDir() + "identities." + auth::random_token();
  std::optional<Identities> ids_;
};

TEST_F(IdentitiesTest, ASecretIsGoodOnceAndForItsNode) {
  const auto secrets = ids_->invite({"n1", "n2"}, false, 1000, 100);
  ASSERT_EQ(secrets->size(), 2U);
  const auto joined = accept(message((*secrets)[0]), 200);
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->token.node(), "n1");
  const auto bearer = *tls::bearer_of(joined->certificate);
  EXPECT_EQ(bearer.nodes, std::vector<std::string>{"n1"});
  EXPECT_TRUE(ids_->check(bearer, "n1"));
  EXPECT_FALSE(ids_->check(bearer, "n2"));
  EXPECT_FALSE(accept(message((*secrets)[0]), 200)) << "used before";
  auto other = message((*secrets)[1]);
  other.set_secret("guessed");
  EXPECT_FALSE(accept(other, 200));
  EXPECT_FALSE(accept(message((*secrets)[1]), 1001)) << "expired";
}

TEST_F(IdentitiesTest, AnOfferSpendsNothing) {
  const auto secrets = ids_->invite({"n1"}, false, 1000, 100);
  auto bad = message(secrets->front());
  bad.set_wish("no wish");
  EXPECT_FALSE(ids_->offer(bad, 200));
  ASSERT_TRUE(ids_->offer(message(secrets->front()), 200));
  EXPECT_EQ(ids_->generation("n1"), 0U);
  // Two machines were offered the same; the first one to accept has it.
  const auto one = ids_->offer(message(secrets->front()), 200);
  const auto other = ids_->offer(message(secrets->front()), 200);
  ASSERT_TRUE(one && other);
  EXPECT_TRUE(*ids_->accept(*one, "", 200));
  EXPECT_FALSE(ids_->accept(*other, "", 200));
  EXPECT_EQ(ids_->generation("n1"), 1U);
}

TEST_F(IdentitiesTest, WhoDidNotHearTheAnswerAsksAgainWithTheSameWish) {
  const auto secrets = ids_->invite({"n1"}, false, 100000, 100);
  const auto ask = message(secrets->front());
  const auto first = accept(ask, 200);
  ASSERT_TRUE(first);
  ids_.emplace(*Identities::load(state_, "test"));
  const auto again = ids_->offer(ask, 3800);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->certificate, first->certificate);
  EXPECT_FALSE(*ids_->accept(*again, "10.0.0.9", 3800)) << "it was accepted before";
  EXPECT_EQ(ids_->generation("n1"), 1U);
  EXPECT_FALSE(ids_->offer(message(secrets->front()), 300)) << "another key";
  EXPECT_FALSE(ids_->offer(ask, 3801)) << "an hour later";
  join("n1");
  EXPECT_FALSE(ids_->offer(ask, 300)) << "another machine has joined since";
}

TEST_F(IdentitiesTest, WhatWasHandedOutIsKnownAfterARestart) {
  const auto secrets = ids_->invite({"n1", "n2"}, false, 1000, 100);
  const auto joined = accept(message((*secrets)[0]), 200);
  ids_.emplace(*Identities::load(state_, "test"));
  EXPECT_TRUE(ids_->check(*tls::bearer_of(joined->certificate), "n1"));
  EXPECT_EQ(ids_->generation("n1"), 1U);
  EXPECT_FALSE(accept(message((*secrets)[0]), 200)) << "used before the restart";
  EXPECT_TRUE(accept(message((*secrets)[1]), 200));
}

TEST_F(IdentitiesTest, ANewIdentityVoidsTheOldOne) {
  const auto first = join("n1");
  const auto second = join("n1");
  EXPECT_FALSE(ids_->check(first, "n1"));
  EXPECT_TRUE(ids_->check(second, "n1"));
  EXPECT_EQ(ids_->generation("n1"), 2U);
}

TEST_F(IdentitiesTest, RenewalKeepsTheOldOneUntilTheNewOneIsSeen) {
  const auto first = join("n1");
  const auto renewed = ids_->renew(first, tls::make_key()->wish);
  ASSERT_TRUE(renewed);
  const auto second = *tls::bearer_of(*renewed);
  EXPECT_TRUE(ids_->check(first, "n1"));
  EXPECT_TRUE(ids_->check(second, "n1"));
  EXPECT_EQ(ids_->serials(), (std::unordered_set{first.serial, second.serial}));
  EXPECT_EQ(ids_->seen(second), true);
  EXPECT_EQ(ids_->seen(second), false) << "nothing has changed";
  EXPECT_EQ(ids_->serials(), std::unordered_set{second.serial});
  EXPECT_FALSE(ids_->check(first, "n1"));
  ids_.emplace(*Identities::load(state_, "test"));
  EXPECT_FALSE(ids_->check(first, "n1")) << "after a restart, too";
  EXPECT_FALSE(ids_->renew(first, tls::make_key()->wish));
}

TEST_F(IdentitiesTest, WhereAMachineWasSeenLastIsKeptAlsoWhenItIsRevoked) {
  using Addresses = std::map<std::string, std::string>;
  const auto bearer = join("n1");
  EXPECT_EQ(ids_->addresses(), (Addresses{{"n1", "10.0.0.7"}}));
  EXPECT_FALSE(ids_->is_at(bearer, "10.0.0.7"));
  EXPECT_FALSE(ids_->is_at(bearer, ""));
  EXPECT_TRUE(ids_->is_at(bearer, "10.0.0.8"));
  ASSERT_TRUE(ids_->keep_addresses());
  ASSERT_TRUE(ids_->revoke({"n1"}));
  EXPECT_FALSE(ids_->is_at(bearer, "10.0.0.9")) << "nobody hears it any more";
  ids_.emplace(*Identities::load(state_, "test"));
  EXPECT_EQ(ids_->addresses(), (Addresses{{"n1", "10.0.0.8"}}));
}

TEST_F(IdentitiesTest, RevokedIsVoidAtOnceWithItsTokens) {
  const auto bearer = join("n1");
  const auto secrets = ids_->invite({"n1"}, false, 1000, 100);
  ASSERT_TRUE(ids_->revoke({"n1"}));
  EXPECT_FALSE(ids_->check(bearer, "n1"));
  EXPECT_TRUE(ids_->serials().empty());
  EXPECT_FALSE(ids_->renew(bearer, tls::make_key()->wish));
  EXPECT_FALSE(accept(message(secrets->front()), 200));
  EXPECT_EQ(ids_->generation("n1"), 2U);
}

TEST_F(IdentitiesTest, TokensOfAUserThatWereMadeVoidStaySo) {
  using Generations = std::map<std::uint32_t, std::uint64_t>;
  ASSERT_TRUE(ids_->revoke_tokens(1000));
  ASSERT_TRUE(ids_->revoke_tokens(1000));
  ASSERT_TRUE(ids_->revoke_tokens(0));
  ids_.emplace(*Identities::load(state_, "test"));
  EXPECT_EQ(ids_->token_generations(), (Generations{{0, 1}, {1000, 2}}));
}

TEST_F(IdentitiesTest, AFileOfOthersOrADamagedOneIsRefusedInWords) {
  join("n1");
  std::filesystem::permissions(state_ + "/identities", std::filesystem::perms::all);
  EXPECT_FALSE(Identities::load(state_, "test"));
  std::filesystem::permissions(state_ + "/identities", std::filesystem::perms::owner_all);
  std::ofstream(state_ + "/identities") << "nonsense";
  const auto damaged = Identities::load(state_, "test");
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().what().find("damaged"), std::string::npos);
}

}  // namespace
}  // namespace berth::controller
