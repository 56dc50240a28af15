// GPU binding: every row of the tables of spec placement-steps.md §6.2, and the recordings.
#include "place/gpu_bind.h"

#include <gtest/gtest.h>

#include "place/step_test_fixture.h"

namespace berth::place {
namespace {

using corpus::Job;

struct BindRow {
  const char* srun;
  const char* gpus;
};

class GpuBinding : public testing::Test {
 protected:
  cluster::Cluster cluster_ = corpus::make();
  Job eight_{cluster_,
             "-N1 --exclusive --gres=gpu:8 -w gpu6",
             {{"gpu6", Bits::first_n(16), Bits::first_n(8), 65536, {}}}};
  Job four_{cluster_,
            "-N1 --exclusive --gres=gpu:4",
            {{"gpu1", Bits::first_n(16), Bits::first_n(4), 65536, {}}}};

  static void expect(Job& job, const std::vector<BindRow>& rows) {
    for (const BindRow& row : rows) {
      const StepPlan plan = job.plan(row.srun);
      EXPECT_EQ(plan.verdict, StepVerdict::starts) << row.srun << ": " << corpus::lines(plan);
      EXPECT_EQ(corpus::gpus(plan), row.gpus) << row.srun;
    }
  }

  static std::string messages(const StepPlan& plan, std::size_t rank) {
    std::string out;
    for (const Message& message : plan.tasks[rank].messages) {
      out += (out.empty() ? "" : "\n") + message.text;
    }
    return out;
  }
};

TEST_F(GpuBinding, EightGpus) {
  expect(eight_,
         {
             {"-n6 --exact --gpu-bind=closest", "0,1,2,3|4,5,6,7|0,1,2,3|4,5,6,7|0,1,2,3|4,5,6,7"},
             {"-n6 --exact --gpu-bind=single:1", "0|4|1|5|2|6"},
             {"-n6 --exact --gpu-bind=per_task:1", "0|4|1|5|2|6"},
             {"-n6 --exact --gpu-bind=single:3", "0|4|0|4|0|4"},
             {"-n10 --exact --gpu-bind=single:1", "0|4|1|5|2|6|3|7|0|1"},
             {"-n6 --exact --gpu-bind=map:7,5,3", "7|5|3|7|5|3"},
             {"-n6 --exact --gpu-bind=map:6*4,1", "6|6|6|6|1|6"},
             {"-n6 --exact --gpu-bind=mask:0xf0,0x3", "4,5,6,7|0,1|4,5,6,7|0,1|4,5,6,7|0,1"},
             {"-n3 --exact --gpu-bind=verbose,per_task:2", "0,1|4,5|2,3"},
             {"-n6 --exact --gpus-per-task=1 --gpu-bind=none",
              "0,1,2,3,4,5|0,1,2,3,4,5|0,1,2,3,4,5|0,1,2,3,4,5|0,1,2,3,4,5|0,1,2,3,4,5"},
             {"-n1 --cpu-bind=mask_cpu:0xff01 --gpu-bind=single:1", "0"},
         });
  const StepPlan ten = eight_.plan("-n10 --exact --gpu-bind=single:1");
  EXPECT_EQ(messages(ten, 7), "");
  EXPECT_EQ(messages(ten, 8),
            "_get_single_usable_gres Can't find free slot for local_proc_id = 8, continue using "
            "block distribution");
  EXPECT_EQ(messages(eight_.plan("-n3 --exact --gpu-bind=verbose,per_task:2"), 1),
            "gpu-bind: usable_gres=0x30; bit_alloc=0xFF; local_inx=0; global_list=4,5; "
            "local_list=4,5");
}

TEST_F(GpuBinding, FourGpus) {
  expect(four_, {
                    {"-n8 --exact --gpu-bind=single:2", "0|2|0|2|1|3|1|3"},
                    {"-n4 --exact --gpu-bind=closest", "0,1|2,3|0,1|2,3"},
                    {"-n2 -c8 --gpu-bind=closest", "0,1|2,3"},
                    {"-n2 -c8 --gpu-bind=single:1", "0|2"},
                    {"-n4 --gpu-bind=map_gpu:0,1,2,3", "0|1|2|3"},
                    {"-n4 --gpu-bind=map_gpu:0*2,1*2", "0|0|1|1"},
                    {"-n4 --gpu-bind=mask_gpu:0x3,0xc", "0,1|2,3|0,1|2,3"},
                    {"-n4 --gpu-bind=none", "0,1,2,3|0,1,2,3|0,1,2,3|0,1,2,3"},
                    {"-n2 --exact --gpu-bind=per_task:2", "0,1|2,3"},
                    {"-n4 --exact --gres=none --gpus-per-task=1", "0|2|1|3"},
                    {"-n3 --gpu-bind=per_task:2", "0,1|2,3|0"},
                });
  EXPECT_EQ(messages(four_.plan("-n3 --gpu-bind=per_task:2"), 2),
            "Not enough gres to bind 2 per task\n"
            "Bind request gres/gpu:per_task:2 does not specify any devices within the allocation "
            "for task 2. Binding to the first device in the allocation instead.");
  const StepPlan beyond = four_.plan("-n2 --gpu-bind=map:2,9");
  EXPECT_EQ(corpus::gpus(beyond), "2|0");
  EXPECT_EQ(messages(beyond, 1),
            "Invalid map or mask value specified.\n"
            "Bind request gres/gpu:map:2,9 does not specify any devices within the allocation for "
            "task 1. Binding to the first device in the allocation instead.");
}

TEST_F(GpuBinding, IdsAreTheNodesWithoutAFence) {
  eight_.start("-n1 --exact --gres=gpu:2");
  const StepPlan plan = eight_.plan("-n2 --exact --gres=gpu:3 --gpu-bind=map:0,2");
  EXPECT_EQ(corpus::gpus(plan), "2|2");
  EXPECT_FALSE(plan.tasks[0].messages.empty());
  EXPECT_TRUE(plan.tasks[1].messages.empty());
}

TEST_F(GpuBinding, IdsCountInsideTheStepBehindAFence) {
  cluster_.settings.constrain_devices = true;
  eight_.start("-n1 --exact --gres=gpu:2");
  const StepPlan plan = eight_.plan("-n2 --exact --gres=gpu:3 --gpu-bind=map:0,2");
  EXPECT_EQ(corpus::gpus(plan), "2|4");
  const Environment env = task_environment(cluster_, eight_.facts(), plan, plan.tasks[1], {});
  EXPECT_EQ(env.at("CUDA_VISIBLE_DEVICES"), "0");
  EXPECT_EQ(env.at("SLURM_STEP_GPUS"), "4");
  EXPECT_EQ(env.at("SLURM_GPUS_ON_NODE"), "3");
}

// Recorded behind a device fence: batch -n4 --gres=gpu:4 and its steps A to E.
TEST_F(GpuBinding, RecordedBehindAFence) {
  cluster_.settings.constrain_devices = true;
  Job job(cluster_, "-n4 --gres=gpu:4 --mem=4G",
          {{"gpu1", Bits::of({0, 1, 8, 9}), Bits::first_n(4), 4096, {}}});
  const auto visible = [&](const StepPlan& plan) {
    std::string out;
    for (const TaskPlan& task : plan.tasks) {
      const Environment env = task_environment(cluster_, job.facts(), plan, task, {});
      out += (task.rank > 0 ? "|" : "") + env.at("CUDA_VISIBLE_DEVICES");
    }
    return out;
  };
  const StepPlan a = job.start("-n1 --exact --mem=1G --gres=gpu:2");
  const StepPlan b = job.start("-n1 --exact --mem=1G --gres=gpu:1");
  EXPECT_EQ(corpus::gpus(a) + " " + visible(a), "0,1 0,1");
  EXPECT_EQ(corpus::gpus(b) + " " + visible(b), "2 0");
  job.state().finish(0);
  job.state().finish(1);
  const StepPlan c = job.run("--gpus-per-task=1");
  EXPECT_EQ(corpus::gpus(c) + " " + visible(c), "0|2|1|3 0|0|0|0");
  const StepPlan d = job.run("--gpu-bind=closest");
  EXPECT_EQ(corpus::gpus(d) + " " + visible(d), "0,1|2,3|0,1|2,3 0,1|0,1|0,1|0,1");
  const StepPlan e = job.run("--gpu-bind=map_gpu:3,2,1,0");
  EXPECT_EQ(corpus::gpus(e) + " " + visible(e), "3|2|1|0 0|0|0|0");
  EXPECT_EQ(batch_environment(cluster_, job.facts()).at("CUDA_VISIBLE_DEVICES"), "0,1,2,3");
  const StepPlan shared = job.run("--gpus-per-task=1 --gres-flags=allow-task-sharing");
  EXPECT_EQ(corpus::gpus(shared) + " " + visible(shared), "0|2|1|3 0|2|1|3");
  // Where the step's fence is the default, the choice is the variable's; --gres-flags goes both
  // ways.
  cluster_.settings.step_fence = true;
  const StepPlan wide = job.run("--gpus-per-task=1");
  EXPECT_EQ(corpus::gpus(wide) + " " + visible(wide), "0|2|1|3 0|2|1|3");
  const StepPlan narrow = job.run("--gpus-per-task=1 --gres-flags=no-task-sharing");
  EXPECT_EQ(corpus::gpus(narrow) + " " + visible(narrow), "0|2|1|3 0|0|0|0");
  const StepPlan unbound = job.run("-n1 --gres=gpu:2");
  EXPECT_EQ(corpus::gpus(unbound) + " " + visible(unbound), "0,1 0,1");
}

TEST_F(GpuBinding, ImpliedByTasksPerGpu) {
  Job job(cluster_, "--gpus=2 --ntasks-per-gpu=2",
          {{"gpu1", Bits::first_n(4), Bits::of({0, 1}), 65536, {}}}, request::Command::srun);
  const StepPlan plan = place_own_step(cluster_, job.facts(), job.facts().request);
  EXPECT_EQ(corpus::gpus(plan), "0|0|1|1");
  EXPECT_EQ(corpus::masks(plan), "1,2,4,8");
  EXPECT_EQ(plan.gpu_bind->text, "gres/gpu:single:2");
}

TEST_F(GpuBinding, InheritedFromTheJob) {
  Job job(cluster_, "-N1 -n2 --gres=gpu:2 --gpu-bind=single:1",
          {{"gpu1", Bits::of({0, 1}), Bits::of({0, 1}), 65536, {}}});
  EXPECT_EQ(corpus::gpus(job.plan("")), "0|1");
}

}  // namespace
}  // namespace berth::place
