// What one option implies for another, row by row.
#include "request/counts.h"

#include <gtest/gtest.h>

#include "request/parse_testing.h"

namespace berth::request {
namespace {

Request srun() {
  Request r;
  r.command = Command::srun;
  return r;
}
NodeCount nodes(std::uint32_t n) {
  return {n, n, false, {}};
}
std::vector<GresAsk> gpus(std::uint64_t n, const char* type = "") {
  return {{"gpu", type, n}};
}

TEST(Counts, TasksFollowFromNodesAndTasksPerNode) {
  Request r = srun();
  r.nodes = nodes(2);
  r.ntasks_per_node = 4;
  const auto counts = derive_counts(r);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->tasks, 8U);
  EXPECT_FALSE(counts->tasks_explicit);
}

TEST(Counts, NodesAloneMakeNoTaskCount) {
  Request r = srun();
  r.nodes = nodes(3);
  const auto counts = derive_counts(r);
  ASSERT_TRUE(counts);
  EXPECT_FALSE(counts->tasks);
  EXPECT_EQ(counts->min_nodes, 3U);
  EXPECT_EQ(counts->max_nodes, 3U);
}

TEST(Counts, FewerTasksThanNodesLowersTheNodes) {
  Request r = srun();
  r.nodes = nodes(4);
  r.ntasks = 2;
  const auto counts = derive_counts(r);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->min_nodes, 2U);
  EXPECT_EQ(counts->max_nodes, 2U);
  ASSERT_EQ(counts->warnings.size(), 1U);
  EXPECT_EQ(counts->warnings[0].text, "can't run 2 processes on 4 nodes, setting nnodes to 2");
}

TEST(Counts, GpusPerTaskIsAlsoAJobTotal) {
  Request r = srun();
  r.nodes = nodes(2);
  r.ntasks_per_node = 2;
  r.gres_per_task = gpus(1, "a100");
  const auto counts = derive_counts(r);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->per_job, (std::vector<GresAsk>{{"gpu", "a100", 4}}));
  ASSERT_TRUE(counts->gpu_bind);
  EXPECT_EQ(counts->gpu_bind->text, "gres/gpu:per_task:1");
  EXPECT_EQ(counts->desired_nodes, 2U);
}

TEST(Counts, GpusPerTaskNeedsATaskCount) {
  Request r = srun();
  r.gres_per_task = gpus(2);
  const auto counts = derive_counts(r);
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().messages[0].text,
            "Failed to validate job spec. --gpus-per-task or --tres-per-task used without either "
            "--gpus or -n/--ntasks is not allowed.");
  EXPECT_EQ(counts.error().messages[1].text, "Invalid generic resource (gres) specification");
  EXPECT_FALSE(counts.error().hint.empty());
}

TEST(Counts, GpusAndGpusPerTaskMakeTasks) {
  Request r = srun();
  r.gres_per_job = gpus(4);
  r.gres_per_task = gpus(1);
  EXPECT_EQ(derive_counts(r)->tasks, 4U);
  r.ntasks = 2;
  const auto differ = derive_counts(r);
  ASSERT_FALSE(differ);
  EXPECT_NE(differ.error().what().find("number of requested tasks differ from -n/--ntasks"),
            std::string_view::npos);
}

TEST(Counts, GpusPerNodeAndPerTaskMakeTasksPerNode) {
  Request r = srun();
  r.ntasks = 4;
  r.gres_per_node = gpus(4);
  r.gres_per_task = gpus(1);
  EXPECT_EQ(derive_counts(r)->ntasks_per_node, 4U);
  r.gres_per_task = gpus(3);
  EXPECT_FALSE(derive_counts(r));
}

TEST(Counts, TasksPerGpuMakesTasksOrGpus) {
  Request r = srun();
  r.gres_per_job = gpus(2);
  r.ntasks_per_gpu = 2;
  EXPECT_EQ(derive_counts(r)->tasks, 4U);
  EXPECT_EQ(derive_counts(r)->gpu_bind->text, "gres/gpu:single:2");
  r.gres_per_job.clear();
  r.ntasks = 6;
  EXPECT_EQ(total_of(derive_counts(r)->per_job, "gpu"), 3U);
  r.ntasks = 5;
  EXPECT_FALSE(derive_counts(r));
}

TEST(Counts, AJobTotalBoundsTheNodes) {
  Request r = srun();
  r.nodes = NodeCount{2, 8, true, {}};
  r.gres_per_job = gpus(6);
  auto counts = derive_counts(r);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->max_nodes, 6U);
  EXPECT_EQ(counts->desired_nodes, 2U) << "with a GPU total the fewest nodes are wanted";
  r.gres_per_job = gpus(1);
  EXPECT_FALSE(derive_counts(r)) << "each node gets a GPU";
  r.gres_per_job = gpus(8);
  r.gres_per_node = gpus(4);
  counts = derive_counts(r);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->min_nodes, 2U);
  EXPECT_EQ(counts->max_nodes, 2U);
}

TEST(Counts, AmountsPerGpuNeedAGpu) {
  Request r = srun();
  r.cpus_per_gpu = 3;
  const auto counts = derive_counts(r);
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().what(),
            "Requested cpus_per_tres=gres/gpu:3 but did not request any GPU.");
}

TEST(Counts, AbsurdProductsAreRefused) {
  Request r = srun();
  r.nodes = nodes(2000000000U);
  r.ntasks_per_node = 2000000000U;
  EXPECT_FALSE(derive_counts(r));
}

TEST(Counts, DevicesBeyondAllMeansAreCapped) {
  const Result<Parsed> parsed =
      testing::parse_line("sbatch -n2000000000 --gpus-per-task=1p --gres=shard:1p x");
  ASSERT_TRUE(parsed) << parsed.error().what();
  const Result<Counts> counts = derive_counts(parsed->components[0]);
  ASSERT_TRUE(counts) << counts.error().what();
  EXPECT_EQ(counts->per_task.at(0).count, kMostDevices);
  EXPECT_EQ(counts->per_node.at(0).count, kMostDevices);
  EXPECT_EQ(counts->per_job.at(0).count, kMostDevices * 2000000000);
}

}  // namespace
}  // namespace berth::request
