#include "command/scancel.h"

#include <gtest/gtest.h>

#include <csignal>

namespace berth::command {
namespace {

Result<CancelWords> cancel_words(std::vector<std::string> words,
                                 request::Environment environment = {}) {
  return parse_scancel(words, environment);
}

TEST(Scancel, JobsAndFilters) {
  const auto words =
      cancel_words({"12_[2-3],13", "-t", "pd,RUNNING", "14.0", "-u", "bob", "-s", "USR1"});
  ASSERT_TRUE(words);
  EXPECT_EQ(words->ask.jobs_size(), 3);
  EXPECT_EQ(words->ask.jobs(0).array_set(), "2-3");
  EXPECT_EQ(words->ask.states(0), "PENDING");
  EXPECT_EQ(words->ask.states(1), "RUNNING");
  EXPECT_EQ(words->ask.signal(), SIGUSR1);
  EXPECT_TRUE(words->ask.filters_given());
}

TEST(Scancel, NothingNamed) {
  const auto words = cancel_words({});
  ASSERT_FALSE(words);
  EXPECT_EQ(words.error().what(), "No job identification provided");
  EXPECT_EQ(words.error().exit_code, 1);
  EXPECT_TRUE(cancel_words({"--me"}));
  EXPECT_FALSE(cancel_words({"-f"}));
}

TEST(Scancel, RefusesWhatItDoesNotDo) {
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"abc"},
                                             {"-t", "COMPLETED", "1"},
                                             {"-s", "NOPE", "1"},
                                             {"-c", "1"},
                                             {"-M", "other", "1"}}) {
    EXPECT_FALSE(cancel_words(bad)) << bad[0];
  }
}

TEST(Scancel, CommandLineBeatsVariable) {
  const auto words =
      cancel_words({"-n", "mine"}, {{"SCANCEL_NAME", "theirs"}, {"SCANCEL_BATCH", ""}});
  ASSERT_TRUE(words);
  ASSERT_EQ(words->ask.names_size(), 1);
  EXPECT_EQ(words->ask.names(0), "mine");
  EXPECT_TRUE(words->ask.batch_only());
}

TEST(Scancel, Signals) {
  EXPECT_EQ(parse_signal("SIGterm"), SIGTERM);
  EXPECT_EQ(parse_signal("9"), SIGKILL);
  EXPECT_FALSE(parse_signal("0"));
  EXPECT_FALSE(parse_signal("sig"));
}

TEST(Scancel, OnlyAnotherUsersJobFails) {
  wire::Results results;
  results.add_jobs()->set_code("invalid_job_id");
  EXPECT_EQ(cancel_exit_code(results), 0);
  results.add_jobs()->set_code("access_denied");
  EXPECT_EQ(cancel_exit_code(results), 210);
}

}  // namespace
}  // namespace berth::command
