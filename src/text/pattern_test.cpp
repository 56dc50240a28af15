// Output file names: every letter, padding, the backslash, and arrays.
#include "text/pattern.h"

#include <gtest/gtest.h>

namespace berth::text {
namespace {

PatternValues batch() {
  PatternValues v;
  v.job_id = "123";
  v.job_name = "train";
  v.user = "alice";
  v.node = "gpu1.example.org";
  v.sluid = "s7YS";
  return v;
}

TEST(Pattern, ExpandsInABatchJob) {
  struct Row {
    const char* pattern;
    const char* name;
  };
  const Row rows[] = {
      {"slurm-%j.out", "slurm-123.out"},
      {"%x_%u", "train_alice"},
      {"%N.%n.%t", "gpu1.0.0"},
      {"p_%6j_%3t_%4n.out", "p_000123_000_0000.out"},
      {"%J", "123"},
      {"%s", "batch"},
      {"%A_%a", "123_4294967294"},
      {"%r%S", "0s7YS"},
      {"100%%", "100%"},
      {"%q%", "%q%"},
      {"%5x", "train"},
      {"%99j", "0000000123"},
      {"a\\%j", "a%j"},
      {"", ""},
  };
  for (const Row& row : rows) EXPECT_EQ(expand_pattern(row.pattern, batch()), row.name);
}

TEST(Pattern, ExpandsInStepsAndArrays) {
  PatternValues v = batch();
  v.step_id = "4";
  v.task = "7";
  v.node_rank = "2";
  EXPECT_EQ(expand_pattern("st_%J.%t.%n.%s", v), "st_123.4.7.2.4");
  v.array_master = "100";
  v.array_index = "23";
  EXPECT_EQ(expand_pattern("slurm-%A_%a-%b.out", v), "slurm-100_23-3.out");
}

TEST(Pattern, StaysBounded) {
  PatternValues v = batch();
  v.job_name = std::string(1000, 'x');
  std::string pattern;
  for (int i = 0; i < 10000; ++i) pattern += "%x";
  EXPECT_LT(expand_pattern(pattern, v).size(), 6000u);
}

TEST(Pattern, KnowsNamesSharedByAllElements) {
  EXPECT_TRUE(same_for_all_elements("out.txt"));
  EXPECT_TRUE(same_for_all_elements("%x-%A.out"));
  EXPECT_TRUE(same_for_all_elements("a\\%a.out"));
  EXPECT_FALSE(same_for_all_elements("%A_%a.out"));
  EXPECT_FALSE(same_for_all_elements("slurm-%j.out"));
  EXPECT_FALSE(same_for_all_elements("%4a"));
}

}  // namespace
}  // namespace berth::text
