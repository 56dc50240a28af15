#include "reservation/reservation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "reservation/keys.h"
#include "text/when.h"

namespace berth::reservation {
namespace {

constexpr Time kNow = 1'000'000;

Result<Reservation> made(const std::vector<Key>& keys) {
  auto ask = read_keys(keys, kNow);
  if (!ask) return pass(std::move(ask.error()));
  Reservation out;
  if (auto done = apply(*ask, true, kNow, out); !done) return pass(std::move(done.error()));
  return out;
}

TEST(ReservationKeys, TimesAndNames) {
  const auto one = made({{"ReservationName", "maint"},
                         {"starttime", "now+1hour"},
                         {"duration", "2:00:00"},
                         {"Users", "alice,bob"},
                         {"flags", "maint,ignore_jobs"}});
  ASSERT_TRUE(one) << one.error().what();
  EXPECT_EQ(one->start, kNow + 3600);
  EXPECT_EQ(one->end, kNow + 3 * 3600);
  EXPECT_EQ(one->users.text(), "alice,bob");
  EXPECT_EQ(flag_words(one->flags), (std::vector<std::string>{"IGNORE_JOBS", "MAINT"}));
  EXPECT_FALSE(one->active(kNow));
  EXPECT_TRUE(one->active(kNow + 3600));
  EXPECT_FALSE(one->active(one->end));
}

TEST(ReservationKeys, WhatIsRefused) {
  struct Row {
    std::vector<Key> keys;
    std::string_view part;  // of the message or the hint
  };
  const Key start{"StartTime", "now"};
  const Key minutes{"Duration", "10"};
  const Key users{"Users", "alice"};
  const Row rows[] = {
      {{start, users}, "Invalid time specified"},
      {{minutes, users}, "Invalid time specified"},
      {{{"StartTime", "uts5"}, minutes, users}, "FORCE_START"},
      {{start, {"EndTime", "uts5"}, users}, "Invalid time specified"},
      {{start, minutes}, "lacks users"},
      {{start, minutes, users, {"Groups", "x"}}, "cannot both be given"},
      {{start, minutes, {"Users", "alice,-bob"}}, "all but these"},
      {{start, minutes, users, {"Flags", "SOMETIMES"}}, "Invalid Flags value: SOMETIMES"},
      {{start, minutes, users, {"Flags", "DAILY,WEEKLY"}}, "only one of"},
      {{start, minutes, users, {"BurstBuffer", "x"}}, "not supported"},
      {{start, minutes, users, {"NodeCnt", "two"}}, "Invalid NodeCnt value: two"},
      {{start, minutes, users, {"Userz", "x"}}, "Users"},
  };
  for (const Row& row : rows) {
    const auto one = made(row.keys);
    ASSERT_FALSE(one) << row.part;
    const std::string said = std::string(one.error().what()) + " | " + one.error().hint;
    EXPECT_NE(said.find(row.part), std::string::npos) << said;
  }
}

TEST(ReservationKeys, ChangesAddAndTakeAway) {
  auto one = made({{"StartTime", "now"}, {"Duration", "60"}, {"Users", "alice"}});
  ASSERT_TRUE(one);
  const std::vector<Key> keys = {
      {"Users", "+bob"}, {"Duration", "+30"}, {"Flags", "+FLEX,PURGE_COMP=10"}};
  const auto ask = read_keys(keys, kNow);
  ASSERT_TRUE(ask) << ask.error().what();
  ASSERT_TRUE(apply(*ask, false, kNow + 5, *one));
  EXPECT_EQ(one->users.text(), "alice,bob");
  EXPECT_EQ(one->end, kNow + 90 * 60);
  EXPECT_EQ(one->purge_after, 600);
  EXPECT_TRUE(one->flags.has(Flag::flex));
  const auto away = read_keys(std::vector<Key>{{"Users", "-alice"}, {"Flags", "-FLEX"}}, kNow);
  ASSERT_TRUE(apply(*away, false, kNow, *one));
  EXPECT_EQ(one->users.text(), "bob");
  EXPECT_FALSE(one->flags.has(Flag::flex));
  EXPECT_TRUE(one->flags.has(Flag::purge_comp));
}

TEST(ReservationAccess, AllThatIsAskedForMustFit) {
  Reservation one;
  one.users = {{"alice"}, false};
  one.uids = {1001};
  const User alice{1001, 100, "physics", "", false};
  const User bob{1002, 100, "physics", "", false};
  EXPECT_TRUE(may_use(one, alice));
  EXPECT_FALSE(may_use(one, bob));
  EXPECT_TRUE(may_use(one, {1002, 100, "", "", true})) << "administrators may";
  one.users.except = true;
  EXPECT_FALSE(may_use(one, alice));
  EXPECT_TRUE(may_use(one, bob));
  one.accounts = {{"chemistry"}, false};
  EXPECT_FALSE(may_use(one, bob)) << "user and account must both do";
  one.accounts.except = true;
  EXPECT_TRUE(may_use(one, bob));
  one.groups = {{"g"}, false};
  one.group_gids = {200};
  EXPECT_FALSE(may_use(one, bob));
  one.group_uids = {1002};
  EXPECT_TRUE(may_use(one, bob));
}

class InZone : public ::testing::Test {
 protected:
  InZone() {
    ::setenv("TZ", "Europe/Berlin", 1);
    ::tzset();
  }
  ~InZone() override {
    ::unsetenv("TZ");
    ::tzset();
  }
};

TEST_F(InZone, Recurs) {
  const auto at = [](const char* text) { return *text::parse_when(text, kNow); };
  struct Row {
    Flag flag;
    const char* from;
    const char* next;
  };
  const Row rows[] = {
      {Flag::hourly, "2026-11-13T08:00:00", "2026-11-13T09:00:00"},
      {Flag::daily, "2026-11-13T08:00:00", "2026-11-14T08:00:00"},
      {Flag::weekday, "2026-11-13T08:00:00", "2026-11-16T08:00:00"},  // a Friday
      {Flag::weekend, "2026-11-15T08:00:00", "2026-11-21T08:00:00"},  // a Sunday
      {Flag::weekly, "2026-11-13T08:00:00", "2026-11-20T08:00:00"},
      {Flag::daily, "2026-10-24T08:00:00", "2026-10-25T08:00:00"},  // clocks go back
  };
  for (const Row& row : rows) {
    Flags flags;
    flags.put(row.flag);
    const Window next = next_occurrence(flags, {at(row.from), at(row.from) + 600});
    EXPECT_EQ(next.from, at(row.next)) << row.from;
    EXPECT_EQ(next.until - next.from, 600);
  }
  Reservation daily;
  daily.flags.put(Flag::daily);
  daily.start = at("2026-11-13T08:00:00");
  daily.end = daily.start + 3600;
  const Window far{at("2026-11-20T07:00:00"), at("2026-11-20T08:00:01")};
  const auto met = daily.first_meeting(far, kNow);
  ASSERT_TRUE(met);
  EXPECT_EQ(met->from, at("2026-11-20T08:00:00"));
  EXPECT_FALSE(daily.first_meeting({far.from, far.from + 3600}, kNow));
}

TEST(ReservationTres, Counts) {
  const auto tres = read_tres("cpu=8,node=2,gres/gpu:a100=4,license/cad=3");
  ASSERT_TRUE(tres);
  EXPECT_EQ(tres->cpus, 8U);
  EXPECT_EQ(tres->nodes, 2U);
  ASSERT_EQ(tres->gres.size(), 1U);
  EXPECT_EQ(tres->gres[0].type, "a100");
  EXPECT_EQ(tres->gres[0].count, 4U);
  EXPECT_EQ(tres->licenses.at("cad"), 3U);
  EXPECT_FALSE(read_tres("mem=4G"));
  EXPECT_FALSE(read_tres("gres/gpu"));
}

}  // namespace
}  // namespace berth::reservation
