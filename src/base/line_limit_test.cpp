#include "base/line_limit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth {
namespace {

using Told = std::vector<std::string>;

LineLimit::Time at(double seconds) {
  return LineLimit::Time(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
}

struct Step {
  double second;
  std::string source;
  int lines;    // so many at once
  int written;  // so many of them
  Told told = {};
};

/// 3 lines in 10 s, 2 sources.
void play(const std::vector<Step>& steps) {
  LineLimit limit({.lines = 3, .window = std::chrono::seconds(10), .sources = 2});
  for (const Step& step : steps) {
    int written = 0;
    Told told;
    for (int i = 0; i < step.lines; ++i) {
      const LineLimit::Verdict verdict = limit.line(step.source, at(step.second));
      written += verdict.write ? 1 : 0;
      told.insert(told.end(), verdict.before.begin(), verdict.before.end());
    }
    EXPECT_EQ(written, step.written) << step.source << " at " << step.second;
    EXPECT_EQ(told, step.told) << step.source << " at " << step.second;
  }
}

TEST(LineLimit, FewLinesAreAllWritten) {
  play({{0, "uid 1", 3, 3}, {9.9, "uid 2", 3, 3}, {10, "uid 1", 3, 3}, {20, "uid 1", 3, 3}});
}

TEST(LineLimit, AFloodIsCountedAndOthersAreNotLost) {
  play({{0, "uid 1", 10000, 3},
        {5, "uid 2", 2, 2},
        {9.999, "uid 1", 1, 0},
        {10, "uid 1", 5, 3, {"9998 more lines of uid 1 left out within 10 s"}},
        {20, "uid 1", 1, 1, {"2 more lines of uid 1 left out within 10 s"}}});
}

TEST(LineLimit, SourcesBeyondTheMostShareOne) {
  play({{0, "a", 1, 1},
        {0, "b", 4, 3},
        {1, "c", 2, 2},
        {1, "d", 2, 1},
        {1, "a", 2, 2},
        // Those whose time is over make room.
        {10.5, "e", 1, 1, {"1 more lines of b left out within 10 s"}},
        {11, "f", 1, 1, {"1 more lines of other sources left out within 10 s"}}});
}

TEST(LineLimit, TellsAtTheEndOfTheWindow) {
  LineLimit limit({.lines = 1, .window = std::chrono::seconds(10), .sources = 8});
  EXPECT_EQ(limit.next_end(), LineLimit::Time::max());
  limit.line("uid 1", at(0));
  EXPECT_EQ(limit.next_end(), LineLimit::Time::max()) << "nothing was left out";
  limit.line("uid 1", at(4));
  limit.line("uid 2", at(5));
  limit.line("uid 2", at(5));
  EXPECT_EQ(limit.next_end(), at(10));
  EXPECT_EQ(limit.ended(at(9)), Told());
  EXPECT_EQ(limit.ended(at(10)), Told{"1 more lines of uid 1 left out within 10 s"});
  EXPECT_EQ(limit.next_end(), at(15));
  EXPECT_EQ(limit.ended(LineLimit::Time::max()),
            Told{"1 more lines of uid 2 left out within 10 s"});
  EXPECT_EQ(limit.next_end(), LineLimit::Time::max());
}

/// A source that never repeats itself costs no more memory than the most sources do.
TEST(LineLimit, ManySourcesWriteABoundedNumberOfLines) {
  LineLimit limit({.lines = 3, .window = std::chrono::seconds(10), .sources = 100});
  int written = 0;
  for (int i = 0; i < 100000; ++i) {
    written += limit.line("peer " + std::to_string(i), at(1)).write ? 1 : 0;
  }
  EXPECT_EQ(written, 100 + 3);
}

}  // namespace
}  // namespace berth
