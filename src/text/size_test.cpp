// Sizes: units, rounding, bounds, and how memory is shown.
#include "text/size.h"

#include <gtest/gtest.h>

namespace berth::text {
namespace {

TEST(Size, ReadsUnits) {
  struct Row {
    const char* text;
    std::optional<std::uint64_t> mb;
  };
  const Row rows[] = {
      {"0", 0},
      {"1", 1},
      {"2048K", 2},
      {"2049k", 3},
      {"1K", 1},
      {"5M", 5},
      {"5mb", 5},
      {"64G", 65536},
      {"64GB", 65536},
      {"1t", 1048576},
      {"4503599627370496", std::uint64_t{1} << 52},
      {"4503599627370497", std::nullopt},
      {"99999999999T", std::nullopt},
      {"18446744073709551615K", 18014398509481984},
      {"", std::nullopt},
      {"G", std::nullopt},
      {"-1", std::nullopt},
      {"1.5G", std::nullopt},
      {"1GG", std::nullopt},
      {"1X", std::nullopt},
      {"1e99", std::nullopt},
  };
  for (const Row& row : rows) EXPECT_EQ(parse_size_mb(row.text), row.mb) << row.text;
}

TEST(Size, IsShownInTheLargestExactUnit) {
  EXPECT_EQ(format_mb(0), "0");
  EXPECT_EQ(format_mb(2), "2M");
  EXPECT_EQ(format_mb(1443), "1443M");
  EXPECT_EQ(format_mb(1536), "1536M");
  EXPECT_EQ(format_mb(65536), "64G");
  EXPECT_EQ(format_mb(1048576), "1T");
  EXPECT_EQ(format_mb(std::uint64_t{1} << 42), "4E");
}

}  // namespace
}  // namespace berth::text
