// Whole numbers: which texts are numbers, and the bound.
#include "text/number.h"

#include <gtest/gtest.h>

namespace berth::text {
namespace {

TEST(Number, ReadsDigitsOnly) {
  struct Row {
    const char* text;
    std::optional<std::uint64_t> value;
  };
  const Row rows[] = {
      {"0", 0},
      {"12", 12},
      {"007", 7},
      {"", std::nullopt},
      {"-1", std::nullopt},
      {"+1", std::nullopt},
      {"1e3", std::nullopt},
      {" 1", std::nullopt},
      {"1 ", std::nullopt},
      {"18446744073709551615", UINT64_MAX},
      {"18446744073709551616", std::nullopt},
      {"99999999999999999999999", std::nullopt},
  };
  for (const Row& row : rows) EXPECT_EQ(parse_number(row.text), row.value) << row.text;
}

TEST(Number, KeepsTheBound) {
  EXPECT_EQ(parse_number("10", 10), 10u);
  EXPECT_EQ(parse_number("11", 10), std::nullopt);
}

}  // namespace
}  // namespace berth::text
