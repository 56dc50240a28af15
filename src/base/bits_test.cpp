#include "base/bits.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace berth {
namespace {

TEST(Bits, PrintsInEveryForm) {
  const Bits bits = Bits::of({0, 1, 2, 8});
  EXPECT_EQ(bits.ranges(), "0-2,8");
  EXPECT_EQ(bits.list(), "0,1,2,8");
  EXPECT_EQ(bits.hex(), "0x107");
  EXPECT_EQ(bits.hex_padded(4), "0107");
  EXPECT_EQ(Bits().hex(), "0x0");
  EXPECT_EQ(Bits().ranges(), "");
  EXPECT_EQ(Bits::of({127}).hex_padded(2), "8" + std::string(31, '0'));
  EXPECT_EQ(Bits().hex_padded(40), std::string(40, '0'));
}

TEST(Bits, CountsInsideBounds) {
  const Bits bits = Bits::range(60, 70);
  EXPECT_EQ(bits.count(), 11U);
  EXPECT_EQ(bits.count_in(0, 63), 4U);
  EXPECT_EQ(bits.count_in(64, 64), 1U);
  EXPECT_EQ(bits.count_in(64, 127), 7U);
  EXPECT_EQ(bits.count_in(5, 4), 0U);
  EXPECT_EQ(bits.last(), 70U);
  EXPECT_EQ(bits.next(64), 64U);
  EXPECT_EQ(bits.next(71), Bits::npos);
}

TEST(Bits, BehavesLikeASet) {
  std::mt19937 random(7);
  Bits bits;
  Bits other;
  std::set<std::size_t> model;
  std::set<std::size_t> other_model;
  for (int i = 0; i < 5000; ++i) {
    const std::size_t member = random() % 400;
    if (random() % 3 == 0) {
      bits.reset(member);
      model.erase(member);
    } else {
      bits.set(member);
      model.insert(member);
    }
    if (random() % 2 == 0) {
      other.set(member);
      other_model.insert(member);
    }
  }
  EXPECT_EQ(bits.members(), std::vector<std::size_t>(model.begin(), model.end()));
  const auto expect_same = [](const Bits& set, auto keep) {
    for (std::size_t i = 0; i < 400; ++i) EXPECT_EQ(set.test(i), keep(i)) << i;
  };
  expect_same(bits | other,
              [&](std::size_t i) { return model.contains(i) || other_model.contains(i); });
  expect_same(bits & other,
              [&](std::size_t i) { return model.contains(i) && other_model.contains(i); });
  expect_same(bits - other,
              [&](std::size_t i) { return model.contains(i) && !other_model.contains(i); });
  EXPECT_TRUE(bits.contains(bits & other));
  EXPECT_FALSE((bits - other).intersects(other));
}

TEST(Bits, EqualityAndHashIgnoreStorage) {
  Bits grown;
  grown.set(1000);
  grown.reset(1000);
  EXPECT_EQ(grown, Bits());
  EXPECT_EQ(grown.hash(), Bits().hash());
  EXPECT_TRUE(grown.empty());
}

}  // namespace
}  // namespace berth
