#include "base/natural.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace berth {
namespace {

TEST(NaturalOrder, DigitsCompareAsNumbers) {
  std::vector<std::string> names = {"n10", "gpu1", "n2", "cpu2", "n1", "n02", "gpu", "n2a"};
  std::ranges::sort(names, natural_less);
  const std::vector<std::string> expected = {"cpu2", "gpu", "gpu1", "n1",
                                             "n02",  "n2",  "n2a",  "n10"};
  EXPECT_EQ(names, expected);
}

TEST(NaturalOrder, IsStrict) {
  EXPECT_FALSE(natural_less("n1", "n1"));
  EXPECT_TRUE(natural_less("n01", "n1"));
  EXPECT_FALSE(natural_less("n1", "n01"));
  EXPECT_TRUE(natural_less("n99999999999999999999", "n100000000000000000000"));
}

}  // namespace
}  // namespace berth
