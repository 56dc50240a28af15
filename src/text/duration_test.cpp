// Time limits as -t and the configuration write them, and times of --begin and --deadline.
#include "text/duration.h"

#include <gtest/gtest.h>

namespace berth::text {
namespace {

TEST(TimeLimit, ReadsEveryForm) {
  struct Row {
    const char* text;
    std::uint32_t minutes;
    const char* shown;
  };
  const Row rows[] = {
      {"5", 5, "00:05:00"},
      {"5:30", 6, "00:06:00"},
      {"1:00:00", 60, "01:00:00"},
      {"1-0", 1440, "1-00:00:00"},
      {"1-02:03", 1563, "1-02:03:00"},
      {"1-02:03:04", 1564, "1-02:04:00"},
      {"0", 0, "00:00:00"},
      {"90", 90, "01:30:00"},
      {"0:30", 1, "00:01:00"},
      {"00:00:10", 1, "00:01:00"},
      {"4294967292", 4294967292u, "2982616-04:12:00"},
  };
  for (const Row& row : rows) {
    const auto got = parse_time_limit(row.text);
    ASSERT_TRUE(got) << row.text;
    EXPECT_FALSE(got->unlimited);
    EXPECT_EQ(got->minutes, row.minutes) << row.text;
    EXPECT_EQ(format_minutes(got->minutes), row.shown) << row.text;
  }
  for (const char* text : {"UNLIMITED", "infinite", "Unlimited", "-1"}) {
    ASSERT_TRUE(parse_time_limit(text)) << text;
    EXPECT_TRUE(parse_time_limit(text)->unlimited) << text;
  }
  EXPECT_EQ(format_minutes(std::nullopt), "UNLIMITED");
}

TEST(TimeLimit, RefusesTheRest) {
  for (const char* text : {"", "abc", "-2", "1-", "-5", "1:2:3:4", "1:", ":30", "1-2-3", "1 ",
                           "1.5", "4294967295", "99999999999", "99999999-0", "1e9", "5m"}) {
    EXPECT_FALSE(parse_time_limit(text)) << text;
  }
}

TEST(LimitInSeconds, ReadsUnitsAndTheFormsOfTimeLimits) {
  struct Row {
    const char* text;
    std::uint32_t seconds;  // 0 = no limit
  };
  const Row rows[] = {
      {"30", 1800},  {"0:30", 30},     {"1:00:00", 3600}, {"1-0", 86400}, {"90s", 90},
      {"30m", 1800}, {"2h", 7200},     {"1d", 86400},     {"0", 0},       {"0s", 0},
      {"0:00", 0},   {"unlimited", 0}, {"INFINITE", 0},   {"-1", 0},      {"1:30", 90},
  };
  for (const Row& row : rows) {
    const auto got = parse_limit_in_seconds(row.text);
    ASSERT_TRUE(got) << row.text;
    EXPECT_EQ(got->value_or(0), row.seconds) << row.text;
    EXPECT_EQ(got->has_value(), row.seconds > 0) << row.text;
  }
  for (const char* text : {"", "s", "m", "-5", "1.5h", "5 m", "30M", "30min", "1:30m", "abc", "1w",
                           "4294967296s", "99999d", "4294967295"}) {
    EXPECT_FALSE(parse_limit_in_seconds(text)) << text;
  }
}

TEST(SpokenSeconds, AreAsOnePersonTellsAnother) {
  struct Row {
    std::uint64_t seconds;
    const char* words;
  };
  const Row rows[] = {
      {0, "0 seconds"},
      {1, "1 second"},
      {90, "90 seconds"},
      {119, "119 seconds"},
      {120, "2 minutes"},
      {150, "2 minutes 30 seconds"},
      {601, "10 minutes"},
      {900, "15 minutes"},
      {7199, "119 minutes"},
      {7200, "2 hours"},
      {9000, "2 hours 30 minutes"},
      {3 * 86400, "72 hours"},
  };
  for (const Row& row : rows) EXPECT_EQ(spoken_seconds(row.seconds), row.words);
}

TEST(TimeSpec, AcceptsTheDocumentedForms) {
  for (const char* text : {"16:00",
                           "16:00:30",
                           "4:00PM",
                           "4:00 pm",
                           "midnight",
                           "noon",
                           "elevenses",
                           "fika",
                           "teatime",
                           "today",
                           "tomorrow",
                           "now",
                           "now+1",
                           "now+30minutes",
                           "now+1hour",
                           "now+2days",
                           "now+1week",
                           "NOW+60seconds",
                           "1231",
                           "123126",
                           "12/31",
                           "12/31/26",
                           "12/31/2026",
                           "2026-11-15",
                           "2026-11-15T08:24",
                           "2026-11-15T08:24:47",
                           "noon tomorrow",
                           "tomorrow 16:00"}) {
    std::size_t position = 0;
    EXPECT_TRUE(valid_time_spec(text, position)) << text << " at " << position;
  }
}

TEST(TimeSpec, SaysWhereItStopped) {
  struct Row {
    const char* text;
    std::size_t position;
  };
  const Row rows[] = {
      {"", 0},
      {"someday", 0},
      {"25:00", 0},
      {"16:60", 0},
      {"2026-13-01", 0},
      {"noon someday", 5},
      {"noon midnight", 5},
      {"now+", 0},
      {"now+5fortnights", 0},
      {"1", 0},
      {"2026-11-15T", 0},
      {"13:00PM", 0},
      {"1399", 0},
  };
  for (const Row& row : rows) {
    std::size_t position = 99;
    EXPECT_FALSE(valid_time_spec(row.text, position)) << row.text;
    EXPECT_EQ(position, row.position) << row.text;
  }
}

}  // namespace
}  // namespace berth::text
