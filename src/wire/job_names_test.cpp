#include "wire/job_names.h"

#include <gtest/gtest.h>

#include "wire/step_ids.h"

namespace berth::wire {
namespace {

TEST(JobNames, AllForms) {
  EXPECT_EQ(parse_job_name("12")->id(), 12u);
  EXPECT_EQ(parse_job_name("12_3")->array_task(), 3u);
  EXPECT_EQ(parse_job_name("12_[3-5,9%2]")->array_set(), "3-5,9%2");
  EXPECT_EQ(parse_job_name("12+1")->het_offset(), 1u);
  EXPECT_EQ(parse_job_name("12_3.batch")->step(), kBatchStep);
  EXPECT_EQ(parse_job_name("12.0")->step(), 0u);
  EXPECT_FALSE(parse_job_name("12")->has_step());
}

TEST(JobNames, WhatIsNotAName) {
  for (const char* word : {"", "x", "0", "-1", "12_", "12_x", "12_[a]", "12.", "12.x", "1 2", "12+",
                           "99999999999", "12_[]"}) {
    EXPECT_FALSE(parse_job_name(word)) << word;
  }
}

TEST(JobNames, ShownAsWritten) {
  for (const char* word : {"12", "12_3", "12_[3-5]", "12+1", "12.0", "12_3.batch"}) {
    EXPECT_EQ(shown(*parse_job_name(word)), word);
  }
}

TEST(JobNames, CommasInBracketsDoNotSplit) {
  const auto parts = split_job_list("1,2_[3,5],,4");
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1], "2_[3,5]");
}

}  // namespace
}  // namespace berth::wire
