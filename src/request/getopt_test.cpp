// getopt_long in "+" mode over words.
#include "request/getopt.h"

#include <gtest/gtest.h>

#include "request/parse_testing.h"
#include "request/table.h"

namespace berth::request {
namespace {

/// "ntasks=4 verbose | command a b".
std::string shown(Command command, const std::string& line) {
  const std::vector<std::string> words = testing::words_of(line);
  const Result<Scanned> scanned = scan_words(command, words);
  if (!scanned) return "error: " + std::string(scanned.error().what());
  std::string out;
  for (const Occurrence& option : scanned->options) {
    out += std::string(row_of(option.opt).name);
    if (row_of(option.opt).argument != Argument::none) out += "=" + option.text;
    out += " ";
  }
  out += "|";
  for (std::size_t i = scanned->rest; i < words.size(); ++i) out += " " + words[i];
  return out;
}

struct Case {
  const char* line;
  const char* expected;
};

TEST(Getopt, Srun) {
  constexpr Case kCases[] = {
      {"-n4 -N 2 --mem=1G cmd -x", "ntasks=4 nodes=2 mem=1G | cmd -x"},
      {"--ntasks 4 cmd", "ntasks=4 | cmd"},
      {"-ln2 cmd", "label ntasks=2 | cmd"},
      {"-lvEn 2 cmd", "label verbose preserve-env ntasks=2 | cmd"},
      {"-I cmd", "immediate= | cmd"},
      {"-I60 cmd", "immediate=60 | cmd"},
      {"--immediate=5 cmd", "immediate=5 | cmd"},
      {"--immediate 5 cmd", "immediate= | 5 cmd"},
      {"-K0 cmd", "kill-on-bad-exit=0 | cmd"},
      {"-- -n2", "| -n2"},
      {"-n2 -- -n3", "ntasks=2 | -n3"},
      {"- -n2", "| - -n2"},
      {"", "|"},
      {"--part=a cmd", "partition=a | cmd"},
      {"--nodeli=a cmd", "nodelist=a | cmd"},
      {"--nodes=2 cmd", "nodes=2 | cmd"},  // exact although --nodes… has no longer form
      {"--gpus=2 cmd", "gpus=2 | cmd"},    // exact although --gpus-per-… begin with it
      {"--gpu=2 cmd",
       "error: option '--gpu=2' is ambiguous; possibilities: '--gpu-bind' "
       "'--gpu-freq' '--gpus' '--gpus-per-node' '--gpus-per-socket' "
       "'--gpus-per-task'"},
      {"--mem= cmd", "mem= | cmd"},
      {"--tasks-per-node=2 cmd", "ntasks-per-node=2 | cmd"},
      {"--pack-group=1 cmd", "het-group=1 | cmd"},
      {"--cpu_bind=none cmd", "cpu-bind=none | cmd"},  // as likwid and old scripts write it
      {"--cpu_bind v,cores cmd", "cpu-bind=v,cores | cmd"},
      {"--cpu-b=none cmd", "cpu-bind=none | cmd"},
      {"-n -1 cmd", "ntasks=-1 | cmd"},
      {"--overl cmd", "overlap | cmd"},
  };
  for (const Case& one : kCases) {
    EXPECT_EQ(shown(Command::srun, one.line), one.expected) << one.line;
  }
}

TEST(Getopt, LettersDifferByCommand) {
  EXPECT_EQ(shown(Command::salloc, "-K sh"), "kill-command= | sh");
  EXPECT_EQ(shown(Command::srun, "-K sh"), "kill-on-bad-exit= | sh");
  EXPECT_EQ(shown(Command::sbatch, "-W job"), "wait | job");
  EXPECT_EQ(shown(Command::srun, "-W 5 job"), "wait=5 | job");
  EXPECT_EQ(shown(Command::sbatch, "-b now job"), "begin=now | job");
  EXPECT_EQ(shown(Command::salloc, "--begin now job"), "begin=now | job");
}

TEST(Getopt, SaysWhichWordFailed) {
  const std::vector<std::string> words = {"-n2", "--mem", "1G", "--nosuch", "x"};
  std::size_t failed = 0;
  EXPECT_FALSE(scan_words(Command::srun, words, 0, &failed));
  EXPECT_EQ(failed, 3u);
}

TEST(FirstArgument, IsTheProgram) {
  const auto first = [](Command command, const std::string& line) {
    return first_argument(command, testing::words_of(line));
  };
  EXPECT_EQ(first(Command::sbatch, "-N2 --mem 1G job.sh -N3"), 3u);
  EXPECT_EQ(first(Command::sbatch, "-N2 : -n4 job.sh"), 3u);
  EXPECT_EQ(first(Command::srun, "-n1 a : -n2 b"), 1u);
  EXPECT_EQ(first(Command::srun, "-n1 : -n2 b"), 3u);
  EXPECT_EQ(first(Command::sbatch, "--wrap x"), 2u);
  EXPECT_EQ(first(Command::sbatch, "--nosuch job.sh"), 2u);
}

}  // namespace
}  // namespace berth::request
