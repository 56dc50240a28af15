// Users and the thread that asks for them.
#include "controller/users.h"

#include <gtest/gtest.h>

#include <future>

namespace berth::controller {
namespace {

/// In which thread it was known.
std::thread::id prepared(Users& users, Users::Wanted wanted) {
  std::promise<std::thread::id> where;
  auto known = where.get_future();
  users.prepare(std::move(wanted), [&] { where.set_value(std::this_thread::get_id()); });
  return known.get();
}

TEST(Users, WhatIsNotKnownIsAskedForInAnotherThread) {
  Users users;
  const auto here = std::this_thread::get_id();
  EXPECT_NE(prepared(users, {.uids = {0}}), here);
  EXPECT_EQ(prepared(users, {.uids = {0}}), here);
  EXPECT_NE(prepared(users, {.uids = {0}, .names = {"root"}}), here);
  EXPECT_EQ(prepared(users, {.uids = {0}, .names = {"root"}}), here);
  EXPECT_EQ(users.name_of(0), "root");
  EXPECT_EQ(prepared(users, {}), here);
}

TEST(Users, NobodyIsAskedForBehindTheFirstNameOfNobody) {
  Users users;
  const auto here = std::this_thread::get_id();
  const std::string nobody = "no-such-user-here";
  EXPECT_NE(prepared(users, {.names = {nobody, "root"}}), here);
  EXPECT_EQ(prepared(users, {.names = {nobody, "root"}}), here) << "that he is nobody is known";
  EXPECT_NE(prepared(users, {.names = {"root"}}), here) << "it was not asked for";
  // Numbers are uids where no user is called so.
  EXPECT_NE(prepared(users, {.names = {"4000000001", "4000000002"}}), here);
  EXPECT_EQ(prepared(users, {.names = {"4000000002"}}), here);
}

TEST(Users, AfterTheStopNothingIsCalled) {
  Users users;
  users.stop();
  users.prepare({.uids = {0}}, [] { ADD_FAILURE(); });
  EXPECT_EQ(users.name_of(0), "root");
}

}  // namespace
}  // namespace berth::controller
