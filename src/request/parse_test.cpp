// What options mean: typed values, precedence, variables, components.
#include "request/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "request/directives.h"
#include "request/parse_testing.h"
#include "request/sizes.h"
#include "request/table.h"

namespace berth::request {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::outcome;
using testing::parse_line;

Request only(const std::string& line, const Surroundings& around = {},
             std::string_view script = "#!/bin/sh\n") {
  const Result<Parsed> parsed = parse_line(line, around, script);
  if (!parsed) {
    ADD_FAILURE() << line << ": " << parsed.error().what();
    return {};
  }
  EXPECT_EQ(parsed->components.size(), 1u);
  return parsed->components.front();
}

Surroundings job(Environment environment) {
  Surroundings around;
  around.inside_job = true;
  environment["SLURM_JOB_ID"] = "12";
  around.environment = std::move(environment);
  return around;
}

TEST(Values, Size) {
  const Request r = only(
      "srun -N2-4 -n8 --ntasks-per-node=4 --ntasks-per-core=1 --ntasks-per-socket=2 -c3 "
      "--mincpus=5 "
      "--sockets-per-node=2 --cores-per-socket=4 --threads-per-core=1 -O x y");
  EXPECT_EQ(r.nodes, (NodeCount{2, 4, true, {}}));
  EXPECT_EQ(r.ntasks, 8u);
  EXPECT_EQ(r.ntasks_per_node, 4u);
  EXPECT_EQ(r.ntasks_per_core, 1u);
  EXPECT_EQ(r.ntasks_per_socket, 2u);
  EXPECT_EQ(r.cpus_per_task, 3u);
  EXPECT_EQ(r.mincpus, 5u);
  EXPECT_EQ(r.sockets_per_node, 2u);
  EXPECT_EQ(r.cores_per_socket, 4u);
  EXPECT_EQ(r.threads_per_core, 1u);
  EXPECT_TRUE(r.overcommit);
  EXPECT_THAT(r.argv, ElementsAre("x", "y"));
}

TEST(Values, NothingGivenIsUnset) {
  const Request r = only("salloc");
  EXPECT_FALSE(r.nodes || r.ntasks || r.memory || r.distribution || r.time_limit || r.gpu_bind);
  EXPECT_THAT(r.gres_per_node, IsEmpty());
  EXPECT_TRUE(r.given.all().empty());
}

TEST(Values, NodeInfo) {
  const Request r = only("srun -B 2:*:1 x");
  EXPECT_EQ(r.sockets_per_node, 2u);
  EXPECT_EQ(r.cores_per_socket, std::nullopt);
  EXPECT_EQ(r.threads_per_core, 1u);
}

TEST(Values, Memory) {
  EXPECT_EQ(only("srun --mem=2048K x").memory, (Memory{MemoryPer::node, 2}));
  EXPECT_EQ(only("srun --mem=0 x").memory, (Memory{MemoryPer::node, 0}));
  EXPECT_EQ(only("srun --mem-per-cpu=2G x").memory, (Memory{MemoryPer::cpu, 2048}));
  EXPECT_EQ(only("srun --gpus=1 --mem-per-gpu=3 x").memory, (Memory{MemoryPer::gpu, 3}));
  EXPECT_EQ(only("srun --tmp=1G x").tmp_mb, 1024u);
}

TEST(Values, GpuSpellingsNormalise) {
  const GresAsk two{"gpu", "", 2};
  const GresAsk a100{"gpu", "a100", 2};
  EXPECT_THAT(only("srun --gres=gpu:2 x").gres_per_node, ElementsAre(two));
  EXPECT_THAT(only("srun --gres=gres/gpu=2 x").gres_per_node, ElementsAre(two));
  EXPECT_THAT(only("srun --gpus-per-node=2 x").gres_per_node, ElementsAre(two));
  EXPECT_THAT(only("srun --gres=gpu:a100:2 x").gres_per_node, ElementsAre(a100));
  EXPECT_THAT(only("srun --gpus-per-node=a100:2 x").gres_per_node, ElementsAre(a100));
  EXPECT_THAT(only("srun -G a100:2 x").gres_per_job, ElementsAre(a100));
  EXPECT_THAT(only("srun -n1 --gpus-per-task=2 x").gres_per_task, ElementsAre(two));
  EXPECT_THAT(only("srun -n1 --tres-per-task=gres/gpu=2 x").gres_per_task, ElementsAre(two));
  EXPECT_THAT(only("srun -n1 --tres-per-task=gres/gpu:a100=2 x").gres_per_task, ElementsAre(a100));
  EXPECT_THAT(only("srun --sockets-per-node=1 --gpus-per-socket=2 x").gres_per_socket,
              ElementsAre(two));
  const Request both = only("srun -n1 --tres-per-task=cpu:4,gres/gpu:1 x");
  EXPECT_EQ(both.cpus_per_task, 4u);
  EXPECT_THAT(both.gres_per_task, ElementsAre(GresAsk{"gpu", "", 1}));
  EXPECT_THAT(only("srun --gres=gpu:a100:2,shard:3 x").gres_per_node,
              ElementsAre(a100, GresAsk{"shard", "", 3}));
}

TEST(Values, GpuCountsAtTheEdges) {
  EXPECT_THAT(only("srun --gres=gpu:0 x").gres_per_node, ElementsAre(GresAsk{"gpu", "", 0}));
  EXPECT_TRUE(only("srun --gres=none x").gres_none);
  EXPECT_THAT(only("srun --gres=none x").gres_per_node, IsEmpty());
  // Grammatical, and never to be met.
  EXPECT_THAT(only("srun --gres=gpu:-1 x").gres_per_node,
              ElementsAre(GresAsk{"gpu", "", UINT32_MAX}));
  EXPECT_THAT(only("srun --gres=gpu:9999999999 x").gres_per_node,
              ElementsAre(GresAsk{"gpu", "", 9999999999}));
  EXPECT_THAT(only("srun --gpus=a100:1p x").gres_per_job,
              ElementsAre(GresAsk{"gpu", "a100", std::uint64_t{1} << 50}));
}

struct Bind {
  const char* text;
  GpuBindKind kind;
  std::uint32_t count;
  const char* shown;
};

TEST(Values, GpuBind) {
  constexpr Bind kBinds[] = {
      {"none", GpuBindKind::none, 1, "gres/gpu:none"},
      {"none,verbose", GpuBindKind::none, 1, "gres/gpu:none"},
      {"closest", GpuBindKind::closest, 1, "gres/gpu:closest"},
      {"verbose,closest", GpuBindKind::closest, 1, "gres/gpu:verbose,closest"},
      {"single:2", GpuBindKind::single, 2, "gres/gpu:single:2"},
      {"per_task:3", GpuBindKind::per_task, 3, "gres/gpu:per_task:3"},
      {"map_gpu:0,1", GpuBindKind::map, 1, "gres/gpu:map:0,1"},
      {"mask:0x3,0xc", GpuBindKind::mask, 1, "gres/gpu:mask:0x3,0xc"},
  };
  for (const Bind& one : kBinds) {
    const Request r = only(std::string("srun --gpu-bind=") + one.text + " x");
    ASSERT_TRUE(r.gpu_bind) << one.text;
    EXPECT_EQ(r.gpu_bind->kind, one.kind) << one.text;
    EXPECT_EQ(r.gpu_bind->count, one.count) << one.text;
    EXPECT_EQ(r.gpu_bind->text, one.shown);
    EXPECT_EQ(r.gpu_bind->verbose, std::string_view(one.text).starts_with("verbose"));
  }
  EXPECT_THAT(only("srun --gpu-bind=map:0*2,1 x").gpu_bind->list,
              ElementsAre(Bits::of({0}), Bits::of({0}), Bits::of({1})));
  EXPECT_THAT(only("srun --gpu-bind=mask_gpu:0x3,c x").gpu_bind->list,
              ElementsAre(Bits::of({0, 1}), Bits::of({2, 3})));
  const Request shard = only("srun --tres-bind=gres/shard:per_task:2 x");
  EXPECT_EQ(shard.gpu_bind->gres, "shard");
  EXPECT_EQ(shard.gpu_bind->text, "gres/shard:per_task:2");
  EXPECT_EQ(only("srun --tres-bind=gres/shard:none+gres/gpu:closest x").gpu_bind->gres, "gpu");
  EXPECT_EQ(only("srun --accel-bind=g x").gpu_bind->kind, GpuBindKind::closest);
}

TEST(Values, GpuBindPrecedence) {
  const Surroundings inherited = job({{"SLURM_TRES_BIND", "gres/gpu:per_task:1"}});
  EXPECT_EQ(only("srun x", inherited).gpu_bind->text, "gres/gpu:per_task:1");
  EXPECT_TRUE(only("srun x", inherited).given.from_environment(Opt::tres_bind));
  EXPECT_EQ(only("srun --gpu-bind=none x", inherited).gpu_bind->text, "gres/gpu:none");
  const Surroundings two =
      job({{"SLURM_TRES_BIND", "gres/gpu:per_task:1"}, {"SLURM_GPU_BIND", "closest"}});
  EXPECT_EQ(only("srun x", two).gpu_bind->text, "gres/gpu:closest");
  EXPECT_EQ(only("srun --tres-bind=gres/gpu:none x", two).gpu_bind->text, "gres/gpu:none");
}

TEST(Values, ALauncherReplacesTheBindingOfTheJob) {
  struct Row {
    const char* line;
    Environment environment;
    const char* bind;  // "" = none
  };
  const Environment by_task = {{"SLURM_TRES_BIND", "gres/gpu:per_task:1"}};
  const Environment written = {{"SLURM_TRES_BIND", "gres/gpu:closest"},
                               {"SLURM_GPU_BIND", "closest"}};
  Environment everywhere = by_task;
  everywhere["SLURM_LAUNCHER"] = "torch";
  for (const Row& row : std::initializer_list<Row>{
           {"srun --launcher=torch x", by_task, ""},
           {"srun --launcher=jax x", by_task, ""},
           {"srun --launcher=mpi x", written, ""},
           {"srun --launcher=none x", by_task, "gres/gpu:per_task:1"},
           {"srun x", by_task, "gres/gpu:per_task:1"},
           {"srun x", everywhere, ""},
           {"srun --gpu-bind=single:2 x", everywhere, "gres/gpu:single:2"},
           {"srun --launcher=none --gpu-bind=closest x", everywhere, "gres/gpu:closest"},
       }) {
    const Request r = only(row.line, job(row.environment));
    EXPECT_EQ(r.gpu_bind ? r.gpu_bind->text : "", row.bind) << row.line;
  }
  EXPECT_FALSE(only("srun --gpu-bind=single:2 x", job(everywhere)).launcher);
}

TEST(Values, Distribution) {
  const auto dist = [](const std::string& text) {
    return *only("srun -m " + text + " x").distribution;
  };
  EXPECT_EQ(dist("block").nodes, NodeDist::block);
  EXPECT_EQ(dist("block").text, "block");
  EXPECT_EQ(dist("cyclic:block").sockets, CoreDist::block);
  EXPECT_EQ(dist("block:fcyclic").text, "block:fcyclic");
  EXPECT_EQ(dist("block:block:cyclic").cores, CoreDist::cyclic);
  EXPECT_EQ(dist("*:block").nodes, std::nullopt);
  EXPECT_EQ(dist("*:block").sockets, CoreDist::block);
  EXPECT_EQ(dist("plane=4").plane_size, 4u);
  EXPECT_EQ(dist("plane=4").text, "plane");
  EXPECT_EQ(dist("block,Pack").pack, true);
  EXPECT_EQ(dist("block,pack").text, "block,pack");
  EXPECT_EQ(dist("cyclic,NoPack").pack, false);
  EXPECT_EQ(dist("pack").pack, true);
  EXPECT_EQ(dist("pack").nodes, std::nullopt);
  EXPECT_EQ(dist("block").pack, std::nullopt);
  Surroundings around;
  around.environment = {{"SLURM_DISTRIBUTION", "plane"}, {"SLURM_DIST_PLANESIZE", "3"}};
  EXPECT_EQ(only("srun x", around).distribution->plane_size, 3u);
}

TEST(Values, CpuBind) {
  EXPECT_EQ(only("srun --cpu-bind=cores x").cpu_bind->kind, CpuBindKind::cores);
  EXPECT_EQ(only("srun --cpu-bind=verbose,none x").cpu_bind->kind, CpuBindKind::none);
  EXPECT_TRUE(only("srun --cpu-bind=verbose,none x").cpu_bind->verbose);
  EXPECT_EQ(only("srun --cpu-bind=verbose x").cpu_bind->kind, std::nullopt);
  EXPECT_EQ(only("srun --cpu-bind=quiet,mask_cpu:0x3,0xc x").cpu_bind->list_text, "0x3,0xc");
  EXPECT_THAT(only("srun --cpu-bind=map_cpu:3,1 x").cpu_bind->list,
              ElementsAre(Bits::of({3}), Bits::of({1})));
  EXPECT_EQ(only("srun --cpu-bind=map_ldom:1,0 x").cpu_bind->kind, CpuBindKind::map_ldom);
  const Result<Parsed> rank = parse_line("srun --cpu-bind=rank x");
  ASSERT_TRUE(rank);
  ASSERT_EQ(rank->warnings.size(), 1u);
  EXPECT_EQ(render(rank->warnings[0], "srun"),
            "srun: Ignoring --cpu-bind=rank. Rank binding is obsolete.");
  EXPECT_EQ(rank->components[0].cpu_bind->kind, std::nullopt);
}

TEST(Values, Nodes) {
  EXPECT_THAT(only("srun -w gpu[1-2],cpu1 x").nodelist, ElementsAre("gpu1", "gpu2", "cpu1"));
  EXPECT_THAT(only("srun -x gpu[1-2] x").exclude, ElementsAre("gpu1", "gpu2"));
  Surroundings around;
  around.files["./nodes"] = "gpu2\n# none\ngpu1*2, \n";
  EXPECT_THAT(only("srun -w ./nodes x", around).nodelist, ElementsAre("gpu2", "gpu1", "gpu1"));
  EXPECT_THAT(only("srun -F ./nodes x", around).nodelist, ElementsAre("gpu2", "gpu1", "gpu1"));
  EXPECT_THAT(
      files_wanted(Command::srun, testing::words_of("-w ./nodes -w gpu1 -F f x -w ./no"), "", {}),
      ElementsAre("./nodes", "f"));
  EXPECT_THAT(files_wanted(Command::sbatch, {}, "#!/bin/sh\n#SBATCH -x /tmp/bad\n",
                           {{"SLURM_HOSTFILE", "hosts"}}),
              ElementsAre("/tmp/bad", "hosts"));
}

TEST(Values, Hostfile) {
  Surroundings around;
  around.environment["SLURM_HOSTFILE"] = "hosts";
  around.files["hosts"] = "gpu3\ngpu1\ngpu3\n";
  const Request r = only("srun -n2 x", around);
  EXPECT_EQ(r.distribution->nodes, NodeDist::arbitrary);
  EXPECT_THAT(r.nodelist, ElementsAre("gpu3", "gpu1"));
  EXPECT_EQ(outcome("srun -n4 x", around),
            "1: srun: error: Too few NodeNames in Slurm Hostfile | "
            "srun: error: Failure getting NodeNames from hostfile");
  EXPECT_THAT(only("srun -n2 -m block x", around).nodelist, IsEmpty());
  EXPECT_THAT(only("sbatch -n2 x", around).nodelist, IsEmpty());
  EXPECT_THAT(only("sbatch -m arbitrary x", around).nodelist, ElementsAre("gpu3", "gpu1", "gpu3"));
}

TEST(Values, Time) {
  const auto limit = [](const std::string& text) {
    return only("srun -t " + text + " x").time_limit;
  };
  EXPECT_EQ(limit("5"), std::optional(std::optional(5u)));
  EXPECT_EQ(limit("1-0"), std::optional(std::optional(1440u)));
  EXPECT_EQ(limit("0:30"), std::optional(std::optional(1u)));
  for (const char* unlimited : {"0", "UNLIMITED", "-1"}) {
    ASSERT_TRUE(limit(unlimited).has_value()) << unlimited;
    EXPECT_EQ(*limit(unlimited), std::nullopt) << unlimited;
  }
  EXPECT_EQ(only("srun --time-min=2:00:00 x").time_min, 120u);
  EXPECT_FALSE(only("srun x").gpu_idle_seconds);
  EXPECT_EQ(only("srun --gpu-idle-timeout=30 x").gpu_idle_seconds.value(), 1800u);
  EXPECT_EQ(only("srun --gpu-idle-timeout 90s x").gpu_idle_seconds.value(), 90u);
  EXPECT_EQ(only("srun --gpu-idle-timeout=0 x").gpu_idle_seconds.value(), std::nullopt);
}

TEST(Values, ExclusiveAndHint) {
  const Request srun = only("srun --exclusive x");
  EXPECT_EQ(srun.exclusive, Exclusive::node);
  EXPECT_TRUE(srun.exact);
  EXPECT_FALSE(only("srun --exclusive=allocation x").exact);
  EXPECT_FALSE(only("sbatch --exclusive x").exact);
  EXPECT_EQ(only("sbatch --exclusive=user x").exclusive, Exclusive::user);
  EXPECT_EQ(only("srun --hint=nomultithread x").threads_per_core, 1u);
  EXPECT_EQ(only("srun --hint=compute_bound x").hint, Hint::compute_bound);
  EXPECT_EQ(only("srun --hint=nomultithread --threads-per-core=2 x").hint, std::nullopt);
  EXPECT_EQ(only("srun --hint=nomultithread --threads-per-core=2 x").threads_per_core, 2u);
  EXPECT_EQ(only("srun --hint=nomultithread --cpu-bind=none x").hint, std::nullopt);
  const Request kept = only("srun --hint=multithread x", job({{"SLURM_THREADS_PER_CORE", "1"}}));
  EXPECT_EQ(kept.hint, Hint::multithread);
  EXPECT_EQ(kept.threads_per_core, std::nullopt);
}

TEST(Values, ArraysAndNames) {
  EXPECT_EQ(only("sbatch -a 1-3 x").array_size, 3u);
  EXPECT_EQ(only("sbatch -a 0-15:4%2 x").array_size, 4u);
  EXPECT_EQ(only("sbatch -a 1,1,3-5,4 x").array_size, 4u);
  EXPECT_EQ(only("sbatch -a 0-15:4%2 x").array, "0-15:4%2");
  EXPECT_EQ(job_name_of(only("sbatch dir/my.job.sh")), "my.job.sh");
  EXPECT_EQ(job_name_of(only("sbatch --wrap x")), "wrap");
  EXPECT_EQ(job_name_of(only("sbatch")), "sbatch");
  EXPECT_EQ(job_name_of(only("salloc")), "interactive");
  EXPECT_EQ(job_name_of(only("salloc make -j4")), "interactive");
  EXPECT_EQ(job_name_of(only("srun /bin/true")), "true");
  EXPECT_EQ(job_name_of(only("srun -J n /bin/true")), "n");
}

TEST(Values, Verbosity) {
  EXPECT_EQ(only("srun -vvv x").given.find(Opt::verbose)->text, "3");
  Surroundings around;
  around.environment["SLURM_DEBUG"] = "2";
  EXPECT_EQ(only("srun x", around).given.find(Opt::verbose)->text, "2");
  EXPECT_EQ(only("srun -v x", around).given.find(Opt::verbose)->text, "1");
}

TEST(Precedence, CommandLineThenVariableThenScript) {
  constexpr std::string_view kScript = "#!/bin/sh\n#SBATCH -n2\n#SBATCH -J script -p a -C x\n";
  Surroundings around;
  around.environment = {{"SBATCH_JOB_NAME", "variable"}, {"SBATCH_PARTITION", "b"}};
  const Request r = only("sbatch -n3 -p c x", around, kScript);
  EXPECT_EQ(r.ntasks, 3u);
  EXPECT_EQ(r.job_name, "variable");
  EXPECT_THAT(r.partitions, ElementsAre("c"));
  EXPECT_EQ(r.constraint, "x");
  EXPECT_EQ(r.given.find(Opt::job_name)->variable, "SBATCH_JOB_NAME");
  EXPECT_EQ(r.given.find(Opt::constraint)->line, 3);
  EXPECT_TRUE(r.given.on_command_line(Opt::ntasks));
  EXPECT_EQ(only("srun -n2 -n3 x").ntasks, 3u);  // the last one counts
  EXPECT_FALSE(only("sbatch --requeue --no-requeue x").given.has(Opt::requeue));
}

TEST(Precedence, CommandsHaveTheirOwnPrefixes) {
  Surroundings around;
  around.environment = {
      {"SBATCH_GPUS", "1"}, {"SALLOC_GPUS", "2"}, {"SLURM_GPUS", "3"}, {"SLURM_NTASKS", "4"}};
  EXPECT_EQ(only("sbatch x", around).gres_per_job[0].count, 1u);
  EXPECT_EQ(only("salloc x", around).gres_per_job[0].count, 2u);
  EXPECT_EQ(only("srun x", around).gres_per_job[0].count, 3u);
  EXPECT_EQ(only("sbatch x", around).ntasks, std::nullopt);
  EXPECT_EQ(only("srun x", around).ntasks, 4u);
}

TEST(Environment, Flags) {
  for (const char* yes : {"", "yes", "YES", "1", "7"}) {
    Surroundings around;
    around.environment["SBATCH_OVERCOMMIT"] = yes;
    EXPECT_TRUE(only("sbatch x", around).overcommit) << yes;
  }
  for (const char* no : {"0", "no", "true"}) {
    Surroundings around;
    around.environment["SBATCH_OVERCOMMIT"] = no;
    EXPECT_FALSE(only("sbatch x", around).overcommit) << no;
  }
  Surroundings around;
  around.environment = {{"SLURM_EXCLUSIVE", "yes"}, {"SLURM_IMMEDIATE", "5"}};
  EXPECT_EQ(only("srun x", around).exclusive, Exclusive::node);
  EXPECT_TRUE(only("srun x", around).immediate);
  around.environment = {{"SLURM_EXCLUSIVE", "user"}};
  EXPECT_EQ(only("srun x", around).exclusive, Exclusive::user);
}

TEST(Environment, AStepInheritsFromItsJob) {
  const Surroundings around = job({{"SLURM_NTASKS", "16"},
                                   {"SLURM_JOB_NUM_NODES", "4"},
                                   {"SLURM_NTASKS_PER_NODE", "4"},
                                   {"SLURM_CPUS_PER_TASK", "2"},
                                   {"SLURM_TRES_PER_TASK", "cpu=2,gres/gpu=1"},
                                   {"SLURM_MEM_PER_NODE", "1024"},
                                   {"SLURM_JOB_NAME", "job"},
                                   {"SLURM_THREADS_PER_CORE", "1"},
                                   {"SLURM_DISTRIBUTION", "cyclic"}});
  const Request r = only("srun x", around);
  EXPECT_EQ(r.ntasks, 16u);
  EXPECT_TRUE(r.given.from_environment(Opt::ntasks));
  EXPECT_EQ(r.nodes, (NodeCount{4, 4, false, {}}));
  EXPECT_EQ(r.ntasks_per_node, 4u);
  EXPECT_EQ(r.cpus_per_task, 2u);
  EXPECT_THAT(r.gres_per_task, ElementsAre(GresAsk{"gpu", "", 1}));
  EXPECT_EQ(r.memory, (Memory{MemoryPer::node, 1024}));
  EXPECT_EQ(r.job_name, std::nullopt);
  EXPECT_EQ(r.distribution->nodes, NodeDist::cyclic);
  EXPECT_EQ(r.jobid, 12u);
  // Chosen now beats inherited.
  EXPECT_EQ(only("srun --mem-per-cpu=1 x", around).memory, (Memory{MemoryPer::cpu, 1}));
  EXPECT_EQ(only("srun -c4 x", around).cpus_per_task, 4u);
  EXPECT_THAT(only("srun -c4 x", around).gres_per_task, ElementsAre(GresAsk{"gpu", "", 1}));
  EXPECT_EQ(only("srun --tres-per-task=cpu:8 x", around).cpus_per_task, 8u);
  EXPECT_THAT(only("srun --gpus-per-task=2 x", around).gres_per_task,
              ElementsAre(GresAsk{"gpu", "", 2}));
}

TEST(Environment, StepConflicts) {
  EXPECT_EQ(
      outcome("srun x", job({{"SLURM_CPUS_PER_TASK", "2"}, {"SLURM_TRES_PER_TASK", "cpu=3"}})),
      "1: srun: fatal: cpus-per-task set by two different environment variables "
      "SLURM_CPUS_PER_TASK=2 != SLURM_TRES_PER_TASK=cpu=3");
  EXPECT_EQ(outcome("srun x", job({{"SLURM_MEM_PER_CPU", "1"}, {"SLURM_MEM_PER_NODE", "1"}})),
            "1: srun: fatal: SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are "
            "mutually exclusive.");
  EXPECT_EQ(outcome("srun --gres=gpu:1 x", job({{"SLURM_GPUS_PER_NODE", "2"}})),
            "1: srun: fatal: --gpus-per-node and --gres=gpu are mutually exclusive.");
  EXPECT_EQ(outcome("srun --gpus-per-task=1 x", job({{"SLURM_NTASKS_PER_GPU", "2"}})),
            "1: srun: fatal: --gpus-per-task is mutually exclusive with --ntasks-per-gpu and "
            "SLURM_NTASKS_PER_GPU");
  EXPECT_EQ(outcome("srun --ntasks-per-gpu=1 x", job({{"SLURM_NTASKS_PER_NODE", "2"}})),
            "1: srun: fatal: --ntasks-per-node is mutually exclusive with --ntasks-per-gpu and "
            "SLURM_NTASKS_PER_GPU");
  const Request dropped = only("srun --gpus=1 x", job({{"SLURM_GPUS_PER_NODE", "2"}}));
  EXPECT_THAT(dropped.gres_per_node, IsEmpty());
  EXPECT_EQ(only("srun --cpus-per-gpu=2 x", job({{"SLURM_CPUS_PER_TASK", "2"}})).cpus_per_task,
            std::nullopt);
  EXPECT_EQ(only("srun -c2 x", job({{"SLURM_CPUS_PER_GPU", "2"}})).cpus_per_gpu, std::nullopt);
}

TEST(Environment, StepGres) {
  EXPECT_THAT(only("srun x", job({{"SLURM_STEP_GRES", "gres/gpu:1"}})).gres_per_node,
              ElementsAre(GresAsk{"gpu", "", 1}));
  EXPECT_TRUE(only("srun x", job({{"SLURM_STEP_GRES", "none"}})).gres_none);
  EXPECT_EQ(outcome("srun x", job({{"SLURM_STEP_GRES", "gpu:1"}})),
            "1: srun: error: Invalid Trackable RESource (TRES) specification");
  Surroundings outside;
  outside.environment["SLURM_STEP_GRES"] = "gpu:1";
  EXPECT_THAT(only("srun x", outside).gres_per_node, IsEmpty());
}

TEST(Environment, StepsAreNotHeldAgainstThemselves) {
  // As a job this would be refused (no task count for --gpus-per-task).
  EXPECT_NE(outcome("srun --gpus-per-task=1 x"), "ok");
  EXPECT_EQ(outcome("srun --gpus-per-task=1 x", job({})), "ok");
  EXPECT_EQ(outcome("srun --jobid=5 -r1 --gpus-per-task=1 x"), "ok");
}

TEST(Het, CommandLines) {
  const Result<Parsed> parsed =
      parse_line("srun --mem=1G -n1 -w gpu2 a x : -n2 -w gpu3 --gres=gpu:1 b");
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->components.size(), 2u);
  EXPECT_THAT(parsed->components[0].argv, ElementsAre("a", "x"));
  EXPECT_THAT(parsed->components[1].argv, ElementsAre("b"));
  EXPECT_EQ(parsed->components[1].memory, std::nullopt);
  EXPECT_THAT(parsed->components[0].gres_per_node, IsEmpty());

  const Result<Parsed> shared = parse_line("srun -n1 : -n2 : -n3 a");
  ASSERT_TRUE(shared);
  ASSERT_EQ(shared->components.size(), 3u);
  for (const Request& one : shared->components) EXPECT_THAT(one.argv, ElementsAre("a"));

  const Result<Parsed> batch = parse_line("sbatch -n1 : -n2 job.sh : y");
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->components.size(), 2u);
  EXPECT_THAT(batch->components[0].argv, ElementsAre("job.sh", ":", "y"));
  const Result<Parsed> wrapped = parse_line("sbatch -n1 : -n2 --wrap=true");
  ASSERT_TRUE(wrapped);
  ASSERT_EQ(wrapped->components.size(), 2u);
  EXPECT_EQ(wrapped->components[0].wrap, "true");
  EXPECT_EQ(outcome("srun -n1 a : -n2"), "1: srun: fatal: No command given to execute.");
  std::string many = "srun -n1 a";
  for (int i = 0; i < 200; ++i) many += " : -n1 a";
  EXPECT_EQ(outcome(many), "1: srun: error: too many components");
}

TEST(Het, GroupsReadTheirOwnVariables) {
  const Surroundings around = job({{"SLURM_HET_SIZE", "2"},
                                   {"SLURM_NTASKS", "1"},
                                   {"SLURM_NTASKS_HET_GROUP_0", "1"},
                                   {"SLURM_NTASKS_HET_GROUP_1", "2"},
                                   {"SLURM_GPUS_PER_NODE", "4"},
                                   {"SLURM_CPU_BIND", "cores"}});
  EXPECT_EQ(only("srun x", around).ntasks, 1u);
  EXPECT_THAT(only("srun x", around).het_groups, IsEmpty());
  const Request second = only("srun --het-group=1 x", around);
  EXPECT_EQ(second.ntasks, 2u);
  EXPECT_THAT(second.gres_per_node, IsEmpty());  // those of component 0
  EXPECT_EQ(second.cpu_bind->kind, CpuBindKind::cores);
  const Result<Parsed> both = parse_line("srun --het-group=0,1 x", around);
  ASSERT_TRUE(both);
  ASSERT_EQ(both->components.size(), 2u);
  EXPECT_EQ(both->components[0].ntasks, 1u);
  EXPECT_EQ(both->components[1].ntasks, 2u);
  EXPECT_THAT(both->components[1].het_groups, ElementsAre(1u));
}

TEST(Het, PartsOfAnSrunGoToTheComponentsInOrder) {
  const Surroundings around = job({{"SLURM_HET_SIZE", "2"},
                                   {"SLURM_CPUS_PER_TASK", "4"},
                                   {"SLURM_CPUS_PER_TASK_HET_GROUP_0", "4"},
                                   {"SLURM_CPUS_PER_TASK_HET_GROUP_1", "2"},
                                   {"SLURM_HINT", "nomultithread"}});
  EXPECT_EQ(only("srun --het-group=1 x", around).cpus_per_task, 2u);
  const Result<Parsed> parts = parse_line("srun -n1 a : -n4 b", around);
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->components.size(), 2u);
  EXPECT_EQ(parts->components[0].cpus_per_task, 4u);
  EXPECT_TRUE(parts->components[0].given.has(Opt::hint));
  EXPECT_EQ(parts->components[1].cpus_per_task, 2u);
  EXPECT_FALSE(parts->components[1].given.has(Opt::hint));  // that of component 0
  const Result<Parsed> own = parse_line("srun -n1 a : --het-group=1 -n4 -c1 b", around);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->components[1].cpus_per_task, 1u);
}

TEST(Nice, NegativeIsRootsBusiness) {
  const Result<Parsed> parsed = parse_line("sbatch --nice=-5 x");
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->warnings.size(), 1u);
  Surroundings root;
  root.is_root = true;
  EXPECT_TRUE(parse_line("sbatch --nice=-5 --uid=0 x", root)->warnings.empty());
}

TEST(Sizes, OfTheTextOfEachOptionWhereverItComesFrom) {
  const std::string most(1024, 'x');
  const std::string refused =
      "1: sbatch: error: Pathname of a file, directory or other parameter too long";
  EXPECT_EQ(outcome("sbatch -J " + most + " x"), "ok");
  EXPECT_EQ(outcome("sbatch -J " + most + "x x"), refused);
  EXPECT_EQ(parse_line("sbatch --comment=" + most + "x x").error().hint,
            "--comment: 1025 bytes, at most 1024 are taken");
  EXPECT_EQ(outcome("sbatch x", {}, "#!/bin/sh\n#SBATCH -J " + most + "x\n"), refused);
  Surroundings around;
  around.environment = {{"SBATCH_JOB_NAME", most + "x"}};
  EXPECT_EQ(outcome("sbatch x", around), refused);
  // What was taken before is read again, whatever the limits are now.
  around.stored = true;
  EXPECT_EQ(outcome("sbatch x", around, "#!/bin/sh\n" + std::string(kMostScript, '#')), "ok");
  // No option takes as much as one wants.
  for (const OptionRow& row : option_rows()) {
    EXPECT_LE(most_bytes(row.opt), kMostScript) << row.name;
  }
  EXPECT_EQ(outcome("sbatch " + std::string(4097, 'x')), refused);
  EXPECT_EQ(outcome("sbatch -o " + std::string(4096, 'x') + " x"), "ok");
  EXPECT_EQ(outcome("sbatch -o " + std::string(4097, 'x') + " x"), refused);
}

TEST(Environment, SwitchesAndTheirWaitHaveAVariableEach) {
  Surroundings around;
  around.environment = {{"SBATCH_REQ_SWITCH", "2"}, {"SBATCH_WAIT4SWITCH", "5:30"}};
  const Request from_both = only("sbatch --wrap x", around);
  EXPECT_EQ(from_both.switches->count, 2u);
  EXPECT_EQ(from_both.switches->wait_seconds, 330u);
  const Request from_words = only("sbatch --switches=1 --wrap x", around);
  EXPECT_EQ(from_words.switches->count, 1u);
  EXPECT_FALSE(from_words.switches->wait_seconds);
  EXPECT_FALSE(only("sbatch --switches=0 --wrap x").switches);
}

}  // namespace
}  // namespace berth::request
