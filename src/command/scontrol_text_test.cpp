// Golden outputs: what `scontrol show` of a real Slurm printed for the same facts, byte for byte.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "command/scontrol_job_text.h"
#include "command/scontrol_node_text.h"
#include "wire/step_ids.h"

namespace berth::command::scontrol {
namespace {

/// Seconds of 2026-11-15T08:24:47 in the zone the test runs in.
std::int64_t at(const char* clock) {
  std::tm parts{};
  parts.tm_year = 126;
  parts.tm_mon = 10;
  parts.tm_mday = 15;
  parts.tm_isdst = -1;
  strptime(clock, "%H:%M:%S", &parts);
  return std::mktime(&parts);
}

wire::JobInfo sample_job() {
  wire::JobInfo job;
  job.set_id(20778);
  job.set_name("sample");
  job.set_sluid("s7YSM7F4Y5G400");
  job.set_uid(1001);
  job.set_gid(1001);
  job.set_user("alice");
  job.set_group("alice");
  job.set_priority(1);
  job.set_state("RUNNING");
  job.set_reason("None");
  job.set_requeue(true);
  job.set_batch(true);
  job.set_time_limit_minutes(10);
  job.set_submit_time(at("08:24:47"));
  job.set_eligible_time(at("08:24:47"));
  job.set_accrue_time(at("08:24:47"));
  job.set_start_time(at("08:24:48"));
  job.set_end_time(at("08:34:48"));
  job.set_last_sched_eval(at("08:24:48"));
  job.set_scheduler("Main");
  job.set_partition("debug");
  job.set_alloc_node("localhost");
  job.set_alloc_sid(3291);
  job.set_nodes("gpu[1-2]");
  job.set_batch_host("gpu1");
  job.set_node_count(2);
  job.set_cpus(8);
  job.set_tasks(4);
  job.set_cpus_per_task(2);
  job.set_req_tres("cpu=8,mem=8G,node=2,billing=8");
  job.set_alloc_tres("cpu=8,mem=8G,node=2,billing=8");
  job.set_ntasks_per_node(2);
  job.set_gres_detail("gpu:a100:4");
  for (const char* name : {"gpu1", "gpu2"}) {
    wire::NodeDetail& node = *job.add_detail();
    node.set_node(name);
    node.set_cpu_ids("0-3");
    node.set_memory_mb(4096);
    node.set_gres("gpu:a100:2(IDX:0-1)");
  }
  job.set_min_cpus_node(4);
  job.set_min_memory_node_mb(4096);
  job.set_over_subscribe("NO");
  job.set_command("/corpus/work/samples/b.sh");
  job.set_submit_line("sbatch b.sh");
  job.set_work_dir("/corpus/work/samples");
  job.set_std_in("/dev/null");
  job.set_std_out("/corpus/work/samples/sample.out");
  job.set_tres_bind("gres/gpu:per_task:1");
  job.set_tres_per_task("cpu=2,gres/gpu=1");
  return job;
}

TEST(ScontrolText, JobWithDetails) {
  const Style style{.detail = true, .now = at("08:24:52")};
  EXPECT_EQ(job_text(sample_job(), style), R"(JobId=20778 JobName=sample
   SLUID=s7YSM7F4Y5G400
   UserId=alice(1001) GroupId=alice(1001) MCS_label=N/A
   Priority=1 Nice=0 Account=(null) QOS=(null)
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   DerivedExitCode=0:0
   RunTime=00:00:04 TimeLimit=00:10:00 TimeMin=N/A
   SubmitTime=2026-11-15T08:24:47 EligibleTime=2026-11-15T08:24:47
   AccrueTime=2026-11-15T08:24:47
   StartTime=2026-11-15T08:24:48 EndTime=2026-11-15T08:34:48 Deadline=N/A
   SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-15T08:24:48 Scheduler=Main
   Partition=debug AllocNode:Sid=localhost:3291
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=gpu[1-2]
   BatchHost=gpu1
   NumNodes=2 NumCPUs=8 NumTasks=4 CPUs/Task=2 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=8,mem=8G,node=2,billing=8
   AllocTRES=cpu=8,mem=8G,node=2,billing=8
   Socks/Node=* NtasksPerN:B:S:C=2:0:*:* CoreSpec=*
   JOB_GRES=gpu:a100:4
     Nodes=gpu[1-2] CPU_IDs=0-3 Mem=4096 GRES=gpu:a100:2(IDX:0-1)
   MinCPUsNode=4 MinMemoryNode=4G MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=NO Exclusive=NO Contiguous=0 Licenses=(null) LicensesAlloc=(null) Network=(null)
   Command=/corpus/work/samples/b.sh
   SubmitLine=sbatch b.sh
   WorkDir=/corpus/work/samples
   StdErr=
   StdIn=/dev/null
   StdOut=/corpus/work/samples/sample.out
   TresBind=gres/gpu:per_task:1
   TresPerTask=cpu=2,gres/gpu=1

)");
}

TEST(ScontrolText, CompletedJob) {
  wire::JobInfo job = sample_job();
  job.set_state("COMPLETED");
  job.set_end_time(at("08:24:56"));
  const Style style{.now = at("09:00:00")};
  const std::string text = job_text(job, style);
  EXPECT_NE(text.find("JobId=20778 JobName=sample\n   UserId=alice(1001)"), std::string::npos);
  EXPECT_NE(text.find("ExitCode=0:0\n   RunTime=00:00:08 TimeLimit"), std::string::npos);
  EXPECT_EQ(text.find("JOB_GRES"), std::string::npos);
}

TEST(ScontrolText, OneLineHasNoLineBreakInside) {
  const Style style{.one_line = true, .now = at("08:24:52")};
  const std::string text = job_text(sample_job(), style);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_NE(text.find("MCS_label=N/A Priority=1"), std::string::npos);
}

TEST(ScontrolText, PendingArrayAndComponent) {
  wire::JobInfo job;
  job.set_id(20);
  job.set_name("arr");
  job.set_state("PENDING");
  job.set_array_job_id(20);
  job.set_array_tasks("[1,4%2]");
  job.set_array_throttle(2);
  job.set_node_count(9);
  job.set_max_nodes(9);
  job.set_exit_status(9);
  job.set_reason("ReqNodeNotAvail, UnavailableNodes:gpu1");
  std::string text = job_text(job, {});
  EXPECT_NE(text.find("JobState=PENDING Reason=ReqNodeNotAvail,_UnavailableNodes:gpu1 Dep"),
            std::string::npos);
  EXPECT_TRUE(text.starts_with(
      "JobId=20 ArrayJobId=20 ArrayTaskId=1,4%2 ArrayTaskThrottle=2 JobName=arr\n"));
  EXPECT_NE(text.find("NumNodes=9-9 NumCPUs=0 NumTasks=N/A CPUs/Task=1 "), std::string::npos);
  EXPECT_NE(text.find("ExitCode=0:9"), std::string::npos);
  EXPECT_NE(text.find("StartTime=Unknown EndTime=Unknown Deadline=N/A"), std::string::npos);
  EXPECT_EQ(text.find("StdOut="), std::string::npos);  // not a batch job
  job.clear_array_job_id();
  job.set_het_job_id(20);
  job.set_het_offset(1);
  job.set_het_set("20-21");
  text = job_text(job, {});
  EXPECT_TRUE(
      text.starts_with("JobId=20 HetJobId=20 HetJobOffset=1 JobName=arr\n   HetJobIdSet=20-21\n"));
}

TEST(ScontrolText, StateShowsTheMostTellingFlag) {
  wire::JobInfo job;
  job.set_state("PENDING");
  job.add_flags("REQUEUED");
  job.add_flags("COMPLETING");
  EXPECT_EQ(state_word(job), "COMPLETING");
}

TEST(ScontrolText, RunTimeLeavesOutSuspension) {
  wire::JobInfo job;
  job.set_state("RUNNING");
  job.set_start_time(1000);
  job.set_suspend_time(1100);  // resumed then
  job.set_seconds_before_suspend(30);
  EXPECT_EQ(run_seconds(job, 1110), 40);
  job.set_state("SUSPENDED");
  EXPECT_EQ(run_seconds(job, 1110), 30);
  EXPECT_EQ(seconds_text(90061), "1-01:01:01");
}

TEST(ScontrolText, NodeWithDetails) {
  wire::NodeInfo node;
  node.set_name("gpu1");
  node.set_arch("x86_64");
  node.set_cores_per_socket(8);
  node.set_sockets(2);
  node.set_threads_per_core(1);
  node.set_cpus(16);
  node.set_cpus_effective(16);
  node.set_cpus_allocated(4);
  node.set_load(11.49);
  node.set_features("a100,nvlink");
  node.set_gres("gpu:a100:4(S:0-1)");
  node.set_gres_used("gpu:a100:2(IDX:0-1)");
  node.set_address("127.0.0.1");
  node.set_host("localhost");
  node.set_port(17001);
  node.set_version("26.11.0-0rc1");
  node.set_os("Linux 6.18.44-fc-v445 #1 SMP PREEMPT_DYNAMIC @0");
  node.set_memory_mb(65536);
  node.set_memory_allocated_mb(4096);
  node.set_memory_free_mb(21549);
  node.set_weight(1);
  node.set_state("MIXED");
  node.add_flags("PLANNED");
  for (const char* name : {"debug", "ml", "gpu_partition", "short"}) node.add_partitions(name);
  node.set_boot_time(at("07:10:39"));
  node.set_started(at("07:50:15"));
  node.set_last_busy(at("08:24:44"));
  node.set_cfg_tres("cpu=16,mem=64G,billing=16");
  node.set_alloc_tres("cpu=4,mem=4G");
  EXPECT_EQ(node_text(node, {.detail = true}),
            "NodeName=gpu1 Arch=x86_64 CoresPerSocket=8 \n"
            R"(   CPUAlloc=4 CPUEfctv=16 CPUTot=16 CPULoad=11.49
   AvailableFeatures=a100,nvlink
   ActiveFeatures=a100,nvlink
   Gres=gpu:a100:4(S:0-1)
   GresDrain=N/A
   GresUsed=gpu:a100:2(IDX:0-1)
   NodeAddr=127.0.0.1 NodeHostName=localhost Port=17001 Version=26.11.0-0rc1
)"
            "   OS=Linux 6.18.44-fc-v445 #1 SMP PREEMPT_DYNAMIC @0 \n"
            R"(   RealMemory=65536 AllocMem=4096 FreeMem=21549 Sockets=2 Boards=1
   State=MIXED+PLANNED ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
)"
            "   Partitions=debug,ml,gpu_partition,short \n"
            R"(   BootTime=2026-11-15T07:10:39 SlurmdStartTime=2026-11-15T07:50:15
   LastBusyTime=2026-11-15T08:24:44 ResumeAfterTime=None SuspendTime=INFINITE
   CfgTRES=cpu=16,mem=64G,billing=16
   AllocTRES=cpu=4,mem=4G
   CurrentWatts=0 AveWatts=0

)");
  node.set_gres_drained("gpu:a100:2(IDX:0,3)");
  node.add_gpus_out("GPU 0: 1 uncorrected ECC error: reset it");
  node.add_gpus_out("GPU 3: it does not answer");
  const std::string with_bad_gpus = node_text(node, {.detail = true});
  EXPECT_NE(with_bad_gpus.find("\n   GresDrain=gpu:a100:2(IDX:0,3)\n"), std::string::npos);
  EXPECT_NE(with_bad_gpus.find("\n   GPUsOut=GPU 0: 1 uncorrected ECC error: reset it; GPU 3: it "
                               "does not answer\n"),
            std::string::npos);
  EXPECT_EQ(with_bad_gpus.find("Clock="), std::string::npos);
  node.set_clock_ahead_seconds(3600);
  EXPECT_NE(node_text(node, {}).find("\n   Clock=3600 s ahead\n"), std::string::npos);
  node.set_reason("bad disk");
  node.set_reason_user("root");
  node.set_reason_time(at("08:00:00"));
  EXPECT_NE(node_text(node, {}).find("\n   Reason=bad disk [root@2026-11-15T08:00:00]\n"),
            std::string::npos);
}

TEST(ScontrolText, Partition) {
  wire::PartitionInfo p;
  p.set_name("short");
  p.set_state("UP");
  p.set_default_time_minutes(1);
  p.set_max_time_minutes(2);
  p.set_nodes("cpu[1-2],gpu[1-6]");
  p.set_node_sets("ALL");
  p.set_total_cpus(160);
  p.set_total_nodes(8);
  p.set_priority_job_factor(1);
  p.set_priority_tier(1);
  p.set_tres("cpu=160,mem=512G,node=8,billing=160");
  EXPECT_EQ(partition_text(p, {}), R"(PartitionName=short
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=NO QoS=N/A
   DefaultTime=00:01:00 DisableRootJobs=NO Exclusive=NO GraceTime=0 Hidden=NO
   MaxNodes=UNLIMITED MaxTime=00:02:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED MaxCPUsPerSocket=UNLIMITED
   NodeSets=ALL
   Nodes=cpu[1-2],gpu[1-6]
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=OFF
   State=UP TotalCPUs=160 TotalNodes=8 SelectTypeParameters=NONE
   JobDefaults=(null)
   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
   TRES=cpu=160,mem=512G,node=8,billing=160

)");
}

TEST(ScontrolText, BatchStep) {
  wire::StepInfo step;
  step.set_job_id(20778);
  step.set_step_id(wire::kBatchStep);
  step.set_uid(1001);
  step.set_start_time(at("08:24:48"));
  step.set_state("RUNNING");
  step.set_partition("debug");
  step.set_nodes("gpu1");
  step.set_node_count(1);
  step.set_tasks(1);
  step.set_name("batch");
  step.set_cpus(4);
  EXPECT_EQ(step_text(step, {}),
            R"(StepId=20778.batch UserId=1001 StartTime=2026-11-15T08:24:48 TimeLimit=UNLIMITED
   State=RUNNING Partition=debug NodeList=gpu1
   Nodes=1 CPUs=0 Tasks=1 Name=batch Network=(null)
   TRES=(null)
   ResvPorts=(null)
   CPUFreqReq=Default
   SrunHost:Pid=(null):0

)");
}

TEST(ScontrolText, Config) {
  wire::ConfigReply config;
  config.set_now(at("08:24:46"));
  wire::Variable& setting = *config.add_settings();
  setting.set_name("MinJobAge");
  setting.set_value("600 sec");
  EXPECT_EQ(config_text(config, {}),
            "Configuration data as of 2026-11-15T08:24:46\nMinJobAge               = 600 sec\n");
}

}  // namespace
}  // namespace berth::command::scontrol
