#include "command/launch_merge.h"

#include <gtest/gtest.h>

namespace berth::command {
namespace {

TEST(LineMerger, HoldsPartOfALineUntilItsEnd) {
  LineMerger merger(2, false, true);
  EXPECT_EQ(merger.take(0, false, "he"), "");
  EXPECT_EQ(merger.take(1, false, "other\nmo"), "other\n");
  EXPECT_EQ(merger.take(0, false, "llo\n"), "hello\n");
  EXPECT_EQ(merger.end(1, false), "mo");
}

TEST(LineMerger, LabelsAreAsWideAsTheLastRank) {
  LineMerger merger(11, true, true);
  EXPECT_EQ(merger.take(3, false, "a\nb\n"), " 3: a\n 3: b\n");
  EXPECT_EQ(merger.take(10, true, "e\n"), "10: e\n");
  EXPECT_EQ(LineMerger(10, true, true).take(9, false, "x\n"), "9: x\n");
}

TEST(LineMerger, LabelledRestEndsItsLine) {
  LineMerger merger(2, true, true);
  EXPECT_EQ(merger.take(0, false, "a"), "");
  EXPECT_EQ(merger.take(1, true, "b"), "");
  EXPECT_EQ(merger.rest(false), "0: a\n");
  EXPECT_EQ(merger.rest(true), "1: b\n");
  EXPECT_EQ(merger.rest(true), "");
}

TEST(LineMerger, UnbufferedPiecesAreLabelledOnce) {
  LineMerger merger(2, true, false);
  EXPECT_EQ(merger.take(0, false, "a"), "0: a");
  EXPECT_EQ(merger.take(0, false, "b\nc"), "b\n0: c");
}

TEST(LineMerger, EndlessLineIsPassedOnWithOneLabel) {
  LineMerger merger(2, true, true);
  const std::string piece(kMostHeldLine, 'x');
  EXPECT_EQ(merger.take(0, false, piece), "0: " + piece);
  EXPECT_EQ(merger.take(0, false, "y\n"), "y\n");
}

}  // namespace
}  // namespace berth::command
