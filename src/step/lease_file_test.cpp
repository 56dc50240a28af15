// The file from which supervisors know their leases.
#include "step/lease_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace berth::step {
namespace {

using std::chrono::seconds;

TEST(LeaseMargin, IsAFifthWithinBounds) {
  for (const auto& [lease, margin] :
       {std::pair{1, 1}, {4, 1}, {10, 2}, {60, 12}, {150, 30}, {300, 30}, {3600, 30}}) {
    EXPECT_EQ(lease_margin(seconds(lease)), seconds(margin)) << lease;
  }
}

TEST(LookAtLease, EndsHalfAMarginLateAndLooksTwiceALease) {
  const seconds lease(60);  // its margin is 12
  struct Row {
    std::optional<int> from;
    int began;
    int now;
    std::optional<int> next;
  };
  for (const Row& row : {
           Row{100, 90, 100, 130},           // in the middle
           Row{100, 90, 130, 154},           // at the end
           Row{100, 90, 153, 154},           //
           Row{100, 90, 154, std::nullopt},  // over
           Row{std::nullopt, 90, 100, 130},  // no controller has answered since it began
           Row{std::nullopt, 90, 144, std::nullopt},
           Row{3700, 90, 110, 140},  // leases rest for an hour; when they do not, it is noticed
       }) {
    const auto from = row.from ? std::optional<BootTime>(seconds(*row.from)) : std::nullopt;
    const auto next = look_at_lease(from, seconds(row.began), lease, seconds(row.now));
    EXPECT_EQ(next.has_value(), row.next.has_value()) << row.now;
    if (next && row.next) {
      EXPECT_EQ(*next, BootTime(seconds(*row.next))) << row.now;
    }
  }
}

TEST(LeaseFile, IsReadAsItWasWritten) {
  const std::string path = testing::TempDir() + "/lease-file-test";
  std::filesystem::remove(path);
  EXPECT_FALSE(read_lease_file(path));
  for (const BootTime from : {BootTime(0), BootTime(1), BootTime(seconds(123456789))}) {
    ASSERT_TRUE(write_lease_file(path, from));
    EXPECT_EQ(read_lease_file(path), from);
  }
  EXPECT_EQ(std::filesystem::file_size(path), 36U + 2 * 21 + 1);
}

TEST(LeaseFile, OfAnotherBootOrHalfWrittenSaysNothing) {
  const std::string path = testing::TempDir() + "/lease-file-test";
  for (const char* text : {"", "x", "00000000-0000-0000-0000-000000000000 5 5\n"}) {
    std::ofstream(path) << text;
    EXPECT_FALSE(read_lease_file(path)) << text;
  }
  std::ofstream(path) << this_boot_id() << " 5 6\n";
  EXPECT_FALSE(read_lease_file(path));
  std::filesystem::remove(path);
}

TEST(LeaseFile, LiesInTheSpool) {
  EXPECT_EQ(lease_file_of("/var/spool/berth/n1/step.5.1.0"), "/var/spool/berth/lease");
}

}  // namespace
}  // namespace berth::step
