// Steps of running jobs: granted, waiting, refused, adopted after a restart; and what nodes are
// told.
#include <gtest/gtest.h>

#include "job/state_test_fixture.h"
#include "wire/step_figures.h"

namespace berth::job::testing {
namespace {

wire::CreateStep step(JobId job, const std::string& line,
                      const std::vector<std::pair<std::string, std::string>>& variables = {}) {
  wire::CreateStep out;
  out.set_job_id(job);
  wire::Asked& asked = *out.mutable_asked();
  asked.set_command("srun");
  for (const std::string& word : words_of(line)) asked.add_words(word);
  asked.add_words("app");
  for (const auto& [name, value] : variables) {
    wire::Variable* one = asked.add_environment();
    one->set_name(name);
    one->set_value(value);
  }
  return out;
}

std::string value_of(const auto& variables, const std::string& name) {
  for (const wire::Variable& variable : variables) {
    if (variable.name() == name) return variable.value();
  }
  return "(none)";
}

TEST(Steps, AGrantHasASpecForEachNode) {
  Controller c;
  const JobId id = c.started("-N2 --ntasks-per-node=2 --gpus-per-task=1 --mem=1G");
  c.state.take_effects();
  c.state.create_step(
      step(id, "--ntasks-per-node=2 --gpus-per-task=1",
           {{"SLURM_JOB_NUM_NODES", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_OLD", "x"}}),
      5, kAlice, c.now);
  const auto grants = c.effects<GrantStep>();
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].key, 5U);
  EXPECT_EQ(grants[0].grant.ntasks(), 4U);
  ASSERT_EQ(grants[0].specs.size(), 2U);
  const wire::StepSpec& spec = grants[0].specs[1];
  EXPECT_EQ(spec.job_id(), id);
  EXPECT_EQ(spec.node_id(), 1U);
  ASSERT_EQ(spec.tasks_size(), 2);
  EXPECT_EQ(spec.tasks(0).rank(), 2U);
  EXPECT_EQ(value_of(spec.tasks(0).variables(), "SLURM_PROCID"), "2");
  EXPECT_EQ(value_of(spec.tasks(1).variables(), "SLURM_PROCID"), "3");
  EXPECT_EQ(value_of(spec.common(), "SLURM_STEP_NUM_TASKS"), "4");
  EXPECT_EQ(value_of(spec.common(), "SLURM_JOB_NUM_NODES"), "(none)") << "as it was inherited";
  EXPECT_EQ(value_of(spec.common(), "SLURM_OLD"), "(none)");
  EXPECT_EQ(spec.share().gres(0).name(), "gpu");
}

TEST(Steps, AStepWaitsForOthersAndIsGrantedInTurn) {
  Controller c;
  const JobId id = c.started("-n1 --gpus=1 --mem=1G");
  c.state.create_step(step(id, "-n1 --gpus=1"), 1, kAlice, c.now);
  c.state.take_effects();
  c.state.create_step(step(id, "-n1 --gpus=1"), 2, kAlice, c.now);
  c.state.create_step(step(id, "-n1 --gpus=1"), 3, kAlice, c.now);
  const auto waits = c.effects<StepMustWait>();
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_EQ(waits[0].message.for_steps(0), 0U);
  EXPECT_FALSE(waits[0].message.text().empty());
  c.step_ends(id, 0, 0);
  const auto grants = c.effects<GrantStep>();
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].key, 2U);
  EXPECT_EQ(grants[0].grant.step_id(), 1U);
  c.state.drop_waiting_step(3);
  c.step_ends(id, 1, 2 << 8);
  EXPECT_TRUE(c.effects<GrantStep>().empty());
  EXPECT_EQ(c.at(id).derived_exit_status, 2 << 8);
}

TEST(Steps, AStepWaitsForANodeWhoseAgentIsAway) {
  Controller c;
  const JobId id = c.started("-w gpu1 -n1 --mem=1G");
  c.state.node_lost("gpu1", c.now);
  c.state.take_effects();
  c.state.create_step(step(id, "-n1"), 1, kAlice, c.now);
  const auto waits = c.effects<StepMustWait>();
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].message.text(), "gpu1, which does not respond");
  wire::NodeReport report;
  wire::HeldJob* held = report.add_jobs();
  held->set_job_id(id);
  held->set_attempt(1);
  c.up("gpu1", report);
  EXPECT_EQ(c.effects<GrantStep>().size(), 1U);
}

TEST(Steps, ADrainedNodeStillTakesTheStepsOfItsJobs) {
  Controller c;
  const JobId id = c.started("-w gpu1 -n1 --mem=1G");
  NodeChange drain;
  drain.state = "DRAIN";
  drain.reason = "fan";
  drain.caller = kRoot;
  ASSERT_TRUE(c.state.change_node("gpu1", drain, c.now));
  c.state.take_effects();
  c.state.create_step(step(id, "-n1"), 1, kAlice, c.now);
  EXPECT_EQ(c.effects<GrantStep>().size(), 1U);
  EXPECT_FALSE(c.state.cluster().nodes[*c.state.cluster().find_node("gpu1")].usable);
}

TEST(Steps, RefusalsAndStrangers) {
  Controller c;
  const JobId id = c.started("-n1 --mem=1G");
  c.state.take_effects();
  c.state.create_step(step(id, "-n500"), 1, kAlice, c.now);
  c.state.create_step(step(id, "-n1"), 2, kBob, c.now);
  c.state.create_step(step(99, "-n1"), 3, kAlice, c.now);
  const auto refused = c.effects<RefuseStep>();
  ASSERT_EQ(refused.size(), 3U);
  EXPECT_EQ(refused[1].error.what(), "Unable to create step for job 1: Access/permission denied");
  EXPECT_EQ(refused[2].error.what(), "Unable to create step for job 99: Invalid job id specified");
}

TEST(Steps, WaitingStepsAreRefusedWhenTheJobEnds) {
  Controller c;
  const JobId id = c.started("-n1 --mem=1G");
  c.state.create_step(step(id, "-n1"), 1, kAlice, c.now);
  c.state.create_step(step(id, "-n1"), 2, kAlice, c.now);
  c.state.take_effects();
  c.script_ends(id);
  const auto refused = c.effects<RefuseStep>();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].key, 2U);
}

TEST(Steps, ItsOwnTimeLimitEndsAStep) {
  Controller c;
  const JobId id = c.started("-n1 --mem=1G -t 10");
  c.state.create_step(step(id, "-n1 -t 1"), 1, kAlice, c.now);
  c.state.take_effects();
  EXPECT_EQ(c.state.next_deadline(), kStart + 60);
  c.state.tick(kStart + 60);
  const auto ends = c.effects<EndStep>();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].cause, "TIME LIMIT");
  c.step_ends(id, 0, 15);
  EXPECT_EQ(c.state.take_dirty().steps.back().state(), "TIMEOUT");
}

TEST(Steps, AStepIsAdoptedFromItsSpec) {
  Controller c;
  const JobId id = c.started("-n1 --gpus=1 --mem=1G");
  c.state.create_step(step(id, "-n1 --gpus=1"), 1, kAlice, c.now);
  const wire::StepSpec spec = c.effects<GrantStep>().at(0).specs.at(0);
  Controller d;
  ASSERT_EQ(d.started("-n1 --gpus=1 --mem=1G"), id);
  d.state.step_started(spec, spec.node(), d.now);
  EXPECT_TRUE(d.at(id).running->open_steps.contains(0));
  d.state.take_effects();
  d.state.create_step(step(id, "-n1 --gpus=1"), 2, kAlice, d.now);
  EXPECT_EQ(d.effects<StepMustWait>().size(), 1U);
  d.step_ends(id, 0, 0);
  EXPECT_EQ(d.effects<GrantStep>().at(0).grant.step_id(), 1U);
}

TEST(Steps, WhatTasksUsedIsAddedUpAndStored) {
  Controller c;
  const JobId id = c.started("-N2 -n2 --ntasks-per-node=1 --mem=1G");
  c.state.create_step(step(id, "-N2 -n2"), 1, kAlice, c.now);
  const std::vector<std::string> nodes = c.at(id).running->open_steps.at(0).nodes;
  ASSERT_EQ(nodes.size(), 2U);
  c.state.take_dirty();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    wire::StepEnded message;
    message.set_node(nodes[rank]);
    message.set_job_id(id);
    message.set_attempt(1);
    message.set_step_id(0);
    message.mutable_usage()->set_user_microseconds(100);
    wire::StepFigures& figures = *message.mutable_usage()->mutable_figures();
    wire::note(*figures.mutable_read(), rank, 1000 * (rank + 1));
    if (rank == 1) wire::note(*figures.mutable_gpu_memory(), rank, 77);
    c.state.step_ended(message, c.now);
  }
  const wire::StepUse use = c.state.take_dirty().steps.back().use();
  EXPECT_EQ(use.user_microseconds(), 200U);
  EXPECT_EQ(use.figures().read().total(), 3000U);
  EXPECT_EQ(use.figures().read().most_node(), nodes[1]);
  EXPECT_EQ(use.figures().read().least_node(), nodes[0]);
  EXPECT_EQ(use.figures().gpu_memory().tasks(), 1U);
  EXPECT_FALSE(use.figures().has_cpu());
}

TEST(Steps, OneThatTookTooMuchOfAGpuEndsOnAllItsNodes) {
  Controller c;
  const JobId id = c.started("-N2 -n2 --ntasks-per-node=1 --mem=1G");
  c.state.create_step(step(id, "-N2 -n2"), 1, kAlice, c.now);
  const std::vector<std::string> nodes = c.at(id).running->open_steps.at(0).nodes;
  ASSERT_EQ(nodes.size(), 2U);
  const auto ends_on = [&](const std::string& node) {
    wire::StepEnded message;
    message.set_node(node);
    message.set_job_id(id);
    message.set_attempt(1);
    message.set_step_id(0);
    message.set_cause(std::string(wire::kGpuMemoryCause));
    message.set_out_of_memory(true);
    message.add_statuses(wire::kOutOfMemoryStatus);
    c.state.step_ended(message, c.now);
  };
  c.state.take_effects();
  ends_on(nodes[1]);
  const auto ends = c.effects<EndStep>();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].nodes, std::vector<std::string>{nodes[0]});
  EXPECT_EQ(ends[0].step, 0U);
  EXPECT_EQ(ends[0].cause, wire::kGpuMemoryCause);
  c.state.take_dirty();
  ends_on(nodes[0]);
  EXPECT_TRUE(c.effects<EndStep>().empty()) << "nobody is told twice";
  EXPECT_EQ(c.state.take_dirty().steps.back().state(), "OUT_OF_MEMORY");
}

TEST(Steps, TheEndOfAJobCancelsItsScriptAndItsSteps) {
  const struct {
    std::int32_t status;
    const char* cancelled;  // when it ends after scancel
    const char* alone;      // by itself
  } rows[] = {{15, "CANCELLED", "FAILED"},       {9, "CANCELLED", "FAILED"},
              {143 << 8, "CANCELLED", "FAILED"},  // a shell whose command was ended before it
              {11, "FAILED", "FAILED"},           // its own doing
              {3 << 8, "FAILED", "FAILED"},       // it has heard SIGTERM and decided for itself
              {0, "COMPLETED", "COMPLETED"}};
  for (const auto& row : rows) {
    for (const std::uint32_t which : {0U, std::uint32_t{wire::kBatchStep}}) {
      for (const bool cancelled : {true, false}) {
        Controller c;
        const JobId id = c.started("-n1 --mem=1G");
        c.state.create_step(step(id, "-n1"), 1, kAlice, c.now);
        if (cancelled) {
          ASSERT_TRUE(c.state.cancel(id, {kAlice, {}, false, false, false}, c.now));
        }
        c.state.take_dirty();
        c.step_ends(id, which, row.status);
        EXPECT_EQ(c.state.take_dirty().steps.front().state(), cancelled ? row.cancelled : row.alone)
            << row.status << (which == 0 ? " of a step" : " of the script");
      }
    }
  }
}

TEST(Steps, TheStepOfSrunsOwnJob) {
  Controller c;
  const JobId id = c.started("-N2 -n4 --mem=1G", "srun");
  c.state.take_effects();
  wire::CreateStep ask = step(id, "-N2 -n4 --mem=1G");
  ask.set_own_job(true);
  c.state.create_step(ask, 1, kAlice, c.now);
  const auto grants = c.effects<GrantStep>();
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].grant.ntasks(), 4U);
  EXPECT_EQ(value_of(grants[0].specs[0].common(), "SLURM_JOB_UID"), "1001");
  EXPECT_EQ(value_of(grants[0].specs[0].common(), "SLURM_SUBMIT_DIR"), "/home/alice");
}

TEST(Steps, AStepOverComponents) {
  Controller c;
  const JobId id = c.submit("-n1 --mem=1G : -n2 --mem=1G");
  ASSERT_TRUE(c.start(id));
  c.begun(id);
  c.begun(id + 1);
  c.state.take_effects();
  c.state.create_step(step(id, "--het-group=0,1"), 1, kAlice, c.now);
  const auto grants = c.effects<GrantStep>();
  ASSERT_EQ(grants.size(), 1U);
  ASSERT_EQ(grants[0].specs.size(), 2U);
  EXPECT_EQ(grants[0].specs[0].job_id(), id);
  EXPECT_EQ(grants[0].specs[1].job_id(), id + 1);
  EXPECT_EQ(grants[0].specs[1].node_id(), 1U);
  ASSERT_TRUE(c.state.end_step(id, 0, kAlice, "", c.now));
  EXPECT_EQ(c.effects<EndStep>().size(), 2U);
  c.step_ends(id, 0, 0);
  c.step_ends(id + 1, 0, 0);
  EXPECT_TRUE(c.at(id + 1).running->open_steps.empty());
}

TEST(Launch, TheBatchScript) {
  Controller c;
  const JobId id = c.submit("--array=3-5:2 --mem=1G --gpus=1 -o out-%A_%a --export=FOO=1");
  ASSERT_TRUE(c.start(id));
  const Job& job = *c.state.find_element(id, 3);
  wire::Asked asked = c.blobs[0];
  wire::Variable* own = asked.add_environment();
  own->set_name("BAR");
  own->set_value("2");
  User alice{1001, 1001, "alice", "users", "/home/alice", "/bin/bash", {1001, 7}};
  const wire::BeginJob begin =
      begin_job(c.state, job, job.nodes.front(), asked, alice, 4, kStart + 60, "n");
  ASSERT_TRUE(begin.has_batch());
  const wire::Program& program = begin.batch().program();
  EXPECT_EQ(program.script(), "#!/bin/sh\nsrun app\n");
  EXPECT_EQ(program.stdout().pattern(), "out-%A_%a");
  EXPECT_EQ(program.array_task_id(), 3U);
  EXPECT_EQ(value_of(program.environment(), "SLURM_ARRAY_TASK_ID"), "3");
  EXPECT_EQ(value_of(program.environment(), "SLURM_ARRAY_TASK_STEP"), "2");
  EXPECT_EQ(value_of(program.environment(), "FOO"), "1");
  EXPECT_EQ(value_of(program.environment(), "BAR"), "(none)");
  EXPECT_EQ(value_of(program.environment(), "SLURM_JOB_USER"), "alice");
  EXPECT_EQ(value_of(program.environment(), "SLURM_GET_USER_ENV"), "1");
  EXPECT_EQ(value_of(program.environment(), "CUDA_VISIBLE_DEVICES"), "0");
  wire::StepSpec spec;
  ASSERT_TRUE(spec.ParseFromString(begin.batch().ticket().spec()));
  EXPECT_EQ(spec.step_id(), wire::kBatchStep);
  EXPECT_EQ(spec.epoch(), 4U);
  EXPECT_EQ(spec.home(), "/home/alice");
}

}  // namespace
}  // namespace berth::job::testing
