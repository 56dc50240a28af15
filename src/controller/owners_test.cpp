// What is left without an owner, and when.
#include "controller/owners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const Moment kStart{};

TEST(Owners, AConnectionThatGoesLeavesAllItOwned) {
  Owners owners;
  owners.own_job(7, 1);
  owners.own_step({7, 0}, 1);
  owners.own_step({8, 0}, 2);
  const std::uint64_t key = owners.ask_step({1, {}, {}});
  owners.wait_for(9, 1);
  const Owners::Left left = owners.lost(1);
  EXPECT_THAT(left.jobs, ElementsAre(7U));
  EXPECT_THAT(left.steps, ElementsAre(Pair(7U, 0U)));
  EXPECT_THAT(left.asked, ElementsAre(key));
  EXPECT_FALSE(owners.owner(7));
  EXPECT_EQ(owners.asked_step(key), nullptr);
  EXPECT_FALSE(owners.waited_for(9));
  EXPECT_TRUE(owners.step_owned({8, 0}));
  EXPECT_THAT(owners.lost(1).jobs, IsEmpty());
}

TEST(Owners, WhoComesBackInTimeKeepsTheJob) {
  Owners owners;
  owners.await_owner(7, kStart + kOwnerGrace);
  owners.await_owner(8, kStart + kOwnerGrace);
  EXPECT_EQ(owners.next_deadline(), kStart + kOwnerGrace);
  owners.own_job(7, 2);
  EXPECT_THAT(owners.expired(kStart + kOwnerGrace - std::chrono::milliseconds(1)).jobs, IsEmpty());
  EXPECT_THAT(owners.expired(kStart + kOwnerGrace).jobs, ElementsAre(8U));
  EXPECT_FALSE(owners.next_deadline());
}

TEST(Owners, AnOwnedStepIsNotWaitedFor) {
  Owners owners;
  owners.own_step({7, 0}, 1);
  owners.await_step_owner({7, 0}, kStart);
  owners.await_step_owner({7, 1}, kStart);
  EXPECT_THAT(owners.expired(kStart).steps, ElementsAre(Pair(7U, 1U)));
}

TEST(Owners, AJobThatEndedTakesItsStepsAlong) {
  Owners owners;
  owners.own_step({7, 0}, 1);
  owners.await_step_owner({7, 1}, kStart);
  owners.own_step({8, 0}, 1);
  owners.forget_steps_of(7);
  EXPECT_THAT(owners.expired(kStart).steps, IsEmpty());
  EXPECT_THAT(owners.lost(1).steps, ElementsAre(Pair(8U, 0U)));
}

}  // namespace
}  // namespace berth::controller
