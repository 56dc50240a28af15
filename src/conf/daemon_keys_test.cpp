// The daemons' keys: forms, defaults, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conf/gpu_parameters.h"
#include "conf/process_parameters.h"
#include "conf/slurm_conf.h"

namespace berth::conf {
namespace {

using testing::ElementsAre;

SlurmConf read(std::string text, std::vector<std::string>* errors = nullptr,
               std::vector<std::string>* warnings = nullptr) {
  const MemorySource source(
      MemorySource::Files{{"slurm.conf", "ClusterName=c\n" + std::move(text)}});
  Complaints complaints;
  SlurmConf conf = read_slurm_conf(source, complaints);
  if (errors != nullptr && complaints.failed()) {
    for (const Message& m : complaints.as_error().messages) errors->push_back(m.text);
  }
  if (errors == nullptr) {
    EXPECT_FALSE(complaints.failed()) << complaints.as_error().what();
  }
  if (warnings != nullptr) *warnings = complaints.warnings();
  return conf;
}

TEST(DaemonKeys, ReadsEveryForm) {
  std::vector<std::string> warnings;
  const SlurmConf conf = read(
      "SlurmctldHost=a(10.0.0.1)\nSlurmctldHost=b\nSlurmctldPort=7000-7009 SlurmdPort=7010\n"
      "KillWait=5 MinJobAge=0 OverTimeLimit=UNLIMITED PrologEpilogTimeout=65\n"
      "Prolog=/a/*.sh\nProlog=/b\nPrologFlags=Alloc,Contain JobRequeue=0\n"
      "SchedulerParameters=defer,bf_window=2880 SlurmdParameters=config_overrides\n"
      "PropagateResourceLimitsExcept=memlock PrivateData=none RequeueExit=9-10,3\n"
      "TaskProlog=(null)\n"
      "NodeName=n[1-2] NodeHostname=h NodeAddr=10.0.0.[1-2] Port=[7011-7012]\n"
      "PartitionName=p Nodes=ALL PriorityTier=7 Hidden=yes OverTimeLimit=INFINITE AllowQos=ALL\n",
      nullptr, &warnings);
  EXPECT_THAT(warnings, ElementsAre());
  const DaemonKeys& keys = conf.daemon;
  ASSERT_EQ(keys.controllers.size(), 2u);
  EXPECT_EQ(keys.controllers[0].address, "10.0.0.1");
  EXPECT_EQ(keys.controllers[1].address, "b");
  EXPECT_EQ(keys.controller_port, 7000u);
  EXPECT_EQ(keys.kill_wait_seconds, 5u);
  EXPECT_EQ(keys.min_job_age_seconds, 0u);
  EXPECT_FALSE(keys.over_time_limit_minutes);
  EXPECT_EQ(keys.epilog_timeout_seconds, 65u);
  EXPECT_THAT(keys.prolog, ElementsAre("/a/*.sh", "/b"));
  EXPECT_THAT(keys.prolog_flags, ElementsAre("alloc", "contain"));
  EXPECT_FALSE(keys.job_requeue);
  EXPECT_EQ(keys.scheduler.at("bf_window"), "2880");
  EXPECT_TRUE(keys.scheduler.contains("defer"));
  EXPECT_TRUE(keys.config_overrides());
  EXPECT_THAT(keys.propagate_limits_except, ElementsAre("MEMLOCK"));
  EXPECT_THAT(keys.private_data, ElementsAre());
  EXPECT_THAT(keys.requeue_exit, ElementsAre(3u, 9u, 10u));
  EXPECT_EQ(keys.task_prolog, "");
  EXPECT_THAT(conf.nodes.at(0).addresses->value, ElementsAre("10.0.0.1", "10.0.0.2"));
  EXPECT_THAT(conf.nodes.at(0).hostnames->value, ElementsAre("h"));
  EXPECT_THAT(conf.nodes.at(0).ports->value, ElementsAre(7011u, 7012u));
  const PartitionRules& rules = conf.partitions.at(0).rules;
  EXPECT_EQ(rules.priority_tier->value, 7u);
  EXPECT_TRUE(rules.hidden->value);
  EXPECT_EQ(rules.over_time_limit_minutes->value, UINT32_MAX);
  EXPECT_FALSE(rules.allow_qos);
}

TEST(DaemonKeys, DefaultsAreSlurms) {
  const DaemonKeys keys = read("").daemon;
  EXPECT_EQ(keys.kill_wait_seconds, 30u);
  EXPECT_EQ(keys.min_job_age_seconds, 300u);
  EXPECT_EQ(keys.first_job_id, 1u);
  EXPECT_EQ(keys.over_time_limit_minutes, 0u);
  EXPECT_FALSE(keys.prolog_timeout_seconds);
}

TEST(DaemonKeys, PortsOfSteps) {
  EXPECT_EQ(read("MpiParams=disable_slurm_hydra_bootstrap,ports=100-200").daemon.step_ports,
            (PortSpan{100, 200}));
  EXPECT_FALSE(read("MpiParams=disable_slurm_hydra_bootstrap").daemon.step_ports);
}

TEST(DaemonKeys, HydraIsToldOfSlurmUnlessTheSiteSaysNo) {
  EXPECT_TRUE(read("").daemon.hydra_bootstrap);
  EXPECT_TRUE(read("MpiParams=ports=100-200").daemon.hydra_bootstrap);
  EXPECT_FALSE(read("MpiParams=disable_slurm_hydra_bootstrap").daemon.hydra_bootstrap);
  EXPECT_FALSE(
      read("MpiParams=ports=100-200,Disable_Slurm_Hydra_Bootstrap").daemon.hydra_bootstrap);
  std::vector<std::string> warnings;
  read("MpiParams=port=100-200", nullptr, &warnings);
  EXPECT_THAT(warnings, ElementsAre("slurm.conf:2: MpiParams=port=100-200: not used; known are "
                                    "ports=FIRST-LAST and disable_slurm_hydra_bootstrap"));
}

TEST(DaemonKeys, HowOftenTasksAreLookedAt) {
  EXPECT_EQ(read("").daemon.gather_seconds, 30u);
  EXPECT_EQ(read("JobAcctGatherFrequency=10").daemon.gather_seconds, 10u);
  EXPECT_EQ(read("JobAcctGatherFrequency=energy=0,task=5").daemon.gather_seconds, 5u);
  EXPECT_EQ(read("JobAcctGatherFrequency=energy=30").daemon.gather_seconds, 30u);
  EXPECT_EQ(read("JobAcctGatherFrequency=0").daemon.gather_seconds, 0u);
  EXPECT_EQ(read("JobAcctGatherFrequency=energy=0,task=5").daemon.gather_frequency,
            "energy=0,task=5");
}

TEST(DaemonKeys, WhetherTasksAreLookedAt) {
  EXPECT_TRUE(read("").daemon.gathers());
  EXPECT_TRUE(read("JobAcctGatherType=jobacct_gather/cgroup").daemon.gathers());
  EXPECT_FALSE(read("JobAcctGatherType=jobacct_gather/none").daemon.gathers());
}

TEST(DaemonKeys, LeaseOfJobsThatAreRequeuedByDefault) {
  EXPECT_EQ(read("").daemon.requeue_lease, 3600u);
  EXPECT_EQ(read("SlurmctldParameters=enable_user_top,requeue_lease=600").daemon.requeue_lease,
            600u);
  EXPECT_EQ(read("SlurmctldParameters=requeue_lease=600\nSlurmctldParameters=enable_user_top")
                .daemon.requeue_lease,
            3600u);
  for (const char* bad : {"0", "never", "", "-1", "604801"}) {
    std::vector<std::string> errors;
    read(std::string("SlurmctldParameters=requeue_lease=") + bad, &errors);
    EXPECT_THAT(errors, ElementsAre(testing::HasSubstr("requeue_lease=SECONDS"))) << bad;
  }
}

TEST(DaemonKeys, WhoSaysThatAFailureEndsNothingHasNoGrace) {
  EXPECT_EQ(read("").daemon.failure_grace_seconds(), 30u);
  EXPECT_EQ(read("KillOnBadExit=1").daemon.failure_grace_seconds(), 30u);
  EXPECT_EQ(read("KillOnBadExit=0").daemon.failure_grace_seconds(), 0u);
  EXPECT_EQ(
      read("KillOnBadExit=0\nLaunchParameters=failure_grace=5").daemon.failure_grace_seconds(), 5u);
  EXPECT_EQ(read("LaunchParameters=failure_grace=0").daemon.failure_grace_seconds(), 0u);
}

TEST(DaemonKeys, HowGpusAreWatched) {
  const auto usual = gpu_parameters(read("SlurmdParameters=config_overrides").daemon.node);
  EXPECT_EQ(usual->probation.count(), 60);
  EXPECT_EQ(usual->poll.count(), 1000);
  const auto given =
      gpu_parameters(read("SlurmdParameters=gpu_probation=0,gpu_poll=50ms").daemon.node);
  EXPECT_EQ(given->probation.count(), 0);
  EXPECT_EQ(given->poll.count(), 50);
}

TEST(DaemonKeys, HowManyProcessesAStepMayHave) {
  const auto of = [](const std::string& text) {
    return process_parameters(read(text).daemon.node)->max_step_pids;
  };
  EXPECT_EQ(of(""), std::nullopt);
  EXPECT_EQ(of("SlurmdParameters=max_step_pids=0"), 0U);
  EXPECT_EQ(of("SlurmdParameters=config_overrides,max_step_pids=500"), 500U);
}

TEST(DaemonKeys, Refuses) {
  struct Row {
    const char* text;
    const char* error;
  };
  const Row rows[] = {
      {"KillWait=soon", "slurm.conf:2: KillWait=soon: allowed is a whole number from 0 to 65533"},
      {"SlurmctldHost=a(b",
       "slurm.conf:2: SlurmctldHost=a(b: allowed is a host name, or name(address)"},
      {"SlurmdParameters=max_step_pids=15",
       "slurm.conf:2: SlurmdParameters=max_step_pids=15: allowed is max_step_pids=NUMBER, 16 to "
       "4194304, or 0 for no limit"},
      {"SlurmdParameters=max_step_pids=many",
       "slurm.conf:2: SlurmdParameters=max_step_pids=many: allowed is max_step_pids=NUMBER, 16 to "
       "4194304, or 0 for no limit"},
      {"JobRequeue=2", "slurm.conf:2: JobRequeue=2: allowed are YES and NO"},
      {"ReturnToService=3",
       "slurm.conf:2: ReturnToService=3: allowed is a whole number from 0 to 2"},
      {"NodeName=n1 Port=0", "slurm.conf:2: Port=0: allowed is a whole number from 1 to 65535"},
      {"NodeName=n[1-3] NodeAddr=a[1-2]",
       "slurm.conf:2: NodeAddr= has 2 entries for 3 nodes; give one for each, or one"},
      {"LaunchParameters=use_interactive_step,failure_grace=soon",
       "slurm.conf:2: LaunchParameters=failure_grace=soon: allowed is failure_grace=SECONDS, 0 to "
       "65533 (0 = the others may go on for ever)"},
      {"LaunchParameters=failure_grace",
       "slurm.conf:2: LaunchParameters=failure_grace: allowed is failure_grace=SECONDS, 0 to 65533 "
       "(0 = the others may go on for ever)"},
      {"SlurmdParameters=gpu_probation=soon",
       "slurm.conf:2: SlurmdParameters=gpu_probation=soon: allowed is gpu_probation=SECONDS, 0 to "
       "86400"},
      {"SlurmdParameters=gpu_poll=5ms",
       "slurm.conf:2: SlurmdParameters=gpu_poll=5ms: allowed is gpu_poll=TIME, 20ms to 1000ms"},
      {"SlurmdParameters=gpu_poll=1",
       "slurm.conf:2: SlurmdParameters=gpu_poll=1: allowed is gpu_poll=TIME, 20ms to 1000ms"},
      {"SlurmdParameters=gpu_fence=job",
       "slurm.conf:2: SlurmdParameters=gpu_fence=job: allowed are gpu_fence=task and "
       "gpu_fence=step"},
      {"SlurmdParameters=gpu_mem=end",
       "slurm.conf:2: SlurmdParameters=gpu_mem=end: allowed are gpu_mem=watch and gpu_mem=kill"},
      {"MpiParams=ports=abc",
       "slurm.conf:2: MpiParams=ports=abc: allowed is ports=FIRST-LAST, such as "
       "ports=20000-29999"},
      {"MpiParams=ports=300-200",
       "slurm.conf:2: MpiParams=ports=300-200: allowed is ports=FIRST-LAST, such as "
       "ports=20000-29999"},
      {"MpiParams=ports=1-70000",
       "slurm.conf:2: MpiParams=ports=1-70000: allowed is ports=FIRST-LAST, such as "
       "ports=20000-29999"},
      {"KillOnBadExit=maybe", "slurm.conf:2: KillOnBadExit=maybe: allowed are YES and NO"},
  };
  for (const Row& row : rows) {
    std::vector<std::string> errors;
    read(row.text, &errors);
    EXPECT_THAT(errors, ElementsAre(row.error)) << row.text;
  }
}

}  // namespace
}  // namespace berth::conf
