// The cluster's clock is set: lengths stay, times of day stay, history stays; and nothing that is
// remembered is left out.
#include "job/moments.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <regex>

#include "job/record.h"
#include "job/state_test_fixture.h"
#include "text/when.h"

namespace berth::job::testing {
namespace {

constexpr Time kHour = 3600;

/// As a user writes it.
std::string time_of_day(Time moment) {
  std::tm day{};
  ::localtime_r(&moment, &day);
  char out[32];
  ::strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%S", &day);
  return out;
}

void set_clock(Controller& c, Time by) {
  c.now += by;
  c.state.shift(by, c.now);
}
void pass(Controller& c, Time seconds) {
  c.now += seconds;
  c.state.tick(c.now);
}

class ClockIsSet : public ::testing::TestWithParam<Time> {
 protected:
  Time by = GetParam();
  Controller c;
};
INSTANTIATE_TEST_SUITE_P(ByHours, ClockIsSet, ::testing::Values(kHour, -kHour, 90, -90),
                         [](const auto& by) {
                           return fmt::format("{}{}", by.param < 0 ? "Back" : "On",
                                              std::abs(by.param));
                         });

TEST_P(ClockIsSet, ARunningJobHasTheTimeItHad) {
  const JobId id = c.started("-n1 --mem=1G -t 30");
  pass(c, 600);
  set_clock(c, by);
  c.state.tick(c.now);
  EXPECT_EQ(c.shown(id), "RUNNING None");
  EXPECT_EQ(c.now - c.at(id).start_time, 600);
  EXPECT_EQ(*c.at(id).limit_at() - c.now, 1200);
  pass(c, 1199);
  EXPECT_EQ(c.shown(id), "RUNNING None");
  pass(c, 1);
  EXPECT_EQ(c.shown(id), "TIMEOUT+COMPLETING TimeLimit");
  // The end is told in the new time, and what is stored is what is remembered.
  EXPECT_EQ(c.at(id).end_time - c.at(id).start_time, 1800);
}

TEST_P(ClockIsSet, WhatIsMovedIsStored) {
  const JobId id = c.started("-n1 --mem=1G -t 30");
  c.state.take_dirty();
  set_clock(c, by);
  const Dirty dirty = c.state.take_dirty();
  ASSERT_EQ(dirty.jobs.size(), 1U);
  EXPECT_EQ(dirty.jobs[0].id(), id);
  EXPECT_EQ(dirty.jobs[0].start_time(), kStart + by);
  EXPECT_TRUE(dirty.sync);
}

TEST_P(ClockIsSet, ADelayStaysALengthAndATimeOfDayATimeOfDay) {
  const JobId delayed = c.submit("-n1 --mem=1G --begin=now+600");
  const JobId at = c.submit("-n1 --mem=1G --begin=" + time_of_day(kStart + 600));
  const JobId until = c.submit("-n1 --mem=1G -t 1 --deadline=" + time_of_day(kStart + 600));
  const JobId within = c.submit("-n1 --mem=1G -t 1 --deadline=now+600");
  set_clock(c, by);
  c.state.tick(c.now);
  EXPECT_EQ(c.at(delayed).begin_time - c.now, 600);
  EXPECT_EQ(c.shown(delayed), "PENDING BeginTime");
  EXPECT_EQ(c.at(within).deadline - c.now, 600);
  EXPECT_EQ(c.shown(within), "PENDING None");
  EXPECT_EQ(c.at(at).begin_time, kStart + 600);
  EXPECT_EQ(c.at(until).deadline, kStart + 600);
  const bool over = by >= 600;
  EXPECT_EQ(c.state.key_of(at).has_value(), over);
  EXPECT_EQ(c.shown(until), over ? "DEADLINE DeadLine" : "PENDING None");
}

TEST_P(ClockIsSet, WhatWasReachedIsWaitedForAgainWhenTheClockSaysSo) {
  const JobId at = c.submit("-n1 --mem=1G --begin=" + time_of_day(kStart + 10));
  pass(c, 20);
  ASSERT_TRUE(c.state.key_of(at));
  set_clock(c, by);
  EXPECT_EQ(c.state.key_of(at).has_value(), by > 0);
  if (by > 0) return;
  pass(c, kStart + 9 - c.now);
  EXPECT_FALSE(c.state.key_of(at));
  pass(c, 1);
  EXPECT_TRUE(c.state.key_of(at));
}

TEST_P(ClockIsSet, ASilentNodeIsDownNoSoonerAndNoLater) {
  const std::string node = c.state.cluster().nodes[0].name;
  c.state.node_lost(node, c.now);
  pass(c, 100);
  set_clock(c, by);
  c.state.tick(c.now);
  EXPECT_FALSE(c.state.find_node(node)->down);
  pass(c, 199);
  EXPECT_FALSE(c.state.find_node(node)->down);
  pass(c, 1);
  EXPECT_TRUE(c.state.find_node(node)->down);
}

TEST_P(ClockIsSet, ASuspendedJobAndTheAgeOfOneThatWaits) {
  const JobId id = c.started("-n1 --mem=1G -t 30");
  pass(c, 60);
  ASSERT_TRUE(c.state.suspend(id, kRoot, c.now));
  const JobId waits = c.submit("-n1 --mem=1G");
  pass(c, 100);
  set_clock(c, by);
  pass(c, 100);
  ASSERT_TRUE(c.state.resume(id, kRoot, c.now));
  EXPECT_EQ(c.at(id).seconds_suspended, 200);
  EXPECT_EQ(*c.at(id).limit_at() - c.now, 1800 - 60);
  EXPECT_EQ(c.now - c.at(waits).accrue_since, 200);
}

TEST_P(ClockIsSet, HistoryStaysAndIsForgottenAfterMinJobAge) {
  const JobId id = c.started("-n1 --mem=1G");
  c.runs_to_the_end(id);
  c.state.take_dirty();
  pass(c, 100);
  set_clock(c, by);
  EXPECT_TRUE(c.state.take_dirty().jobs.empty());
  EXPECT_EQ(c.at(id).end_time, kStart);
  pass(c, 199);
  ASSERT_NE(c.state.find(id), nullptr);
  pass(c, 1);
  EXPECT_EQ(c.state.find(id), nullptr);
}

TEST_P(ClockIsSet, AStepThatIsHeardOfAgainKeepsItsTime) {
  const JobId id = c.started("-n1 --mem=1G");
  c.state.take_effects();
  wire::CreateStep ask;
  ask.set_job_id(id);
  ask.mutable_asked()->set_command("srun");
  for (const char* word : {"-n1", "-t", "10", "app"}) ask.mutable_asked()->add_words(word);
  c.state.create_step(ask, 1, kAlice, c.now);
  const auto grants = c.effects<GrantStep>();
  ASSERT_EQ(grants.size(), 1U);
  pass(c, 60);
  set_clock(c, by);
  const Step& known = c.at(id).running->open_steps.at(0);
  EXPECT_EQ(c.now - known.start, 60);
  EXPECT_EQ(*known.limit_at - c.now, 540);
  // Its node has the spec of before.
  c.state.step_started(grants[0].specs[0], c.at(id).nodes[0], c.now);
  const Step& heard = c.at(id).running->open_steps.at(0);
  EXPECT_EQ(c.now - heard.start, 60);
  EXPECT_EQ(*heard.limit_at - c.now, 540);
}

TEST_P(ClockIsSet, AReservationIsWhereItWas) {
  reservation::Reservation one;
  one.name = "course";
  one.start = kStart + 600;
  one.end = kStart + 1200;
  one.allocation.whole_nodes = true;
  one.allocation.nodes.emplace_back().node = 0;
  c.state.keep_reservation(one, c.now);
  set_clock(c, by);
  c.state.tick(c.now);
  const reservation::Reservation* kept = c.state.find_reservation("course");
  EXPECT_EQ(kept == nullptr, by >= 1200);
  if (kept == nullptr) return;
  EXPECT_EQ(kept->start, kStart + 600);
  EXPECT_EQ(kept->end, kStart + 1200);
}

TEST_P(ClockIsSet, ARequeuedJobWaitsAsLongAndALeaseIsAsLong) {
  Policy policy;
  policy.requeue_lease = 3600;
  Controller own(policy);
  const JobId id = own.started("-n1 --mem=1G");
  const std::string node = own.at(id).nodes[0];
  own.state.node_lost(node, own.now);
  pass(own, 300);
  ASSERT_EQ(own.at(id).may_run_on.at(node) - own.now, 3600 + 1 - 300);
  set_clock(own, by);
  EXPECT_EQ(own.at(id).may_run_on.at(node) - own.now, 3600 + 1 - 300);
  EXPECT_EQ(own.at(id).begin_time - own.now, 120);
}

TEST_P(ClockIsSet, ALateEndIsTranslatedFromTheClockOfItsNode) {
  struct Case {
    std::int64_t clock_ahead;  // of the node, as it told
    std::int64_t told;         // the end, from the start of the job
    Time expected;
  };
  for (const Case& one : {
           Case{0, 100, 100},
           Case{kHour, kHour + 100, 100},
           Case{-kHour, -kHour + 100, 100},
           Case{0, 5000, 160},  // not after it was heard of
           Case{0, -5000, 0},   // nor before it began
           Case{INT64_MAX, 100, 0},
           Case{INT64_MIN, 100, 160},
           Case{INT64_MIN, INT64_MAX - 2 * kStart, 160},
       }) {
    SCOPED_TRACE(fmt::format("{} {}", one.clock_ahead, one.told));
    Controller own;
    const JobId id = own.started("-n1 --mem=1G");
    const std::string node = own.at(id).nodes[0];
    pass(own, 150);
    ASSERT_TRUE(own.state.cancel(id, {.caller = kRoot, .signal = {}}, own.now));
    own.gone(id);
    set_clock(own, by);
    pass(own, 10);
    own.state.take_dirty();
    wire::Beat beat;
    beat.set_clock_ahead_seconds(one.clock_ahead);
    own.state.node_beat(node, beat);
    wire::StepEnded message;
    message.set_node(node);
    message.set_job_id(id);
    message.set_attempt(1);
    message.set_step_id(wire::kBatchStep);
    message.add_statuses(0);
    message.set_ended(kStart + by + one.told);
    own.state.step_ended(message, own.now);
    const Dirty dirty = own.state.take_dirty();
    ASSERT_EQ(dirty.steps.size(), 1U);
    EXPECT_EQ(dirty.steps[0].end_time() - kStart, one.expected);
  }
}

// ---- What is remembered is in the table ------------------------------------------------------

std::string text_of(const std::string& path) {
  std::ifstream file(std::filesystem::path(BERTH_SOURCE_DIR) / path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> names_in_the_table() {
  const std::string table = text_of("src/job/moments.h");
  std::set<std::string> out;
  const std::regex row(R"re((?:at|maybe)\("([A-Za-z.]+[a-z_]+)")re");
  for (std::sregex_iterator at(table.begin(), table.end(), row), end; at != end; ++at) {
    out.insert((*at)[1]);
  }
  return out;
}

TEST(Moments, EveryOneThatIsDeclaredIsInTheTable) {
  const std::set<std::string> table = names_in_the_table();
  // Of these types, times in seconds that are lengths and no moments.
  const std::set<std::string> lengths = {"Job.accrued",
                                         "Job.lease",
                                         "Job.seconds_suspended",
                                         "Job.clock_moved",
                                         "NodeState.clock_ahead",
                                         "Memory.adopted",
                                         "Memory.longest_wake",
                                         "Reservation.max_start_delay",
                                         "Reservation.purge_after"};
  const std::set<std::string> of = {"Job",     "Step",      "Running",    "Preempted",
                                    "GpuUses", "NodeState", "NodePower",  "GpuIdleClock",
                                    "Memory",  "Pause",     "Reservation"};
  std::size_t found = 0;
  for (const char* file : {"src/job/types.h", "src/job/power.h", "src/job/gpu_idle_clock.h",
                           "src/job/memory.h", "src/reservation/reservation.h"}) {
    std::istringstream in(text_of(file));
    const std::regex begins(R"(^(?:struct|class) (?:State::)?(\w+) \{)");
    const std::regex member(
        R"(^\s+(?:std::optional<)?(?:Time|std::int64_t|Seconds)>? (\w+)(?: = [^,;)]*)?(?:, (\w+) = 0)?;)");
    std::string type;
    for (std::string line; std::getline(in, line);) {
      std::smatch m;
      if (std::regex_search(line, m, begins)) type = m[1];
      if (!of.contains(type) || !std::regex_search(line, m, member)) continue;
      for (const std::string& name : {m[1].str(), m[2].str()}) {
        if (name.empty()) continue;
        ++found;
        const std::string full = type + "." + name;
        EXPECT_TRUE(table.contains(full) || lengths.contains(full)) << full << " in " << file;
      }
    }
  }
  EXPECT_GT(found, 30U) << "the members are written in another way";
}

TEST(Moments, TheDesignPageHasTheSameTable) {
  const std::string page = text_of("docs/design/controller.md");
  for (const std::string& name : names_in_the_table()) {
    EXPECT_TRUE(page.contains("`" + name + "`")) << name;
  }
}

TEST(Moments, WhatIsALength) {
  EXPECT_TRUE(text::when_is_length("now+1hour"));
  EXPECT_TRUE(text::when_is_length(" NOW "));
  EXPECT_FALSE(text::when_is_length("16:00"));
  EXPECT_FALSE(text::when_is_length("2026-12-01T08:00"));
  EXPECT_FALSE(text::when_is_length("tomorrow"));
}

// ---- Property: a State whose clock is set does what it would have done --------------------------

/// One is left alone, the clock of the other is set again and again.
struct Twins {
  explicit Twins(const Policy& policy) : plain(policy), set(policy) {}
  Controller plain, set;
  Time ahead = 0;

  template <class Do>
  void both(Do&& what) {
    what(plain);
    what(set);
  }
  void shift(Time by) {
    ahead += by;
    set_clock(set, by);
  }
  /// Effects by kind; programs of power saving are carried out.
  static std::vector<std::size_t> effects_of(Controller& c) {
    std::vector<std::size_t> out;
    for (const Effect& effect : c.state.take_effects()) {
      out.push_back(effect.index());
      if (const auto* one = std::get_if<SwitchNodes>(&effect)) c.state.power_told(one->nodes);
    }
    return out;
  }
  void pass_to(Time until) {
    for (;;) {
      // Either may look sooner than it needs to.
      const Time next = std::min(plain.state.next_deadline().value_or(until + 1),
                                 set.state.next_deadline().value_or(until + 1 + ahead) - ahead);
      if (next > until) break;
      // What stays due is due with the next second.
      const bool again = next <= plain.now;
      both([&, step = again ? 1 : next - plain.now](Controller& c) { pass(c, step); });
      compare();
      if (::testing::Test::HasFatalFailure()) return;
    }
    both([&, step = std::max<Time>(until - plain.now, 0)](Controller& c) { pass(c, step); });
  }
  static std::string told(const Controller& c, const Job& job) {
    const auto ago = [&](Time moment) { return moment == 0 ? 0 : c.now - moment; };
    // Priorities are worked out anew when the clock is set, sooner than they would be: the age is
    // what has to be the same.
    std::string out =
        fmt::format("{} {} {} held {}", job.id, c.shown(job.id), job.reason_text, job.held);
    if (job.over()) return out;
    out += fmt::format(
        " submit {} begin {} eligible {} start {} end {} suspended {} {} deadline {} accrue {} {} "
        "limit {}",
        ago(job.submit_time), ago(job.begin_time), ago(job.eligible_time), ago(job.start_time),
        ago(job.end_time), ago(job.suspend_time), job.seconds_suspended, ago(job.deadline),
        ago(job.accrue_since), job.accrued, ago(job.limit_at().value_or(0)));
    for (const auto& [node, until] : job.may_run_on) out += fmt::format(" {} {}", node, ago(until));
    return out + " " + job.waits.text(c.now);
  }
  void compare() {
    ASSERT_EQ(plain.state.jobs().size(), set.state.jobs().size());
    for (const auto& [id, job] : plain.state.jobs()) {
      ASSERT_EQ(told(plain, job), told(set, set.at(id)));
    }
    for (cluster::NodeIndex i = 0; i < plain.state.cluster().nodes.size(); ++i) {
      const NodeState& a = plain.state.node(i);
      const NodeState& b = set.state.node(i);
      ASSERT_EQ(a.down, b.down);
      ASSERT_EQ(a.power.phase, b.power.phase);
      ASSERT_EQ(a.usable(), b.usable());
    }
    ASSERT_EQ(effects_of(plain), effects_of(set));
  }
};

TEST(Moments, AStateWhoseClockIsSetDoesWhatItWouldHaveDone) {
  const int rounds = std::getenv("BERTH_SOAK") != nullptr ? 2000 : 60;
  const std::vector<std::string> lines = {
      "-n1 --mem=1G -t 10",
      "-N2 -n2 --mem=1G --gres=gpu:1 -t 30 --signal=USR1@60",
      "-n1 --mem=1G -t 5 --begin=now+600",
      "-n1 --mem=1G -t 5 --array=0-3%2",
      "-n1 --mem=1G -t 20 --deadline=now+7200",
      "-n1 --mem=1G --requeue -t 60",
      "-n1 --mem=1G --hold",
      "-n1 --mem=1G",
  };
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    std::mt19937 random(static_cast<unsigned>(round));
    const auto pick = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
    Policy policy;
    policy.priority.weight_age = 100000;
    policy.over_time_minutes = 1;
    policy.complete_wait = round % 3 == 0 ? 30 : 0;
    if (round % 2 == 0) {
      policy.power.enabled = true;
      policy.power.suspend = 300;
    }
    Twins twins(policy);
    std::vector<JobId> ids;
    for (int i = 0; i < 120; ++i) {
      const std::string& node =
          twins.plain.state.cluster().nodes[pick(twins.plain.state.cluster().nodes.size())].name;
      const JobId id = ids.empty() ? 0 : ids[pick(ids.size())];
      const Job* job = twins.plain.state.find(id);
      const bool runs = job != nullptr && job->base == Base::running && !job->flags.completing;
      switch (pick(12)) {
        case 0:
        case 1: {
          std::string line = lines[pick(lines.size())];
          if (job != nullptr && pick(4) == 0) line += fmt::format(" -d after:{}+5", id);
          ids.push_back(twins.plain.submit(line));
          ASSERT_EQ(twins.set.submit(line), ids.back());
          break;
        }
        case 2:
        case 3:
          if (job != nullptr && job->pending()) {
            const bool started = twins.plain.start(id);
            ASSERT_EQ(twins.set.start(id), started);
          }
          break;
        case 4:
          if (runs) twins.both([&](Controller& c) { c.begun(id); });
          break;
        case 5:
          if (runs && job->running->open_steps.contains(wire::kBatchStep)) {
            twins.both([&](Controller& c) { c.script_ends(id, 0); });
          }
          break;
        case 6:
          if (job != nullptr && job->flags.completing) {
            twins.both([&](Controller& c) { c.gone(id); });
          }
          break;
        case 7:
          if (runs) {
            twins.both([&](Controller& c) { (void)c.state.suspend(id, kRoot, c.now); });
          } else if (job != nullptr && job->base == Base::suspended) {
            twins.both([&](Controller& c) { (void)c.state.resume(id, kRoot, c.now); });
          }
          break;
        case 8:
          if (runs && pick(3) == 0) {
            twins.both([&](Controller& c) { (void)c.state.requeue(id, kRoot, false, c.now); });
          }
          break;
        case 9:
          if (pick(4) == 0) {
            twins.both([&](Controller& c) { c.state.node_lost(node, c.now); });
          } else {
            twins.both([&](Controller& c) { c.up(node); });
          }
          break;
        default:
          twins.pass_to(twins.plain.now + static_cast<Time>(pick(400)));
      }
      if (::testing::Test::HasFatalFailure()) return;
      if (pick(10) == 0) twins.shift(static_cast<Time>(pick(20000)) - 10000);
      twins.compare();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace berth::job::testing
