// Reading the launchers' own options.
#include "lint/launch.h"

#include <gtest/gtest.h>

#include "text/words.h"

namespace berth::lint {
namespace {

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> out;
  for (const auto word : text::split(line, ' ')) out.emplace_back(word);
  return out;
}

TEST(Launch, Torch) {
  struct Case {
    std::string_view line;
    std::string_view name;
    std::uint32_t processes;  // with 4 GPUs visible
    std::optional<std::uint32_t> nodes;
    std::string_view program;
  };
  for (const Case& each : std::vector<Case>{
           {"torchrun --nproc_per_node=4 train.py --lr 1", "torchrun", 4, std::nullopt, "train.py"},
           {"torchrun --nproc-per-node 2 --nnodes=3 t.py", "torchrun", 2, 3, "t.py"},
           {"torchrun --nproc-per-node=gpu --nnodes 1:4 t.py", "torchrun", 4, 4, "t.py"},
           {"torchrun --standalone t.py", "torchrun", 1, std::nullopt, "t.py"},
           {"/opt/bin/torchrun t.py", "torchrun", 1, std::nullopt, "t.py"},
           {"python -m torch.distributed.launch --nproc_per_node=4 --use_env t.py",
            "python -m torch.distributed.launch", 4, std::nullopt, "t.py"},
           {"env A=1 python3 -u -m torch.distributed.run --nproc_per_node=8 t.py",
            "python -m torch.distributed.run", 8, std::nullopt, "t.py"},
       }) {
    const auto launch = read_torch(words(each.line));
    ASSERT_TRUE(launch) << each.line;
    EXPECT_EQ(launch->name, each.name) << each.line;
    EXPECT_EQ(launch->processes(4), each.processes) << each.line;
    EXPECT_EQ(launch->nodes, each.nodes) << each.line;
    ASSERT_FALSE(launch->program.empty()) << each.line;
    EXPECT_EQ(launch->program.front(), each.program) << each.line;
  }
  EXPECT_FALSE(read_torch(words("python train.py")));
  EXPECT_FALSE(read_torch(words("python -m pytest")));
  EXPECT_FALSE(read_torch({}));
}

TEST(Launch, TorchInsideShell) {
  const std::vector<std::string> line = {
      "bash", "-c", "torchrun --nproc_per_node=4 --node_rank=$SLURM_PROCID t.py"};
  const auto launch = read_torch(line);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->per_node, 4U);
  EXPECT_TRUE(launch->node_rank_given);
}

TEST(Launch, Mpirun) {
  EXPECT_EQ(mpirun_processes(words("mpirun -np 4 ./app")), 4U);
  EXPECT_EQ(mpirun_processes(words("mpiexec -n 8 ./app")), 8U);
  EXPECT_EQ(mpirun_processes(words("mpirun ./app")), std::nullopt);
  EXPECT_EQ(mpirun_processes(words("mpirun -np $N ./app")), std::nullopt);
  EXPECT_EQ(mpirun_per_node(words("mpirun --map-by ppr:2:node ./app")), 2U);
  EXPECT_EQ(mpirun_per_node(words("mpirun -npernode 3 ./app")), 3U);
  EXPECT_EQ(mpirun_program(words("mpirun -np 4 --mca pml ob1 -x PATH ./app in.dat")),
            words("./app in.dat"));
  EXPECT_TRUE(mpirun_program(words("mpirun -np")).empty());
}

TEST(Launch, LooksThroughContainersAndProfilers) {
  for (const char* line :
       {"singularity exec --nv -B /data image.sif torchrun --nproc-per-node=4 a.py",
        "apptainer run --nv image.sif torchrun --nproc-per-node=4 a.py",
        "conda run -n torch torchrun --nproc-per-node=4 a.py",
        "nsys profile -o report --trace=cuda torchrun --nproc-per-node=4 a.py",
        "env A=1 singularity exec i.sif nsys profile torchrun --nproc-per-node=4 a.py"}) {
    const auto torch = read_torch(words(line));
    ASSERT_TRUE(torch) << line;
    EXPECT_EQ(torch->per_node, 4U) << line;
  }
  EXPECT_FALSE(read_torch(words("singularity exec image.sif")));
  EXPECT_FALSE(read_torch(words("singularity pull torchrun a b")));
}

TEST(Launch, BerthBind) {
  struct Case {
    std::vector<std::string> line;
    std::string_view shown;  // GPUs of a rank and the program; "-": there is no bind
  };
  for (const Case& each : std::vector<Case>{
           {words("mpirun -np 4 berth bind ./app"), "all ./app"},
           {words("mpiexec -n 4 /opt/bin/berth bind --gpus-per-rank 2 -- ./app"), "2 ./app"},
           {words("mpirun --some-flag berth bind ./app"), "all ./app"},
           {{"mpirun", "bash", "-c", "exec berth bind --gpus-per-rank=1 ./app"}, "1 ./app"},
           {words("mpirun berth bind --gpus 2 ./app"), "unknown option --gpus"},
           {words("mpirun ./app berth"), "-"},
           {words("mpirun ./app bind"), "-"},
           {words("mpirun bash ./app"), "-"},
           {{"mpirun", "bash", "-c", "./app"}, "-"},
           {{}, "-"},
       }) {
    const auto bind = read_berth_bind(each.line);
    std::string shown = "-";
    if (bind && !*bind) shown = bind->error().what();
    if (bind && *bind) {
      const auto gpus = (*bind)->gpus_per_rank;
      shown = (gpus ? std::to_string(*gpus) : "all") + " " + (*bind)->argv.front();
    }
    EXPECT_EQ(shown, each.shown);
  }
}

}  // namespace
}  // namespace berth::lint
