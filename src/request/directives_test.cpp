// Which lines of a script are options, and what stands on them.
#include "request/directives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "request/parse_testing.h"

namespace berth::request {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::outcome;
using testing::parse_line;

/// "2: a b / 4: c" or the first line of the error.
std::string shown(std::string_view script) {
  std::vector<Message> warnings;
  const Result<std::vector<Directive>> found = find_directives(script, "job.sh", warnings);
  if (!found) return std::string(found.error().what());
  std::string out;
  for (const Directive& directive : *found) {
    if (!out.empty()) out += " / ";
    out += std::to_string(directive.line) + ":";
    for (const std::string& word : directive.words) out += " [" + word + "]";
  }
  return out;
}

TEST(Directives, OnlyExactLinesBeforeTheFirstCommand) {
  EXPECT_EQ(shown("#!/bin/bash\n# c\n#SBATCH -n2\n\n  # x\n#SBATCH -N1\necho\n#SBATCH -J late\n"),
            "3: [-n2] / 6: [-N1]");
  EXPECT_EQ(shown("#!/bin/bash\n##SBATCH -n2\n# SBATCH -n2\n #SBATCH -n2\n#sbatch -n2\n"), "");
  EXPECT_EQ(shown("#!/bin/bash\nset -e\n#SBATCH -n2\n"), "");
  EXPECT_EQ(shown("#SBATCH -n2"), "1: [-n2]");  // last line without a newline
  EXPECT_EQ(shown("#!/bin/sh\n#SLURM -n2\n"), "2: [-n2]");
}

TEST(Directives, WordsQuotesEscapesRemarks) {
  EXPECT_EQ(shown("#SBATCH -n 2\t-N1  --mem=1G"), "1: [-n] [2] [-N1] [--mem=1G]");
  EXPECT_EQ(shown("#SBATCH --comment=\"a b\" -J 'c d'"), "1: [--comment=a b] [-J] [c d]");
  EXPECT_EQ(shown("#SBATCH -J a\\ b"), "1: [-J] [a b]");
  EXPECT_EQ(shown("#SBATCH -J a\\\"b"), "1: [-J] [a\"b]");
  EXPECT_EQ(shown("#SBATCH -J \"it's\""), "1: [-J] [it's]");
  EXPECT_EQ(shown("#SBATCH -o a\\b"), "1: [-o] [a\\b]");  // other backslashes stay
  EXPECT_EQ(shown("#SBATCH -J \"\""), "1: [-J] []");
  EXPECT_EQ(shown("#SBATCH -n2 # remark"), "1: [-n2]");
  EXPECT_EQ(shown("#SBATCH -J a#b c"), "1: [-J] [a]");
  EXPECT_EQ(shown("#SBATCH -J 'a#b'"), "1: [-J] [a#b]");
  EXPECT_EQ(shown("#SBATCH -J $USER `x`"), "1: [-J] [$USER] [`x`]");
  EXPECT_EQ(shown("#SBATCH"), "1:");
  EXPECT_EQ(shown("#SBATCH-n2"), "1: [-n2]");
}

TEST(Directives, OpenQuoteIsFatal) {
  const std::string script = "#!/bin/sh\n#SBATCH -J \"a b\n";
  EXPECT_EQ(outcome("sbatch job.sh", {}, script),
            "1: sbatch: fatal: job.sh: line 2: Unmatched `\"` in [-J \"a b]");
}

TEST(Scripts, AreCheckedFirst) {
  EXPECT_EQ(outcome("sbatch x", {}, ""), "1: sbatch: error: Batch script is empty!");
  EXPECT_EQ(outcome("sbatch x", {}, " \n\n"),
            "1: sbatch: error: Batch script contains only whitespace!");
  EXPECT_EQ(outcome("sbatch x", {}, "echo\n"),
            "1: sbatch: error: This does not look like a batch script.  The first | "
            "sbatch: error: line must start with #! followed by the path to an interpreter. | "
            "sbatch: error: For instance: #!/bin/sh");
  EXPECT_EQ(outcome("sbatch x", {}, "#!/bin/sh\r\necho\r\n"),
            "1: sbatch: error: Batch script contains DOS line breaks (\\r\\n) | "
            "sbatch: error: instead of expected UNIX line breaks (\\n).");
  EXPECT_EQ(outcome("sbatch x", {}, std::string_view("#!/bin/sh\n\0", 11)),
            "1: sbatch: error: Batch script contains a NUL character");
  EXPECT_EQ(outcome("sbatch x", {}, "#!/bin/sh\n" + std::string(kMaxScript, '#')),
            "1: sbatch: error: Batch script is too big");
  EXPECT_EQ(outcome("sbatch --nosuch x", {}, ""),
            "255: sbatch: unrecognized option '--nosuch' | "
            "Try \"sbatch --help\" for more information");
  EXPECT_EQ(outcome("sbatch --wrap x", {}, ""), "ok");
}

TEST(Directives, ErrorsOnThem) {
  EXPECT_EQ(outcome("sbatch x", {}, "#!/bin/sh\n#SBATCH --foo=1\n"),
            "255: sbatch: unrecognized option '--foo=1' | "
            "Try \"sbatch --help\" for more information");
  EXPECT_EQ(outcome("sbatch x", {}, "#!/bin/sh\n#SBATCH -n2\n#SBATCH -J my job\n"),
            "1: sbatch: error: Invalid directive found in batch script: job");
  EXPECT_EQ(outcome("sbatch x", {}, "#!/bin/sh\n#SBATCH -n two\n"),
            "1: sbatch: error: Invalid numeric value \"two\" for --ntasks.");
  // Even when the command line says better.
  EXPECT_EQ(outcome("sbatch -n2 x", {}, "#!/bin/sh\n#SBATCH -n two\n"),
            "1: sbatch: error: Invalid numeric value \"two\" for --ntasks.");
  EXPECT_THAT(parse_line("sbatch x", {}, "#!/bin/sh\n\n#SBATCH -N1 --foo\n").error().hint,
              HasSubstr("line 3 of the script"));
  EXPECT_THAT(parse_line("sbatch x", {}, "#!/bin/sh\n\n\n#SBATCH -J a b\n").error().hint,
              HasSubstr("line 4 of the script"));
}

TEST(Directives, LinesMakeOneListOfWords) {
  const auto parsed = parse_line("sbatch x", {}, "#!/bin/sh\n#SBATCH --mem\n#SBATCH 2G\n");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->components[0].memory, (Memory{MemoryPer::node, 2048}));
  EXPECT_EQ(parsed->components[0].given.find(Opt::mem)->line, 2);
}

TEST(Directives, HetjobSeparatesComponents) {
  const auto parsed =
      parse_line("sbatch -J name job.sh", {},
                 "#!/bin/sh\n#SBATCH -n1 --mem=1G -A acc\n#SBATCH hetjob\n#SBATCH -n2 -w cpu1\n");
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->components.size(), 2u);
  const Request& first = parsed->components[0];
  const Request& second = parsed->components[1];
  EXPECT_EQ(first.ntasks, 1u);
  EXPECT_THAT(first.argv, ElementsAre("job.sh"));
  EXPECT_EQ(second.ntasks, 2u);
  EXPECT_EQ(second.memory, std::nullopt);
  EXPECT_THAT(second.nodelist, ElementsAre("cpu1"));
  EXPECT_EQ(second.job_name, "name");  // said once for the whole job
  EXPECT_EQ(second.given.find(Opt::account)->text, "acc");
  EXPECT_TRUE(second.argv.empty());
}

TEST(Foreign, PbsAndBsub) {
  auto parsed = parse_line("sbatch x", {},
                           "#!/bin/sh\n#PBS -N name\n#PBS -l nodes=2:ppn=4,walltime=1:00:00\n"
                           "#PBS -q fast\n#BSUB -n 9\n#PBS -W depend=1\n");
  ASSERT_TRUE(parsed);
  const Request& pbs = parsed->components[0];
  EXPECT_EQ(pbs.job_name, "name");
  EXPECT_EQ(pbs.nodes->min, 2u);
  EXPECT_EQ(pbs.ntasks_per_node, 4u);
  EXPECT_EQ(pbs.time_limit, std::optional(std::optional(60u)));
  EXPECT_THAT(pbs.partitions, ElementsAre("fast"));
  EXPECT_EQ(pbs.ntasks, std::nullopt);  // one dialect a script
  ASSERT_EQ(parsed->warnings.size(), 1u);
  EXPECT_THAT(parsed->warnings[0].text, HasSubstr("line 6: \"#PBS -W depend=1\""));

  parsed = parse_line("sbatch x", {}, "#!/bin/sh\n#BSUB -n 4\n#BSUB -W 1:30\n#BSUB -J n\n");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->components[0].ntasks, 4u);
  EXPECT_EQ(parsed->components[0].time_limit, std::optional(std::optional(90u)));

  for (const char* line : {"sbatch --ignore-pbs x"}) {
    parsed = parse_line(line, {}, "#!/bin/sh\n#PBS -N name\n#PBS -Z\n");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->components[0].job_name, std::nullopt);
    EXPECT_TRUE(parsed->warnings.empty());
  }
}

}  // namespace
}  // namespace berth::request
