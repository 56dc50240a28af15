// The checksum of pages and of small records: no one and no two flipped bits go unnoticed.
#include "store/page_sum.h"

#include <gtest/gtest.h>

#include <vector>

namespace berth::store {
namespace {

TEST(PageSum, NoTwoFlippedBitsUndoEachOther) {
  for (const std::size_t size : {8U, 16U, 40U, 64U}) {  // an odd and an even number of words
    std::vector<unsigned char> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(i * 7);
    const std::uint64_t whole = sum_of(bytes.data(), size, 3);
    const auto flip = [&](std::size_t bit) {
      bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ 1U << bit % 8);
    };
    for (std::size_t one = 0; one < size * 8; ++one) {
      flip(one);
      ASSERT_NE(sum_of(bytes.data(), size, 3), whole) << one;
      for (std::size_t other = 0; other < one; ++other) {
        flip(other);
        ASSERT_NE(sum_of(bytes.data(), size, 3), whole) << one << ' ' << other;
        flip(other);
      }
      flip(one);
    }
  }
}

TEST(PageSum, IsOfAPlace) {
  const std::uint64_t page[4] = {1, 2, 3, 4};
  EXPECT_NE(sum_of(page, sizeof page, 1), sum_of(page, sizeof page, 2));
}

}  // namespace
}  // namespace berth::store
