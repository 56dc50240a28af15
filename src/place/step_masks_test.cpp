// CPU masks of steps: every row of the tables of spec placement-steps.md §5.
#include <gtest/gtest.h>

#include "place/step_test_fixture.h"

namespace berth::place {
namespace {

using corpus::Job;
using corpus::On;

struct MaskRow {
  const char* srun;
  std::uint32_t cpus;
  const char* masks;
};

std::string repeated(const std::string& mask, int times) {
  std::string out = mask;
  for (int i = 1; i < times; ++i) out += ',' + mask;
  return out;
}

void expect_rows(Job& job, const std::vector<MaskRow>& rows) {
  for (const MaskRow& row : rows) {
    const StepPlan plan = job.plan(row.srun);
    EXPECT_EQ(plan.verdict, StepVerdict::starts) << row.srun << ": " << corpus::lines(plan);
    EXPECT_EQ(corpus::cpus(plan), row.cpus) << row.srun;
    EXPECT_EQ(corpus::masks(plan), row.masks) << row.srun;
  }
}

TEST(StepMasks, SixteenCores) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N1 --exclusive --gres=gpu:4",
          {{"gpu1", Bits::first_n(16), Bits::first_n(4), 65536, {}}});
  const std::string round = "1,100,2,200,4,400,8,800,10,1000,20,2000,40,4000,80,8000";
  const std::string straight = "1,2,4,8,10,20,40,80,100,200,400,800,1000,2000,4000,8000";
  const std::string twenty = repeated("ffff", 20);
  expect_rows(job, {
                       {"", 16, "ffff"},
                       {"-n2", 16, "ff,ff00"},
                       {"-n3", 16, "ffff,ffff,ffff"},
                       {"-n16", 16, round.c_str()},
                       {"-n16 -m block:block", 16, straight.c_str()},
                       {"-n16 -m plane=4", 16, straight.c_str()},
                       {"-n1 -c3", 3, "7"},
                       {"-n4 -c3", 12, "7,700,38,3800"},
                       {"-n4 -c3 -m block:block", 12, "7,38,1c0,e00"},
                       {"-n4 -c3 -m block:fcyclic", 12, "103,604,818,3020"},
                       {"-c3", 15, "7,700,38,3800,40c0"},
                       {"-n2 -c8", 16, "ff,ff00"},
                       {"-n2 -c8 -m block:fcyclic", 16, "f0f,f0f0"},
                       {"-n4 --exact", 4, "1,100,2,200"},
                       {"-n4 --exact -m block:block", 4, "1,2,4,8"},
                       {"-n3 --exact --gres=gpu:1", 3, "1,2,4"},
                       {"-n3 --cpu-bind=cores", 16, "1,100,2"},
                       {"-n3 --cpu-bind=sockets", 16, "ff,ff00,ff"},
                       {"-n4 --ntasks-per-socket=2", 16, "ff,ff00,ff,ff00"},
                       {"-n4 --ntasks-per-core=1", 16, "1,100,2,200"},
                       {"-n4 --hint=memory_bound", 16, "1,100,2,200"},
                       {"-n20 -O", 16, twenty.c_str()},
                       {"-n3 --ntasks-per-socket=2 -m block:block", 16, "ff,ff,ff00"},
                       {"-n3 --ntasks-per-socket=1", 16, "ff,ff00,ff"},
                       {"-n2 -B 1:2", 16, "1,100"},
                   });
}

TEST(StepMasks, WholeNodeWithTwoThreadsACore) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N1 --exclusive -w cpu1", {{"cpu1", Bits::first_n(16), {}, 65536, {}}});
  expect_rows(job, {
                       {"-n1", 32, "ffffffff"},
                       {"-n2", 32, "ffff,ffff0000"},
                       {"-n3", 32, "ffffffff,ffffffff,ffffffff"},
                       {"-n1 --exact", 2, "3"},
                       {"-n3 --exact", 4, "30003,30003,30003"},
                       {"-n4 --exact", 4, "1,10000,2,20000"},
                       {"-n4 -c1", 4, "1,10000,2,20000"},
                       {"-n2 -c1", 2, "1,2"},
                       {"-n4 -c2", 8, "3,30000,c,c0000"},
                       {"-n4 -c2 -m block:block", 8, "3,c,30,c0"},
                       {"-n4 -c2 -m block:fcyclic", 8, "10001,20002,40004,80008"},
                       {"-n4 -c3", 12, "7,70000,38,800c0"},
                       {"-n3 -c4", 12, "f,f0000,f0"},
                       {"-n4 --cpu-bind=threads", 32, "1,10000,2,20000"},
                       {"-n4 --hint=multithread", 32, "1,10000,2,20000"},
                       {"-n4 --threads-per-core=2", 32, "1,10000,2,20000"},
                       {"-n4 --ntasks-per-core=2", 32, "1,10000,2,20000"},
                       {"-n4 --cpu-bind=cores", 32, "3,30000,c,c0000"},
                       {"-n4 --ntasks-per-core=1", 32, "3,30000,c,c0000"},
                       {"-n4 --hint=compute_bound", 32, "3,30000,c,c0000"},
                       {"-n4 --exact --ntasks-per-core=1", 8, "3,30000,c,c0000"},
                       {"-n4 -c1 --cpu-bind=cores", 4, "3,30000,30000,3"},
                       {"-n4 --hint=nomultithread", 32, "1,10000,4,40000"},
                       {"-n4 --threads-per-core=1", 32, "1,10000,4,40000"},
                       {"-n4 -c2 --hint=nomultithread", 16, "5,50000,50,500000"},
                       {"-n4 -c3 --threads-per-core=1", 24, "15,150000,540,5400000"},
                   });
}

TEST(StepMasks, PartOfANode) {
  const cluster::Cluster cluster = corpus::make();
  const Bits cores = Bits::range(0, 3) | Bits::range(8, 11);
  Job job(cluster, "-N1 -n8 -w gpu1", {{"gpu1", cores, {}, 65536, {}}});
  expect_rows(job, {
                       {"-n2", 8, "f0f,f0f"},
                       {"-n2 --cpu-bind=cores", 8, "1,100"},
                       {"-n2 --cpu-bind=none", 8, "f0f,f0f"},
                       {"-n2 --cpu-bind=map_cpu:3,1", 8, "8,2"},
                       {"-n2 --cpu-bind=mask_cpu:0x3,0xc", 8, "3,c"},
                       {"-n2 --cpu-bind=sockets", 8, "f,f00"},
                       {"-n2 --cpu-bind=rank", 8, "f0f,f0f"},
                       {"-n8", 8, "1,100,2,200,4,400,8,800"},
                       {"-n2 -c4", 8, "f,f00"},
                       {"-n3 -c2", 6, "3,300,c"},
                       {"-n1 --cpu-bind=verbose", 8, "f0f"},
                   });
}

TEST(StepMasks, NodesOfOneStepMayDiffer) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N2 --ntasks-per-node=4",
          {{"gpu1", Bits::first_n(4), {}, 65536, {}}, {"gpu2", Bits::first_n(4), {}, 65536, {}}});
  EXPECT_EQ(corpus::masks(job.plan("-n6 -m pack")), "1,2,4,8,f,f");
}

TEST(StepMasks, JobsOfTheirOwn) {
  const cluster::Cluster cluster = corpus::make();
  const struct {
    const char* srun;
    On on;
    std::uint32_t cpus;
    const char* masks;
  } rows[] = {
      {"-n1", {"cpu1", Bits::of({0}), {}, 65536, {}}, 2, "3"},
      {"-n4 --ntasks-per-core=1",
       {"cpu1", Bits::of({0, 1, 8, 9}), {}, 65536, {}},
       8,
       "3,30000,c,c0000"},
      {"-n4 --threads-per-core=1",
       {"cpu1", Bits::of({0, 1, 8, 9}), {}, 65536, {}},
       8,
       "1,10000,4,40000"},
      {"-n1 --threads-per-core=2 --cores-per-socket=8",
       {"cpu1", Bits::of({0}), {}, 65536, {}},
       2,
       "1"},
      {"-N1 -n2 --exclusive", {"gpu1", Bits::first_n(16), {}, 65536, {}}, 2, "1,100"},
      {"-N1 --exclusive", {"gpu6", Bits::first_n(16), {}, 65536, {}}, 16, "ffff"},
      {"-N1 -n2 -B 2:4", {"gpu1", Bits::of({0, 8}), {}, 65536, {}}, 2, "1,100"},
      {"-N1 -n2 --exclusive --gres=gpu:1",
       {"gpu1", Bits::first_n(16), Bits::of({0}), 65536, {}},
       2,
       "1,2"},
      {"--gpus=2 --cpus-per-gpu=3",
       {"gpu1", Bits::first_n(6), Bits::of({0, 1}), 65536, {}},
       6,
       "3f"},
      {"--gpus=4 --gpus-per-task=1",
       {"gpu1", Bits::of({0, 1, 8, 9}), Bits::first_n(4), 65536, {}},
       4,
       "303"},
      {"-n2 -c2 --mem-per-cpu=2G", {"gpu1", Bits::first_n(4), {}, 8192, {}}, 4, "3,c"},
  };
  for (const auto& row : rows) {
    Job job(cluster, row.srun, {row.on}, request::Command::srun);
    const StepPlan plan = place_own_step(cluster, job.facts(), job.facts().request);
    EXPECT_EQ(plan.verdict, StepVerdict::starts) << row.srun << ": " << corpus::lines(plan);
    EXPECT_EQ(corpus::cpus(plan), row.cpus) << row.srun;
    EXPECT_EQ(corpus::masks(plan), row.masks) << row.srun;
  }
}

TEST(StepMasks, ExplicitBindingThatCannotBe) {
  const cluster::Cluster cluster = corpus::make();
  Job job(cluster, "-N1 -n3", {{"gpu1", Bits::of({0, 1, 8}), {}, 65536, {}}});
  StepPlan plan = job.plan("-n1 --cpu-bind=map_cpu:5");
  EXPECT_EQ(plan.verdict, StepVerdict::refused);
  EXPECT_EQ(plan.error.exit_code, 192);
  EXPECT_EQ(corpus::lines(plan),
            "srun: error: CPU binding outside of job step allocation, allocated CPUs are: 0x0103.\n"
            "srun: error: Task launch for StepId=7.0 failed on node gpu1: Unable to satisfy cpu "
            "bind request\n"
            "srun: error: Application launch failed: Unable to satisfy cpu bind request\n"
            "srun: Job step aborted");
  job.state().start(plan);  // its number is used up, but it holds nothing
  EXPECT_EQ(job.state().next_id(), 1U);
  EXPECT_TRUE(job.state().running().empty());
  plan = job.plan("-n1 --cpu-bind=rank_ldom");
  EXPECT_EQ(plan.error.exit_code, 192);
  EXPECT_EQ(plan.error.what(), "Entire node must be allocated for rank_ldom");
}

TEST(StepMasks, CpuBindVariable) {
  const cluster::Cluster cluster = corpus::make();
  Job whole(cluster, "-N1 --exclusive", {{"gpu1", Bits::first_n(16), {}, 65536, {}}});
  Job part(cluster, "-N1 -n4", {{"gpu1", Bits::of({0, 1, 8, 9}), {}, 65536, {}}});
  Job threads(cluster, "-N1 -n4", {{"cpu1", Bits::of({0, 8}), {}, 65536, {}}});
  const struct {
    Job& job;
    const char* srun;
    const char* bind;
  } rows[] = {
      {part, "-n2 --exact", "quiet,mask_cpu:0x0001,0x0100"},
      {part, "-n1", "quiet,mask_cpu:0x0303"},
      {part, "-n2 --cpu-bind=none", "quiet,mask_cpu:0x0303"},
      {whole, "-n2 --cpu-bind=none", "quiet,none"},
      {whole, "-n1 --cpu-bind=mask_cpu:0xFF01", "quiet,mask_cpu:ff01"},
      {whole, "-n1 --cpu-bind=rank_ldom", "quiet,rank_ldom"},
      {whole, "-n2 --cpu-bind=map_ldom:1,0", "quiet,map_ldom:1,0"},
      {part, "-n1 --cpu-bind=verbose", "verbose,mask_cpu:0x0303"},
      {threads, "-n3", "quiet,mask_cpu:0x00030003"},
  };
  for (const auto& row : rows) {
    const StepPlan plan = row.job.plan(row.srun);
    ASSERT_EQ(plan.verdict, StepVerdict::starts) << row.srun << corpus::lines(plan);
    const Environment env =
        task_environment(cluster, row.job.facts(), plan, plan.tasks.front(), {});
    EXPECT_EQ(env.at("SLURM_CPU_BIND"), row.bind) << row.srun;
  }
  const StepPlan unbound = whole.plan("-n2 --cpu-bind=none");
  EXPECT_EQ(corpus::masks(unbound), "-,-");
}

}  // namespace
}  // namespace berth::place
