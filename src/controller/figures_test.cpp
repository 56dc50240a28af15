// What sdiag counts of the scheduler.
#include "controller/figures.h"

#include <gtest/gtest.h>

namespace berth::controller {
namespace {

schedule::Figures look(std::size_t examined, bool backfill, bool unfinished = false) {
  schedule::Figures out;
  out.examined = examined;
  out.started = 1;
  out.backfill = backfill;
  out.unfinished = unfinished;
  return out;
}

TEST(Figures, APassInPiecesIsOneCycle) {
  Figures figures;
  figures.count_cycle(look(10, true, true), 100, 50, 1000);
  figures.count_cycle(look(20, false, true), 100, 50, 1000);
  EXPECT_EQ(figures.cycles, 0u);
  figures.count_cycle(look(5, false), 50, 48, 1001);
  EXPECT_EQ(figures.cycles, 1u);
  EXPECT_EQ(figures.passes, 1u);
  EXPECT_EQ(figures.cycle_last_microseconds, 250u);
  EXPECT_EQ(figures.pass_last_examined, 35u);
  EXPECT_EQ(figures.pass_last_queue, 48u);
  EXPECT_EQ(figures.cycle_pieces, 2u);
  EXPECT_EQ(figures.jobs_started, 3u);
  figures.count_cycle(look(1, false), 10, 47, 1002);
  EXPECT_EQ(figures.cycles, 2u);
  EXPECT_EQ(figures.passes, 1u);
  EXPECT_EQ(figures.cycle_most_microseconds, 250u);
  EXPECT_EQ(figures.cycle_last_queue, 47u);
}

TEST(Figures, NothingLookedAtIsNoCycle) {
  Figures figures;
  figures.count_cycle({}, 3, 0, 1000);
  EXPECT_EQ(figures.cycles, 0u);
}

TEST(Figures, ResetKeepsTheStartOfTheController) {
  Figures figures;
  figures.started = 500;
  figures.count_cycle(look(10, true), 100, 50, 1000);
  figures.reset({7, 2}, 2000);
  EXPECT_EQ(figures.cycles, 0u);
  EXPECT_EQ(figures.started, 500);
  EXPECT_EQ(figures.since, 2000);
  EXPECT_EQ(figures.backfilled_before.jobs, 7u);
}

}  // namespace
}  // namespace berth::controller
