#include "simulate/trace.h"

#include <gtest/gtest.h>

#include "simulate/fields.h"
#include "simulate/openb.h"

namespace berth::simulate {
namespace {

TEST(Fields, Numbers) {
  EXPECT_EQ(whole_of("12"), 12);
  EXPECT_EQ(whole_of("-1"), -1);
  EXPECT_EQ(whole_of("12.9"), 12);
  for (const char* text : {"", "a", "1a", "1e3", "nan", "inf", "0x10", " 1"}) {
    EXPECT_FALSE(whole_of(text)) << text;
  }
}

TEST(Fields, Sizes) {
  EXPECT_EQ(megabytes_of("16G"), 16384U);
  EXPECT_EQ(megabytes_of("62.50G"), 64000U);
  EXPECT_EQ(megabytes_of("4000M"), 4000U);
  EXPECT_EQ(megabytes_of("1K"), 1U);
  EXPECT_EQ(megabytes_of("512"), 512U);
  EXPECT_EQ(megabytes_of("2t"), 2U << 20U);
  for (const char* text : {"", "G", "-1G", "1X", "9999999999999P"}) {
    EXPECT_FALSE(megabytes_of(text)) << text;
  }
}

TEST(Fields, Moments) {
  EXPECT_EQ(moment_of("1970-01-01T00:00:00"), 0);
  EXPECT_EQ(moment_of("2000-02-29T12:34:56"), 951827696);
  EXPECT_EQ(moment_of("2024-03-01T00:00:00"), 1709251200);
  EXPECT_EQ(moment_of("1709251200"), 1709251200);
  for (const char* text : {"", "Unknown", "None", "2024-13-01T00:00:00", "2024-00-01T00:00:00",
                           "2024-01-01", "1-1T"}) {
    EXPECT_FALSE(moment_of(text)) << text;
  }
}

TEST(Fields, Elapsed) {
  EXPECT_EQ(elapsed_of("00:01:40"), 100);
  EXPECT_EQ(elapsed_of("1-02:03:04"), 93784);
  EXPECT_EQ(elapsed_of("02:03.5"), 123);
  EXPECT_EQ(elapsed_of("77"), 77);
  for (const char* text : {"", "x", "1:2:3:4", "-1", "Unknown"}) {
    EXPECT_FALSE(elapsed_of(text)) << text;
  }
}

TEST(Trace, FormatsAreFoundByWhatTheyLookLike) {
  EXPECT_EQ(detect("; Version: 2\n1 0"), Format::swf);
  EXPECT_EQ(detect("\n 1 0 5 10 4 -1 -1 4 60 -1 1 1 1 -1 1 -1 -1 -1\n"), Format::swf);
  EXPECT_EQ(detect("JobID|Submit\n"), Format::sacct);
  EXPECT_EQ(detect("name,cpu_milli,memory_mib\n"), Format::openb);
  EXPECT_FALSE(detect("hello world\n"));
  EXPECT_FALSE(detect(""));
}

TEST(Trace, Swf) {
  const auto trace = read_trace(
      "; Version: 2.2\n"
      ";\n"
      "  1  50 3 100 4 -1 -1 8 3601 2048 1 7 1 -1 2 -1 -1 -1\n"
      "2 0 3 10.7 4 -1 -1 -1 -1 -1 1 -1 1 -1 -1 -1 -1 -1\r\n"
      "3 60 3 -1 4 -1 -1 4 60 -1 5 7 1 -1 1 -1 -1 -1\n"
      "4 60 3 5 -1 -1 -1 -1 60 -1 1 7 1 -1 1 -1 -1 -1\n"
      "5 60 3 5 4 -1\n"
      "6 60 3 x 4 -1 -1 4 60 -1 5 7 1 -1 1 -1 -1 -1\n"
      "7 60 3 5 4 -1 -1 4 60 -1 2 7 1 -1 1 -1 -1 -1\n",
      "f.swf");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->format, "swf");
  EXPECT_EQ(trace->lines, 7U);
  EXPECT_EQ(trace->skipped, 5U);
  EXPECT_EQ(trace->skipped_first[0], "f.swf:5: no run time: it never started");
  EXPECT_EQ(trace->skipped_first[1], "f.swf:6: no number of processors");
  EXPECT_EQ(trace->skipped_first[2], "f.swf:7: 6 columns, SWF has 18");
  EXPECT_EQ(trace->skipped_first[3], "f.swf:8: not all of it is numbers");
  ASSERT_EQ(trace->jobs.size(), 2U);
  const TraceJob& first = trace->jobs[0];  // by time
  EXPECT_EQ(first.submit, 0);
  EXPECT_EQ(first.runtime, 10);
  EXPECT_EQ(first.limit_minutes, 0U);
  EXPECT_EQ(trace->asks[first.ask].tasks, 4U);
  const TraceJob& second = trace->jobs[1];
  EXPECT_EQ(second.limit_minutes, 61U);
  EXPECT_EQ(second.user, 7U);
  EXPECT_EQ(second.line, 3U);
  EXPECT_EQ(trace->asks[second.ask].tasks, 8U);
  EXPECT_EQ(trace->asks[second.ask].memory_per_cpu_mb, 2U);
  EXPECT_EQ(trace->asks[second.ask].partition, "2");
}

TEST(Trace, Sacct) {
  const auto trace = read_trace(
      "JobID|User|Partition|Submit|Start|End|Timelimit|ReqCPUS|ReqMem|ReqTRES|NNodes|State|"
      "Priority\n"
      "10|ann|gpu|2024-01-01T00:01:00|2024-01-01T00:05:00|2024-01-01T00:06:40|1-00:00:00|8|32G|"
      "billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=32G,node=2|2|COMPLETED|77\n"
      "10.batch||||2024-01-01T00:05:00|2024-01-01T00:06:40||8|||1|COMPLETED|\n"
      "11_3|bob|gpu,cpu|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:00:10|UNLIMITED|3|"
      "1Gc||1|FAILED|\n"
      "12|bob|gpu|2024-01-01T00:00:30|Unknown|Unknown|10:00|1|1Gn||1|CANCELLED by 5|\n"
      "13|bob|gpu|Unknown|Unknown|Unknown|10:00|1|1Gn||1|PENDING|\n"
      "14|ann|cpu|2024-01-01T00:00:40|2024-01-01T00:00:41|2024-01-01T00:00:50|10:00|0|||1|"
      "COMPLETED|\n"
      "15|ann\n",
      "s");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->format, "sacct");
  EXPECT_EQ(trace->lines, 6U);
  EXPECT_EQ(trace->skipped, 4U);
  EXPECT_EQ(trace->skipped_first[0], "s:5: it never started (CANCELLED by 5)");
  EXPECT_EQ(trace->skipped_first[3], "s:8: less than 13 columns");
  ASSERT_EQ(trace->jobs.size(), 2U);
  const TraceJob& array = trace->jobs[0];
  EXPECT_EQ(array.runtime, 10);
  EXPECT_EQ(array.limit_minutes, 0U);
  EXPECT_EQ(trace->asks[array.ask].cpus(), 3U);
  EXPECT_EQ(trace->asks[array.ask].memory_per_cpu_mb, 1024U);
  EXPECT_EQ(trace->asks[array.ask].partition, "gpu");
  const TraceJob& job = trace->jobs[1];
  EXPECT_EQ(job.submit - array.submit, 60);
  EXPECT_EQ(job.runtime, 100);
  EXPECT_EQ(job.limit_minutes, 1440U);
  EXPECT_EQ(job.priority, 77U);
  EXPECT_NE(job.user, array.user);
  const Ask& ask = trace->asks[job.ask];
  EXPECT_EQ(ask.nodes, 2U);
  EXPECT_EQ(ask.tasks, 2U);
  EXPECT_EQ(ask.cpus_per_task, 4U);
  EXPECT_EQ(ask.memory_per_node_mb, 16384U);
  EXPECT_EQ(ask.gpus, 4U);
  EXPECT_EQ(ask.models, std::vector<std::string>{"a100"});
}

TEST(Trace, SacctNeedsItsColumns) {
  const auto trace = read_sacct("JobID|Start\n1|2\n", "s");
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().what(), "s:1: there is no column Submit");
}

TEST(Trace, Openb) {
  const auto trace = read_trace(
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
      "deletion_time,scheduled_time\n"
      "a,12500,16384,1,460,,LS,Running,10,100,0\n"
      "b,8000,1024,2,1000,V100M32|P100|V100M32,LS,Running,5,20,0\n"
      "c,8000,1024,2,1000,,LS,Failed,5,,0\n"
      "d,8000,1024,2,1000,,LS,Failed,5,4,0\n"
      "e,x,1024,2,1000,,LS,Failed,5,9,0\n",
      "p");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->skipped, 3U);
  EXPECT_EQ(trace->skipped_first[0], "p:4: no deletion_time after its creation");
  EXPECT_EQ(trace->skipped_first[2], "p:6: no CPU or memory");
  ASSERT_EQ(trace->jobs.size(), 2U);
  const Ask& two = trace->asks[trace->jobs[0].ask];
  EXPECT_EQ(two.gpus, 2U);
  EXPECT_EQ(two.models, (std::vector<std::string>{"P100", "V100M32"}));
  const Ask& part = trace->asks[trace->jobs[1].ask];
  EXPECT_EQ(part.gpu_milli, 460U);
  EXPECT_EQ(part.gpus, 0U);
  EXPECT_EQ(part.cpus(), 13U);
  EXPECT_EQ(trace->jobs[1].runtime, 90);
}

TEST(Trace, OpenbWithoutTimesIsForTheBenchmark) {
  const auto trace = read_trace("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,1\n", "p");
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().what(), "p:1: there is no column creation_time");
}

TEST(Trace, OpenbNodesAreAConfiguration) {
  const auto files = read_openb_nodes(
      "sn,cpu_milli,memory_mib,gpu,model\nn-1,8000,1024,2,T4\nn-2,8000,1024,2,T4\nn-3,4000,512,0,"
      "\n",
      "n");
  ASSERT_TRUE(files);
  const std::string& slurm = files->at("slurm.conf");
  EXPECT_NE(slurm.find("NodeName=n-[1-2] Sockets=1 CoresPerSocket=8 ThreadsPerCore=1 "
                       "RealMemory=1024 Gres=gpu:T4:2,shard:200 Feature=T4\n"),
            std::string::npos)
      << slurm;
  const auto wrong =
      read_openb_nodes("sn,cpu_milli,memory_mib,gpu,model\nn 1,8000,1024,2,T4\n", "n");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().what(), "n:2: sn is not a name of a node");
}

TEST(Trace, NothingUsableIsAnError) {
  const auto trace = read_trace("; only a comment\n", "f");
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().what(), "f: no line of it is a job that ran");
  EXPECT_FALSE(read_trace("hello\n", "f"));
}

}  // namespace
}  // namespace berth::simulate
