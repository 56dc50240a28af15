#include <gtest/gtest.h>

#include "openb/experiment.h"
#include "openb/workload.h"

namespace berth::openb {
namespace {

constexpr std::string_view kNodes =
    "sn,cpu_milli,memory_mib,gpu,model\n"
    "a,32000,131072,4,V100\n"
    "b,32000,131072,4,V100\n"
    "c,64000,131072,2,T4\n"
    "d,64000,131072,0,\n";

TEST(Workload, ColumnsAreFoundByName) {
  const auto read = read_workload(kNodes,
                                  "gpu_milli,num_gpu,name,memory_mib,cpu_milli,gpu_spec\r\n"
                                  "1000,2,x,1024,4000,T4|A10\r\n"
                                  "460,1,y,2048,6000,\r\n"
                                  "0,0,z,512,1500,\r\n");
  ASSERT_TRUE(read) << read.error().what();
  EXPECT_EQ(read->nodes.size(), 4U);
  EXPECT_EQ(read->gpu_milli, 10000U);
  ASSERT_EQ(read->demands.size(), 3U);
  const std::uint64_t t4 = read->nodes[2].model;
  EXPECT_EQ(read->demands[0].gpus, 2U);
  EXPECT_EQ(read->demands[0].models & t4, t4);
  EXPECT_TRUE(place::fits(read->nodes[2], read->demands[0]));
  EXPECT_FALSE(place::fits(read->nodes[0], read->demands[0]));
  EXPECT_EQ(read->demands[1], (cluster::Demand{6000, 2048, 0, 460, 0}));
  EXPECT_EQ(read->demands[2], (cluster::Demand{1500, 512, 0, 0, 0}));
}

TEST(Workload, FiveColumnsAreEnough) {
  const auto read =
      read_workload(kNodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nx,1000,1024,1,1000\n");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->demands[0], (cluster::Demand{1000, 1024, 1, 0, 0}));
}

TEST(Workload, FaultsAreNamedWithTheirLine) {
  struct Row {
    std::string_view pods;
    std::string_view fault;
  };
  for (const Row& row : {
           Row{"", "pods: no column \"cpu_milli\" in its first line"},
           Row{"cpu_milli,memory_mib,num_gpu\n1,1,1\n",
               "pods: no column \"gpu_milli\" in its first line"},
           Row{"cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1,1000\n1,many,1,1000\n",
               "pods:3: memory_mib: \"many\" is not a whole number"},
           Row{"cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1\n",
               "pods:2: num_gpu: \"\" is not a whole number"},
           Row{"cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1,1001\n",
               "pods:2: gpu_milli: 1001 is more than 1000"},
           Row{"cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,-1,0\n",
               "pods:2: num_gpu: \"-1\" is not a whole number"},
           Row{"cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,0,0\n",
               "pods: no request asks for a GPU"},
       }) {
    const auto read = read_workload(kNodes, row.pods);
    ASSERT_FALSE(read) << row.pods;
    EXPECT_EQ(read.error().what(), row.fault);
  }
}

/// 8 small and 2 large requests that just fill the nodes, but only when kept apart.
constexpr std::string_view kPods =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
    "a,24000,1024,4,1000\n"
    "b,4000,1024,1,500\n"
    "c,4000,1024,1,500\n"
    "d,4000,1024,1,1000\n"
    "e,40000,1024,0,0\n";

TEST(Experiment, IsTheSameForTheSameSeed) {
  const auto workload = read_workload(kNodes, kPods);
  ASSERT_TRUE(workload);
  Experiment first(*workload, Policy::keep_whole);
  const Curve a = first.run(42);
  const Curve other = first.run(43);
  const Curve again = first.run(42);
  EXPECT_EQ(a.allocated, again.allocated);
  EXPECT_NE(a.allocated, other.allocated);
}

TEST(Experiment, AllocatesNoMoreThanArrivedAndNeverLess) {
  const auto workload = read_workload(kNodes, kPods);
  ASSERT_TRUE(workload);
  for (const Policy policy : {Policy::keep_whole, Policy::best_fit, Policy::fgd}) {
    const Curve curve = Experiment(*workload, policy).run(1);
    for (std::size_t p = 1; p <= kLastPercent; ++p) {
      EXPECT_GE(curve.allocated[p], curve.allocated[p - 1]);
      EXPECT_LE(curve.allocated[p], 100);
    }
    EXPECT_GT(curve.allocated[kLastPercent], 40);
  }
}

}  // namespace
}  // namespace berth::openb
