// Where the daemons of mpirun run: the argument lists of Open MPI, PRRTE and Hydra, and what is
// refused.
#include "place/step_launcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "place/step_test_fixture.h"

namespace berth::place {
namespace {

using corpus::Job;
using corpus::On;

std::vector<On> gpu_nodes(int count) {
  std::vector<On> nodes;
  for (int i = 1; i <= count; ++i) {
    nodes.push_back({fmt::format("gpu{}", i), Bits::first_n(4), Bits::first_n(4), 65536, {}});
  }
  return nodes;
}

/// "gpu1 gpu3", or what is wrong.
std::string daemons_on(const cluster::Cluster& cluster, const StepPlan& plan) {
  if (plan.verdict != StepVerdict::starts) {
    return fmt::format("{}: {}", plan.error.what(), plan.error.hint);
  }
  std::string out;
  for (const TaskPlan& task : plan.tasks) {
    out += (out.empty() ? "" : " ") + cluster.nodes[task.node].name;
  }
  EXPECT_EQ(plan.tasks.size(), plan.nodes.size());
  EXPECT_EQ(plan.ntasks, plan.nodes.size());
  return out;
}

TEST(StepLauncher, RunsOnTheNodesItNames) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N4 --ntasks-per-node=4 -c1 --gres=gpu:4", gpu_nodes(4));
  struct Row {
    const char* line;
    const char* nodes;
  };
  constexpr const char* kOneEach =
      "Unable to create step for job 7: Task count specification invalid: --external-launcher "
      "starts one task on each node, for the daemons of mpirun; ";
  for (const Row& row : {
           // Open MPI 4.1, of all and of one: mpirun -H gpu2:2
           Row{"--ntasks-per-node=1 --kill-on-bad-exit --mpi=none --ntasks=4 --external-launcher",
               "gpu1 gpu2 gpu3 gpu4"},
           Row{"--ntasks-per-node=1 --kill-on-bad-exit --mpi=none --nodes=3 "
               "--nodelist=gpu2,gpu3,gpu4 --ntasks=3 --external-launcher",
               "gpu2 gpu3 gpu4"},
           Row{"--ntasks-per-node=1 --kill-on-bad-exit --mpi=none --nodes=1 --nodelist=gpu2 "
               "--ntasks=1 --external-launcher",
               "gpu2"},
           // PRRTE
           Row{"--external-launcher --ntasks-per-node=1 --no-kill --kill-on-bad-exit=0 --mpi=none "
               "--cpu-bind=none --jobid=7 --nodes=2 --nodelist=gpu2,gpu4 --ntasks=2",
               "gpu2 gpu4"},
           Row{"--external-launcher --ntasks-per-node=1 --kill-on-bad-exit --mpi=none "
               "--cpu-bind=none --jobid=7 --ntasks=4",
               "gpu1 gpu2 gpu3 gpu4"},
           // Hydra, of all and of one: mpiexec -hosts gpu2
           Row{"--external-launcher -N 4 -n 4 --input none", "gpu1 gpu2 gpu3 gpu4"},
           Row{"--nodelist gpu2 -N 1 -n 1 --input none --external-launcher", "gpu2"},
           Row{"--external-launcher", "gpu1 gpu2 gpu3 gpu4"},
           Row{"--external-launcher -w gpu[3-4]", "gpu3 gpu4"},
           Row{"--external-launcher -N2", "gpu1 gpu2"},
           Row{"--external-launcher -N2 -r2", "gpu3 gpu4"},
           Row{"--external-launcher -N3 -x gpu2", "gpu1 gpu3 gpu4"},
           Row{"--external-launcher -n2", "gpu1 gpu2"},
           Row{"--external-launcher -w gpu5",
               "Unable to create step for job 7: Requested node configuration is not available: "
               "gpu5 is not a node of this job"},
           Row{"--external-launcher -N5", "Only allocated 4 nodes asked for 5: "},
       }) {
    EXPECT_EQ(daemons_on(cluster, job.plan(row.line)), row.nodes) << row.line;
  }
  EXPECT_EQ(daemons_on(cluster, job.plan("--external-launcher -n8")),
            std::string(kOneEach) + "8 tasks on 4 nodes were asked for");
  EXPECT_EQ(daemons_on(cluster, job.plan("--external-launcher --ntasks-per-node=2")),
            std::string(kOneEach) + "--ntasks-per-node=2 was asked for");
}

TEST(StepLauncher, RunsOnNodesThatAreUp) {
  cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N2 --ntasks-per-node=4", gpu_nodes(2));
  cluster.nodes[*cluster.find_node("gpu2")].usable = false;
  EXPECT_EQ(daemons_on(cluster, job.plan("--external-launcher -w gpu2")),
            "Unable to create step for job 7: Requested node configuration is not available: gpu2 "
            "is down");
  EXPECT_EQ(daemons_on(cluster, job.plan("--external-launcher")),
            "Unable to create step for job 7: Requested node configuration is not available: 1 of "
            "the 2 nodes that were asked for can be reached");
  EXPECT_EQ(daemons_on(cluster, job.plan("--external-launcher -N1")), "gpu1");
}

}  // namespace
}  // namespace berth::place
