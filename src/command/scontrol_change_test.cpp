#include "command/scontrol_change.h"

#include <gtest/gtest.h>

#include "command/scontrol_licenses.h"

namespace berth::command::scontrol {
namespace {

wire::Change parsed(std::vector<std::string> words) {
  const auto change = parse_change("update", words);
  EXPECT_TRUE(change);
  return change ? *change : wire::Change();
}

TEST(ScontrolChange, WhatIsMeant) {
  EXPECT_EQ(parsed({"JobId=5", "Partition=ml"}).what(), "job");
  EXPECT_EQ(parsed({"Partition=ml", "jobid=5_[1-3]"}).what(), "job");
  EXPECT_EQ(parsed({"StepId=5.0", "TimeLimit=1"}).what(), "step");
  EXPECT_EQ(parsed({"nodename=gpu1", "State=DRAIN", "Reason=bad disk"}).what(), "node");
  EXPECT_EQ(parsed({"PartitionName=ml", "Nodes=gpu1"}).what(), "partition");
  EXPECT_EQ(parsed({"JobName=x", "Nice=5"}).what(), "job");
}

TEST(ScontrolChange, KeysAndValues) {
  const wire::Change change = parsed({"job", "5", "TimeLimit+=10", "Comment=a=b c"});
  ASSERT_EQ(change.keys_size(), 3);
  EXPECT_EQ(change.keys(0).value(), "5");
  EXPECT_EQ(change.keys(1).name(), "TimeLimit");
  EXPECT_EQ(change.keys(1).value(), "+10");
  EXPECT_EQ(change.keys(2).value(), "a=b c");
}

TEST(ScontrolChange, Refusals) {
  EXPECT_FALSE(parse_change("update", std::vector<std::string>{"JobId=5", "hold"}));
  EXPECT_FALSE(parse_change("update", std::vector<std::string>{"Nice=5"}));
}

TEST(ScontrolChange, Reservations) {
  EXPECT_EQ(parsed({"ReservationName=r", "Nodes=ALL", "PartitionName=x"}).what(), "reservation");
  EXPECT_EQ(parsed({"JobId=5", "ReservationName=r"}).what(), "job");
  const std::vector<std::string> nameless = {"reservation", "StartTime=now", "Duration=5"};
  const auto made = parse_change("create", nameless);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->keys_size(), 3);
  EXPECT_EQ(made->keys(0).value(), "");
  const wire::Change skipped = parsed({"reservation", "r", "skip"});
  ASSERT_EQ(skipped.keys_size(), 2);
  EXPECT_EQ(skipped.keys(0).value(), "r");
  EXPECT_EQ(skipped.keys(1).name(), "Skip");
}

TEST(ScontrolLicenses, NamesAndCounts) {
  const auto licenses = parse_licenses("matlab:10,fluent");
  ASSERT_EQ(licenses.size(), 2u);
  EXPECT_EQ(licenses[0].total, 10u);
  EXPECT_EQ(licenses[1].total, 1u);
  EXPECT_TRUE(parse_licenses("(null)").empty());
}

}  // namespace
}  // namespace berth::command::scontrol
