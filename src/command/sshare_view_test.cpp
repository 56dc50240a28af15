#include "command/sshare_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::command {
namespace {

using ::testing::HasSubstr;

/// What `sshare WORDS` prints for alice, or its error and the hint.
std::string sshare(std::vector<std::string> words) {
  const Result<SshareOptions> options = parse_sshare(words);
  if (!options) return std::string(options.error().what()) + " | " + options.error().hint;
  const std::vector<std::string> members = {"alice", "bob", "carol", "root"};
  const Result<std::string> text = sshare_text(*options, "lab", members, "alice");
  if (!text) return std::string(text.error().what()) + " | " + text.error().hint;
  return *text;
}

TEST(Sshare, AnswersWhatSnakemakeAndExportersAsk) {
  EXPECT_EQ(sshare({"-U", "--format", "Account%12", "--noheader"}), "     default \n");
  EXPECT_EQ(sshare({"-n", "-P", "-o", "account,fairshare"}), "default|\n default|0.000000\n");
}

TEST(Sshare, HasTheColumnsOfSlurm) {
  EXPECT_EQ(sshare({}),
            "Account                    User  RawShares  NormShares    RawUsage  EffectvUsage  "
            "FairShare \n"
            "-------------------- ---------- ---------- ----------- ----------- ------------- "
            "---------- \n"
            "default                                  1    1.000000           0      0.000000      "
            "      \n"
            " default                  alice          1    0.250000           0      0.000000   "
            "0.000000 \n");
  EXPECT_EQ(sshare({"-P", "-l", "-m", "-U"}),
            "Account|User|Partition|RawShares|NormShares|RawUsage|NormUsage|EffectvUsage|FairShare|"
            "LevelFS|GrpTRESMins|TRESRunMins\n"
            "default|alice||1|0.250000|0|0.000000|0.000000|0.000000|inf||\n");
}

TEST(Sshare, ShowsTheUsersAndAccountsAskedFor) {
  EXPECT_EQ(sshare({"-nP", "-U", "-a", "-o", "user"}), "alice\nbob\ncarol\nroot\n");
  EXPECT_EQ(sshare({"-nP", "-U", "-u", "bob,nobody,root", "-o", "user"}), "bob\nroot\n");
  EXPECT_EQ(sshare({"-nP", "-a", "-A", "physics", "-o", "user"}), "");
  EXPECT_EQ(sshare({"-np", "-A", "default", "-o", "user,cluster"}), "|lab|\nalice|lab|\n");
}

TEST(Sshare, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(sshare({"-o", "Wealth"}),
            "Invalid field requested: \"Wealth\" | sshare --helpformat lists the fields");
  EXPECT_THAT(sshare({"--json"}), HasSubstr("--json is not available"));
  EXPECT_THAT(sshare({"alice"}), HasSubstr("Unrecognized option: alice"));
}

}  // namespace
}  // namespace berth::command
