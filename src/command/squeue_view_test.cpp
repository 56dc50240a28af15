// squeue against what Slurm printed (the recorded samples), and the command lines of clients.
#include "command/squeue_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include "command/show_samples_test_fixture.h"
#include "command/squeue_fields.h"
#include "wire/job_list.h"
#include "wire/step_ids.h"

namespace berth::command {
namespace {

std::string squeue(std::vector<std::string> words, const request::Environment& environment = {},
                   std::int64_t now = kSampleTime) {
  const Result<SqueueOptions> options = parse_squeue(words, environment);
  if (!options) return "refused: " + std::string(options.error().what());
  Shown shown;
  shown.now = now;
  shown.times = time_format(environment);
  shown.cluster = "oracle";
  shown.convert = options->convert;
  const wire::JobsReply reply = sample_jobs();
  const Result<std::string> text = squeue_text(*options, reply, shown, Viewer{1001});
  return text ? *text : "refused: " + std::string(text.error().what());
}

TEST(Squeue, PrintsTheRecordedListings) {
  use_utc();
  EXPECT_EQ(squeue({}),
            R"(             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
     20780_[1-4%2]     debug      arr    alice PD       0:00      1 (JobHeldUser)
             20779     debug     held    alice PD       0:00      1 (JobHeldUser)
             20778     debug   sample    alice  R       0:02      2 gpu[1-2]
             20781 gpu_parti   toobig    alice PD       0:00      6 (Resources)
)");
  EXPECT_EQ(squeue({"-l"}), R"(Sun Nov 15 08:24:50 2026
             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)
     20780_[1-4%2]     debug      arr    alice  PENDING       0:00 UNLIMITED      1 (JobHeldUser)
             20779     debug     held    alice  PENDING       0:00 UNLIMITED      1 (JobHeldUser)
             20778     debug   sample    alice  RUNNING       0:02     10:00      2 gpu[1-2]
             20781 gpu_parti   toobig    alice  PENDING       0:00 UNLIMITED      6 (Resources)
)");
  EXPECT_EQ(
      squeue({"--start"}),
      R"(             JOBID PARTITION     NAME     USER ST          START_TIME  NODES SCHEDNODES           NODELIST(REASON)
             20781 gpu_parti   toobig    alice PD 2026-11-15T08:34:48      6 gpu[1-6]             (Resources)
             20779     debug     held    alice PD                 N/A      1 (null)               (JobHeldUser)
     20780_[1-4%2]     debug      arr    alice PD                 N/A      1 (null)               (JobHeldUser)
)");
  EXPECT_EQ(squeue({"-s"}, {}, kSampleTime + 1),
            R"(         STEPID     NAME PARTITION     USER      TIME NODELIST
        20778.1 stepname     debug    alice      0:02 gpu[1-2]
    20778.batch    batch     debug    alice      0:03 gpu1
)");
}

TEST(Squeue, PrintsEveryFieldAsRecorded) {
  use_utc();
  EXPECT_EQ(
      squeue({"-o", "%all"}, {}, kSampleTime + 1),
      R"(ACCOUNT|TRES_PER_NODE|MIN_CPUS|MIN_TMP_DISK|END_TIME|FEATURES|GROUP|OVER_SUBSCRIBE|JOBID|NAME|COMMENT|TIME_LIMIT|MIN_MEMORY|REQ_NODES|COMMAND|PRIORITY|QOS|REASON|SLUID|ST|USER|RESERVATION|WCKEY|EXC_NODES|NICE|S:C:T|JOBID|EXEC_HOST|CPUS|NODES|DEPENDENCY|ARRAY_JOB_ID|GROUP|SOCKETS_PER_NODE|CORES_PER_SOCKET|THREADS_PER_CORE|ARRAY_TASK_ID|TIME_LEFT|TIME|NODELIST|CONTIGUOUS|PARTITION|PRIORITY|NODELIST(REASON)|START_TIME|STATE|UID|SUBMIT_TIME|LICENSES|CORE_SPEC|SCHEDNODES|WORK_DIR|
(null)|N/A|1|0|N/A|(null)|alice|NO|20780_[1-4%2]|arr|(null)|UNLIMITED|1G||(null)|0.00000000000000|(null)|JobHeldUser|s7YSM7F4Y5R200|PD|alice|(null)|(null)||0|*:*:*|20780|n/a|1|1|(null)|20780|1001|*|*|*|1-4%2|UNLIMITED|0:00||0|debug|0|(JobHeldUser)|N/A|PENDING|1001|2026-11-15T08:24:47|(null)|N/A|(null)|/corpus/work/samples|
(null)|gres/gpu:2|1|0|N/A|(null)|alice|NO|20779|held|(null)|UNLIMITED|1G||(null)|0.00000000000000|(null)|JobHeldUser|s7YSM7F4Y5KN00|PD|alice|(null)|(null)||0|*:*:*|20779|n/a|2|1|(null)|20779|1001|*|*|*|N/A|UNLIMITED|0:00||0|debug|0|(JobHeldUser)|N/A|PENDING|1001|2026-11-15T08:24:47|(null)|N/A|(null)|/corpus/work/samples|
(null)|N/A|4|0|2026-11-15T08:34:48|(null)|alice|NO|20778|sample|(null)|10:00|4G||/corpus/work/samples/b.sh|0.00000000023283|(null)|None|s7YSM7F4Y5G400|R|alice|(null)|(null)||0|*:*:*|20778|gpu1|8|2|(null)|20778|1001|*|*|*|N/A|9:57|0:03|gpu[1-2]|0|debug|1|gpu[1-2]|2026-11-15T08:24:48|RUNNING|1001|2026-11-15T08:24:47|(null)|N/A|(null)|/corpus/work/samples|
(null)|N/A|1|0|NONE|(null)|alice|NO|20781|toobig|(null)|UNLIMITED|0||(null)|0.00000000023283|(null)|Resources|s7YSM7F4Y5T600|PD|alice|(null)|(null)||0|*:*:*|20781|n/a|6|6|(null)|20781|1001|*|*|*|N/A|UNLIMITED|0:00||0|gpu_partition|1|(Resources)|2026-11-15T08:34:48|PENDING|1001|2026-11-15T08:24:47|(null)|N/A|gpu[1-6]|/corpus/work/samples|
)");
}

// A plan that calls itself brief is shown the same from the brief part of the jobs.
TEST(Squeue, BriefJobsShowAllThatTheirFieldsNeed) {
  const wire::JobsReply whole = sample_jobs();
  wire::JobsReply brief = whole;
  for (wire::JobInfo& job : *brief.mutable_jobs()) job = wire::take_brief(job);
  Shown shown;
  shown.now = kSampleTime;
  std::size_t plans = 0;
  for (const Field<JobRow>& field : job_fields()) {
    if (field.letter == 0) continue;
    const std::vector<std::string> words{"-h", "-o", std::string("%i %") + field.letter, "-S",
                                         std::string("i,") + field.letter};
    const auto options = parse_squeue(words, {});
    ASSERT_TRUE(options);
    const auto plan = squeue_plan(*options);
    ASSERT_TRUE(plan);
    if (!plan->brief) continue;
    ++plans;
    EXPECT_EQ(squeue_text(*options, brief, shown, Viewer{0}).value(),
              squeue_text(*options, whole, shown, Viewer{0}).value())
        << field.letter;
  }
  EXPECT_GT(plans, 15U);
}

TEST(Squeue, AnswersTheCommandLinesOfClients) {
  use_utc();
  EXPECT_EQ(
      squeue({"--noheader", "-o", "%i %t", "-t", "all", "-p", "gpu_partition", "-u", "alice"}),
      "20781 PD\n");
  EXPECT_EQ(squeue({"-h", "--format", "%i %t %M", "-t", "R"}), "20778 R 0:02\n");
  EXPECT_EQ(squeue({"--noheader", "--format=%i %t", "--job", "20778,99"}),
            "20780_[1-4%2] PD\n20779 PD\n20778 R\n20781 PD\n");  // the controller filters by id
  EXPECT_EQ(squeue({"-h", "-t", "R", "-o", R"({"a": "%a", "id": %A, "mem": "%m", "r": "%R"})"}),
            "{\"a\": \"(null)\", \"id\": 20778, \"mem\": \"4G\", \"r\": \"gpu[1-2]\"}\n");
  EXPECT_EQ(squeue({"-h", "-t", "R", "--noconvert", "-O",
                    "Account:\x1f,JobID:\x1f,MinMemory:\x1f,tres-alloc:\x1f"}),
            "(null)\x1f"
            "20778\x1f"
            "4096M\x1f"
            "cpu=8,mem=8G,node=2,billing=8\x1f\n");
  EXPECT_EQ(squeue({"-O", "JobArrayID,StateCompact,Reason", "-t", "PD", "--me", "-n", "arr"}),
            "JOBID               ST                  REASON              \n"
            "20780_[1-4%2]       PD                  JobHeldUser         \n");
  EXPECT_EQ(squeue({"-t", "RUNNING", "-h", "-O", "State: ,JobID: ,NodeList: ,Name:"}),
            "RUNNING 20778 gpu[1-2] sample\n");
  EXPECT_EQ(squeue({"-h", "-w", "gpu2", "-o", "%i"}), "20778\n");
  EXPECT_EQ(squeue({"-h", "-w", "gpu3", "-o", "%i"}), "");
  EXPECT_EQ(squeue({"-h", "--states=PD,CF,RF,RH,RQ,SE", "-o%i", "-S", "i"}),
            "20779\n20780_[1-4%2]\n20781\n");
  EXPECT_EQ(squeue({"-h", "-t", "R", "-o", "100%% %.3j|%5D|"}), "100% sam|2    |\n");
}

TEST(Squeue, ReadsTheEnvironmentAndRefusesWhatItDoesNotKnow) {
  use_utc();
  EXPECT_EQ(squeue({"-h"}, {{"SQUEUE_FORMAT", "%i"}, {"SQUEUE_STATES", "R"}}), "20778\n");
  EXPECT_EQ(squeue({"-h", "-o", "%j"}, {{"SQUEUE_FORMAT", "%i"}, {"SQUEUE_STATES", "R"}}),
            "sample\n");
  EXPECT_EQ(squeue({"-h", "-tR", "-o%S"}, {{"SLURM_TIME_FORMAT", "%s"}}), "1794731088\n");
  EXPECT_EQ(squeue({"-o", "%i %!"}), "refused: Invalid job format specification: !");
  EXPECT_EQ(squeue({"-O", "JobIDs"}), "refused: Invalid job format specification: JobIDs");
  EXPECT_EQ(squeue({"-t", "lost"}), "refused: Invalid job state specified: lost");
  EXPECT_EQ(squeue({"--bogus"}), "refused: unrecognized option '--bogus'");
  EXPECT_EQ(squeue({"-j", "x1"}), "refused: Invalid job id: x1");
}

}  // namespace
}  // namespace berth::command
