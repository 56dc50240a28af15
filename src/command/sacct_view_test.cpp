// sacct: columns, separators and times, and the command lines of clients.
#include "command/sacct_view.h"

#include <gtest/gtest.h>

#include "command/sacct_time.h"
#include "command/show_samples_test_fixture.h"
#include "wire/step_ids.h"

namespace berth::command {
namespace {

/// A job that ran with two steps, one that was cancelled, the pending rest of an array.
wire::HistoryReply sample_history() {
  wire::HistoryReply reply;
  reply.set_now(kSampleTime);
  reply.set_cluster_name("oracle");
  wire::HistoryJob& done = *reply.add_jobs();
  *done.mutable_job() = sample_job(7, "train", "COMPLETED", "s7");
  wire::JobInfo& job = *done.mutable_job();
  job.set_start_time(1794730000);
  job.set_end_time(1794731000);
  job.set_nodes("gpu[1-2]");
  job.set_node_count(2);
  job.set_cpus(8);
  job.set_account("physics");
  job.set_req_tres("cpu=8,mem=8G,node=2,billing=8");
  job.set_alloc_tres("cpu=8,mem=8G,node=2,billing=8,gres/gpu=2");
  job.set_time_limit_minutes(60);
  for (const std::uint32_t id : {wire::kBatchStep, 0U}) {
    wire::HistoryStep& step = *done.add_steps();
    step.mutable_step()->set_job_id(7);
    step.mutable_step()->set_step_id(id);
    step.mutable_step()->set_name(id == 0 ? "python" : "batch");
    step.mutable_step()->set_start_time(1794730000);
    step.mutable_step()->set_cpus(id == 0 ? 8 : 4);
    step.mutable_step()->set_tasks(id == 0 ? 4 : 1);
    step.mutable_step()->set_nodes(id == 0 ? "gpu[1-2]" : "gpu1");
    step.mutable_step()->set_node_count(id == 0 ? 2 : 1);
    step.set_end_time(1794731000);
    step.set_state("COMPLETED");
    step.set_user_microseconds(1'500'000);
    step.set_system_microseconds(250'000);
    step.set_max_rss_kb(id == 0 ? 1536 : 1024);
    step.set_total_rss_kb(4096);
  }
  wire::HistoryJob& cancelled = *reply.add_jobs();
  *cancelled.mutable_job() = sample_job(8, "wrap", "CANCELLED", "s8");
  cancelled.mutable_job()->set_start_time(1794731000);
  cancelled.mutable_job()->set_end_time(1794731060);
  cancelled.mutable_job()->set_exit_status(15);
  cancelled.set_cancelled(true);
  cancelled.set_ended_by(1001);
  wire::HistoryJob& rest = *reply.add_jobs();
  *rest.mutable_job() = sample_job(9, "arr", "PENDING", "s9");
  rest.mutable_job()->set_array_job_id(9);
  rest.mutable_job()->set_array_tasks("[4-5,9%2]");
  return reply;
}

std::string sacct(std::vector<std::string> words, const request::Environment& environment = {},
                  const wire::HistoryReply& reply = sample_history()) {
  use_utc();
  const Result<SacctOptions> options = parse_sacct(words, environment, kSampleTime, 1001);
  if (!options) return "refused: " + std::string(options.error().what());
  const Result<std::vector<SacctColumn>> columns = parse_sacct_format(options->fields);
  if (!columns) return "refused: " + std::string(columns.error().what());
  Shown shown;
  shown.now = reply.now();
  shown.times = time_format(environment);
  shown.cluster = reply.cluster_name();
  std::string out = sacct_header(*options, *columns);
  append_history(*options, *columns, reply, sacct_shown(*options, shown, 0), out);
  return out;
}

TEST(Sacct, PrintsColumns) {
  EXPECT_EQ(sacct({}),
            "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n"
            "------------ ---------- ---------- ---------- ---------- ---------- -------- \n"
            "7                 train      debug    physics          8  COMPLETED      0:0 \n"
            "7.batch           batch               physics          4  COMPLETED      0:0 \n"
            "7.0              python               physics          8  COMPLETED      0:0 \n"
            "8                  wrap      debug                     1 CANCELLED+     0:15 \n"
            "9_[4-5,9%2]         arr      debug                     0    PENDING      0:0 \n");
}

TEST(Sacct, AnswersTheCommandLinesOfClients) {
  EXPECT_EQ(sacct({"-o", "JobID,State,NodeList", "--parsable2", "-j", "7,8,9"}),
            "JobID|State|NodeList\n"
            "7|COMPLETED|gpu[1-2]\n7.batch|COMPLETED|gpu1\n7.0|COMPLETED|gpu[1-2]\n"
            "8|CANCELLED by 1001|None assigned\n"
            "9_[4-5,9%2]|PENDING|None assigned\n");
  EXPECT_EQ(sacct({"-X", "--noheader", "--format=jobid,state%20", "--job", "7,8"}),
            "7                       COMPLETED \n8               CANCELLED by 1001 \n"
            "9_[4-5,9%2]               PENDING \n");
  EXPECT_EQ(sacct({"-n", "-j", "7.batch", "-o", "NCPUS,Start,End,UserCPU,SystemCPU", "-P"}),
            "4|2026-11-15T08:06:40|2026-11-15T08:23:20|00:01.500|00:00.250\n"
            "1|2026-11-15T08:23:20|2026-11-15T08:24:20|00:00.000|00:00.000\n"
            "0|Unknown|Unknown|00:00.000|00:00.000\n");
  EXPECT_EQ(
      sacct({"-P", "-X", "-n", "-o", "jobidraw,start,alloctres,reqmem,timelimitraw", "-j", "7"},
            {{"SLURM_TIME_FORMAT", "%s"}})
          .substr(0, 65),
      "7|1794730000|cpu=8,mem=8G,node=2,billing=8,gres/gpu=2|8G|60\n8|179");
  EXPECT_EQ(sacct({"--parsable", "-n", "--delimiter=^|^", "--format=JobID,MaxRSS,TotalCPU", "-X"}),
            "7^|^^|^00:03.500^|^\n8^|^^|^00:00.000^|^\n9_[4-5,9%2]^|^^|^00:00.000^|^\n");
  EXPECT_EQ(sacct({"-n", "-P", "--units", "M", "-j", "7", "-o", "MaxRSS", "-s", "CD"}),
            "\n1M\n1.50M\n");
  EXPECT_EQ(sacct({"-n", "-X", "-P", "--array", "-s", "PD", "-o", "JobID"}), "9_4\n9_5\n9_9\n");
}

TEST(Sacct, WhatAStepThatRunsHasUsedIsNotKnown) {
  wire::HistoryReply reply = sample_history();
  wire::HistoryStep fresh;
  *fresh.mutable_step() = reply.jobs(0).steps(1).step();
  fresh.set_state("RUNNING");
  *reply.mutable_jobs(0)->mutable_steps(1) = fresh;
  const std::string rows =
      sacct({"-n", "-P", "-j", "7", "-o",
             "JobID,NTasks,AveCPU,MinCPUTask,AveRSS,MaxRSS,MaxRSSNode,MaxRSSTask,MaxDiskRead,"
             "TRESUsageInTot,TRESUsageOutMax"},
            {}, reply);
  EXPECT_EQ(rows.substr(rows.find("7.batch"), rows.find("\n8|") + 1 - rows.find("7.batch")),
            "7.batch|1|00:00:01||4096K|1024K|gpu1|0||cpu=00:00:01,energy=0,mem=4M|energy=0\n"
            "7.0|4|||||||||\n");
}

TEST(Sacct, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(sacct({"-o", "JobID,Sttate"}), "refused: Invalid field requested: \"Sttate\"");
  EXPECT_EQ(sacct({"-S", "soon"}), "refused: Invalid time specification for --starttime: soon");
  EXPECT_EQ(sacct({"-j", "abc"}), "refused: Bad job/step specified: abc");
}

TEST(Sacct, AsksForTheTimesTheOptionsMean) {
  use_utc();
  const auto from = [](std::vector<std::string> words) {
    return sacct_request(*parse_sacct(words, {}, kSampleTime, 1001), kSampleTime).from();
  };
  EXPECT_EQ(from({}), 1794700800);            // 00:00 of that day
  EXPECT_EQ(from({"-j", "7"}), 0);            // from the beginning
  EXPECT_EQ(from({"-s", "R"}), kSampleTime);  // as it is now
  EXPECT_EQ(parse_when("1970-01-01-00:00:01", kSampleTime), 1);
  EXPECT_EQ(parse_when("2026-11-15T08:24", kSampleTime), 1794731040);
  EXPECT_EQ(parse_when("now-2hours", kSampleTime), kSampleTime - 7200);
  EXPECT_EQ(parse_when("11/14", kSampleTime), 1794614400);
  EXPECT_EQ(parse_when("8:24am", kSampleTime), 1794731040);
  EXPECT_EQ(parse_when("2026-13-01", kSampleTime), std::nullopt);
}

}  // namespace
}  // namespace berth::command
