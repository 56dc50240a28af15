// Every rule fires on a small script and keeps quiet on the mended one. Scripts are explained on
// the recorded cluster: gpu1-4 with 4 a100 and 16 CPUs, gpu5 mixed, gpu6 with 8 GPUs, cpu1-2.
#include <gtest/gtest.h>

#include <set>

#include "lint/explained_test_fixture.h"

namespace berth::lint {
namespace {

using test::codes;
using test::Explained;
using test::has;

struct Case {
  std::string_view code;
  Level level;
  int line;  // of the finding; the interpreter line is line 1
  std::string_view wrong;
  std::string_view right;
};

std::string script(std::string_view body) {
  return "#!/bin/bash\n" + std::string(body);
}

const Finding* find(const std::vector<Finding>& findings, std::string_view code) {
  for (const Finding& each : findings) {
    if (each.code == code) return &each;
  }
  return nullptr;
}

const std::vector<Case> kCases = {
    // GPUs
    {"B101", Level::error, 2, "#SBATCH --gres=gpu:1:tesla:v100\n",
     "#SBATCH --gres=gpu:tesla_v100:1\n"},
    {"B101", Level::error, 2, "#SBATCH --gres=gpu:2:a100\n", "#SBATCH --gres=gpu:a100:2\n"},
    {"B101", Level::error, 2, "#SBATCH --gres=a100:2\n", "#SBATCH --gres=gpu:a100:2\n"},
    {"B101", Level::error, 2, "#SBATCH --gpus=gpu:4\n", "#SBATCH --gpus=4\n"},
    {"B101", Level::error, 2, "#SBATCH -n4 --gpus-per-task=1:a100\n",
     "#SBATCH -n4 --gpus-per-task=a100:1\n"},
    {"B101", Level::error, 2, "#SBATCH --gres=gpu:-1\n", "#SBATCH --gres=gpu:1\n"},
    {"B102", Level::error, 2, "#SBATCH --gres=gpu:a1000:2\n", "#SBATCH --gres=gpu:a100:2\n"},
    {"B102", Level::error, 2, "#SBATCH --gpus=v100:1\n", "#SBATCH --gpus=tesla_v100:1\n"},
    {"B103", Level::error, 2, "#SBATCH --gres=gpu:9\n", "#SBATCH --gres=gpu:8\n"},
    {"B103", Level::error, 3, "#SBATCH -p ml\n#SBATCH --gres=gpu:8\n", "#SBATCH --gres=gpu:8\n"},
    {"B103", Level::error, 3, "#SBATCH -p ml\n#SBATCH --gpus=17\n",
     "#SBATCH -p ml\n#SBATCH --gpus=16\n"},
    {"B103", Level::error, 3, "#SBATCH -p ml\n#SBATCH --gres=gpu:tesla_v100:1\n",
     "#SBATCH --gres=gpu:tesla_v100:1\n"},
    {"B104", Level::warning, 4,
     "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\n#SBATCH --gres=gpu:4\nsrun python train.py\n",
     "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\n#SBATCH --gpus-per-task=1\nsrun python "
     "a.py\n"},
    {"B104", Level::warning, 3, "#SBATCH -n4\n#SBATCH --gres=gpu:1\nsrun ./solver\n",
     "#SBATCH -n4\n#SBATCH --gres=gpu:1\nsrun --gpu-bind=single:4 ./solver\n"},
    {"B104", Level::warning, 3, "#SBATCH -n4\n#SBATCH --gres=gpu:2\nsrun ./solver\n",
     "#SBATCH -n4\n#SBATCH --gres=gpu:2\nsrun hostname\n"},
    {"B104", Level::warning, 3, "#SBATCH -n4\n#SBATCH --gres=gpu:2\nsrun ./solver\n",
     "#SBATCH -n4\n#SBATCH --gres=gpu:2\nsrun --gpu-bind=none ./solver\n"},
    {"B104", Level::warning, 3, "#SBATCH -N1 -n2\n#SBATCH --gres=gpu:4\nmpirun ./solver\n",
     "#SBATCH -N1 -n2\n#SBATCH --gres=gpu:4\n"
     "mpirun bash -c 'CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_LOCAL_RANK exec ./solver'\n"},
    {"B105", Level::warning, 4,
     "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\n#SBATCH --gres=gpu:4\nsrun ./app\n",
     "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\nsrun ./app\n"},
    {"B105", Level::warning, 3, "#SBATCH --nodes=2 -n4\n#SBATCH --gres=gpu:4\nmpirun -np 4 ./app\n",
     "#SBATCH --nodes=4\n#SBATCH --gres=gpu:4\nsrun python one_process_a_node.py\n"},
    {"B105", Level::warning, 3,
     "#SBATCH --nodes=2 --ntasks-per-node=2\n#SBATCH --gres=gpu:4\nsrun ./app\n",
     "#SBATCH --nodes=2 --ntasks-per-node=2\n#SBATCH --gres=gpu:4\n"
     "srun --gpu-bind=mask_gpu:0x3,0xc ./app\n"},
    {"B106", Level::note, 3, "#SBATCH -N1 --ntasks-per-node=4 --gres=gpu:4\nsrun ./solver\n",
     "#SBATCH -N1 --ntasks-per-node=4 --gres=gpu:4\nsrun --gpu-bind=single:1 ./solver\n"},
    {"B106", Level::note, 3,
     "#SBATCH -p ml -N1 -n4 --gres=gpu:4\nsrun --gpu-bind=closest ./solver\n",
     "#SBATCH -p ml -N1 -n4 --gres=gpu:4\nsrun --gpu-bind=single:1 ./solver\n"},
    {"B107", Level::warning, 3, "#SBATCH -n4 --gpus-per-task=1\nmpirun -np 4 ./app\n",
     "#SBATCH -n4 --gpus-per-task=1\nsrun --mpi=pmix ./app\n"},
    {"B104", Level::warning, 3, "#SBATCH -N1 -n2\n#SBATCH --gres=gpu:4\nmpirun ./solver\n",
     "#SBATCH -N1 -n2\n#SBATCH --gres=gpu:4\nmpirun berth bind ./solver\n"},
    {"B104", Level::warning, 3, "#SBATCH -n4\n#SBATCH --gres=gpu:2\nsrun ./solver\n",
     "#SBATCH -n4\n#SBATCH --gres=gpu:2\nsrun berth bind ./solver\n"},
    {"B105", Level::warning, 3, "#SBATCH --nodes=2 -n4\n#SBATCH --gres=gpu:4\nmpirun -np 4 ./app\n",
     "#SBATCH --nodes=2 -n4\n#SBATCH --gres=gpu:4\nmpirun -np 4 berth bind ./app\n"},
    {"B105", Level::warning, 3,
     "#SBATCH -N2 --ntasks-per-node=2\n#SBATCH --gres=gpu:4\nmpirun berth bind "
     "--gpus-per-rank 1 ./app\n",
     "#SBATCH -N2 --ntasks-per-node=2\n#SBATCH --gres=gpu:4\nmpirun berth bind "
     "--gpus-per-rank 2 ./app\n"},
    {"B106", Level::note, 3, "#SBATCH -N1 -n4 --gres=gpu:4\nmpirun -np 4 ./solver\n",
     "#SBATCH -N1 -n4 --gres=gpu:4\nmpirun -np 4 berth bind ./solver\n"},
    {"B107", Level::warning, 3, "#SBATCH -n4 --gpus-per-task=1\nmpirun -np 4 ./app\n",
     "#SBATCH -n4 --gpus-per-task=1\nmpirun -np 4 berth bind ./app\n"},
    {"B107", Level::warning, 3, "#SBATCH -n4 --gpus-per-task=1\nmpiexec -n 4 ./app\n",
     "#SBATCH -n4 --gpus-per-task=1\nmpiexec -n 4 /opt/bin/berth bind --gpus-per-rank 1 -- "
     "./app\n"},
    {"B107", Level::warning, 3, "#SBATCH -n4 --gpus-per-task=1\nmpiexec -n 4 ./app\n",
     "#SBATCH -n4 --gpus-per-task=1\nmpiexec -n 4 bash -c 'exec berth bind ./app'\n"},
    {"B108", Level::warning, 3, "#SBATCH --nodes=2\n#SBATCH --gpus=4\n",
     "#SBATCH --nodes=2\n#SBATCH --gpus-per-node=2\n"},
    {"B109", Level::warning, 3, "#SBATCH -n2 --gpus-per-task=1\nsrun -n1 --gres=gpu:2 ./app\n",
     "#SBATCH -n2 --gpus-per-task=1\nsrun -n1 --gres=gpu:2 --gpu-bind=none ./app\n"},
    {"B111", Level::warning, 3,
     "#SBATCH --gres=gpu:1\nexport CUDA_VISIBLE_DEVICES=0\npython a.py\n",
     "#SBATCH -p ml\n#SBATCH --gres=gpu:4\nCUDA_VISIBLE_DEVICES=0 python a.py\n"},
    {"B111", Level::warning, 2, "export CUDA_VISIBLE_DEVICES=0,1\npython a.py\n",
     "export CUDA_VISIBLE_DEVICES=\npython a.py\n"},
    {"B112", Level::warning, 3, "#SBATCH -p ml\n#SBATCH --exclusive\nsrun python a.py\n",
     "#SBATCH -p ml\n#SBATCH --exclusive --gres=gpu:4\nsrun python a.py\n"},
    {"B113", Level::warning, 3, "#SBATCH --nodes=2 --ntasks-per-node=4\n#SBATCH --gpus=4\n",
     "#SBATCH --nodes=2 --ntasks-per-node=4\n#SBATCH --gpus=8\n"},
    {"B114", Level::error, 2, "#SBATCH --gres=shard:5\n", "#SBATCH --gres=shard:4\n"},
    // Directives
    {"B201", Level::warning, 3, "module load cuda\n#SBATCH --gres=gpu:4\n",
     "#SBATCH --gres=gpu:4\nmodule load cuda\n"},
    {"B202", Level::warning, 3, "set -euo pipefail\n#SBATCH --gres=gpu:4\n",
     "#SBATCH --gres=gpu:4\nset -euo pipefail\n"},
    {"B203", Level::warning, 2, "  #SBATCH --nodes=2\n", "#SBATCH --nodes=2\n"},
    {"B204", Level::warning, 2, "# SBATCH --nodes=2\n", "# SBATCH lines follow\n"},
    {"B205", Level::note, 2, "##SBATCH --nodes=2\n", "## SBATCH\n"},
    {"B206", Level::warning, 2, "#sbatch --nodes=2\n", "#SBATCH --nodes=2\n"},
    {"B207", Level::error, 2, "#SBATCH --job-name=my job\n", "#SBATCH --job-name=\"my job\"\n"},
    {"B207", Level::error, 2, "#SBATCH --nodes = 2\n", "#SBATCH --nodes 2\n"},
    {"B208", Level::warning, 2, "#SBATCH --job-name=run#3\n", "#SBATCH --job-name=run # third\n"},
    {"B211", Level::error, 2, "#SBATCH --gpu-per-task=1\n", "#SBATCH -n1 --gpus-per-task=1\n"},
    {"B211", Level::error, 2, "#SBATCH ----\n", "#SBATCH -n1\n"},
    {"B212", Level::warning, 2, "#SBATCH --output=$HOME/run.out\n", "#SBATCH --output=run.out\n"},
    {"B212", Level::warning, 2, "#SBATCH -o ~/run.out\n", "#SBATCH -o run~.out\n"},
    {"B213", Level::warning, 3, "#SBATCH --nodes=2\n#SBATCH -N 4\n",
     "#SBATCH --nodes=2\n#SBATCH -N 2\n"},
    {"B214", Level::error, 2, "#SBATCH \u2013nodes=2\n", "#SBATCH --nodes=2\n"},
    // Nodes, tasks and CPUs
    {"B301", Level::warning, 2, "#SBATCH --ntasks=4\n#SBATCH -N4\n#SBATCH --ntasks-per-node=4\n",
     "#SBATCH --ntasks=16\n#SBATCH -N4\n#SBATCH --ntasks-per-node=4\n"},
    {"B301", Level::error, 2, "#SBATCH -n4\n#SBATCH -N2 --ntasks-per-node=1\n",
     "#SBATCH -n2\n#SBATCH -N2 --ntasks-per-node=1\n"},
    {"B302", Level::warning, 2, "#SBATCH -n2\n#SBATCH -N4\n", "#SBATCH -n4\n#SBATCH -N4\n"},
    {"B303", Level::warning, 2, "#SBATCH -n4\n#SBATCH -N2\n#SBATCH -p ml\n",
     "#SBATCH -N2\n#SBATCH --ntasks-per-node=2\n#SBATCH -p ml\n"},
    {"B304", Level::note, 0, "#SBATCH --gres=gpu:1\nsrun python a.py\n",
     "#SBATCH --gres=gpu:1 -c4\nsrun python a.py\n"},
    {"B305", Level::warning, 3, "#SBATCH -c4 -p ml\nexport OMP_NUM_THREADS=16\n",
     "#SBATCH -c4 -p ml\nexport OMP_NUM_THREADS=4\n"},
    // Launchers
    {"B401", Level::warning, 3, "#SBATCH -N4 --gres=gpu:4\ntorchrun --nproc-per-node=4 a.py\n",
     "#SBATCH -N4 --gres=gpu:4\nsrun torchrun --nnodes=4 --nproc-per-node=4 a.py\n"},
    {"B401", Level::warning, 3, "#SBATCH -N4 --gres=gpu:4\ndeepspeed a.py\n",
     "#SBATCH -N4 --gres=gpu:4\ndeepspeed --hostfile=hosts a.py\n"},
    {"B402", Level::warning, 3, "#SBATCH -N2\npython a.py\n", "#SBATCH -N2\nsrun python a.py\n"},
    {"B403", Level::warning, 3,
     "#SBATCH -N2 --ntasks-per-node=4 --gres=gpu:4\nsrun torchrun --nproc-per-node=4 a.py\n",
     "#SBATCH -N2 --ntasks-per-node=1 --gres=gpu:4\nsrun torchrun --nproc-per-node=4 a.py\n"},
    {"B404", Level::warning, 3, "#SBATCH -n4\nsrun mpirun ./app\n", "#SBATCH -n4\nmpirun ./app\n"},
    {"B405", Level::warning, 3, "#SBATCH -n4\nmpirun -np 8 ./app\n",
     "#SBATCH -n8\nmpirun -np 8 ./app\n"},
    {"B405", Level::note, 3, "#SBATCH -n4\nmpirun -np 2 ./app\n", "#SBATCH -n4\nmpirun ./app\n"},
    {"B406", Level::note, 2, "sbatch next.sh\n", "srun ./next\n"},
    {"B406", Level::warning, 2, "salloc -n1 ./next\n", "srun ./next\n"},
    {"B407", Level::warning, 3, "#SBATCH --gres=gpu:2\ntorchrun --nproc-per-node=4 a.py\n",
     "#SBATCH --gres=gpu:2\ntorchrun --nproc-per-node=2 a.py\n"},
    {"B407", Level::note, 3, "#SBATCH --gres=gpu:4\nsrun torchrun --nproc-per-node=2 a.py\n",
     "#SBATCH --gres=gpu:4\nsrun torchrun --nproc-per-node=gpu a.py\n"},
    {"B408", Level::warning, 3, "#SBATCH -N2 --gres=gpu:4\nsrun torchrun --nnodes=4 a.py\n",
     "#SBATCH -N2 --gres=gpu:4\nsrun torchrun --nnodes=$SLURM_NNODES a.py\n"},
    {"B409", Level::note, 2, "export MASTER_PORT=29500\n",
     "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))\n"},
    {"B410", Level::warning, 3, "#SBATCH -N2\nexport MASTER_ADDR=localhost\n",
     "#SBATCH -N1\nexport MASTER_ADDR=localhost\n"},
    {"B411", Level::warning, 3, "#SBATCH -n2\nsrun python a.py --rank $SLURM_PROCID\n",
     "#SBATCH -n2\nsrun bash -c 'python a.py --rank $SLURM_PROCID'\n"},
    {"B411", Level::warning, 3, "#SBATCH -n2\nsrun bash -c \"python a.py ${SLURM_LOCALID}\"\n",
     "#SBATCH -n2\nsrun bash -c \"python a.py \\$SLURM_LOCALID\"\n"},
    {"B412", Level::error, 3,
     "#SBATCH -N1 -n4 --gres=gpu:4\nmpirun berth bind --gpus-per-rank 2 ./app\n",
     "#SBATCH -N1 -n2 --gres=gpu:4\nmpirun berth bind --gpus-per-rank 2 ./app\n"},
    {"B412", Level::error, 3, "#SBATCH -n2 --gres=gpu:2\nmpirun berth bind --gpus 2 ./app\n",
     "#SBATCH -n2 --gpus-per-task=1\nmpirun berth bind --gpus-per-rank 1 ./app\n"},
    // Steps
    {"B501", Level::error, 3, "#SBATCH -N2 -p ml\nsrun -n4 ./app\n",
     "#SBATCH -N2 --ntasks-per-node=2 -p ml\nsrun ./app\n"},
    {"B502", Level::error, 3, "#SBATCH --gpus-per-node=4\nsrun --gres=gpu:1 ./app\n",
     "#SBATCH --gpus-per-node=4\nsrun --gpus-per-node=1 ./app\n"},
    {"B503", Level::warning, 4, "#SBATCH -n4 -p ml\nsrun -n1 ./a &\nsrun -n1 ./b &\nwait\n",
     "#SBATCH -n4 -p ml\nsrun --exact -n1 ./a &\nsrun --exact -n1 ./b &\nwait\n"},
    {"B504", Level::warning, 3, "#SBATCH -n4\nsrun --exact -n1 ./a &\nsrun --exact -n1 ./b &\n",
     "#SBATCH -n4\nsrun --exact -n1 ./a &\nsrun --exact -n1 ./b &\nwait\n"},
    {"B504", Level::warning, 3, "#SBATCH -n4\nsrun --exact -n1 ./server &\necho started\n",
     "#SBATCH -n4\nsrun --exact -n1 ./server &\nsrun --exact -n1 ./client\n"},
    {"B504", Level::warning, 2, "( srun ./a; srun ./b ) &\n", "srun ./a | tee log\n"},
    {"B504", Level::warning, 3,
     "#SBATCH -n4\nsrun --exact -n1 ./a &\np=$!\nsrun --exact -n1 ./b &\n"
     "wait $!\n",
     "#SBATCH -n4\nsrun --exact -n1 ./a &\nfirst=$!\nsrun --exact -n1 ./b &\nwait $first $!\n"},
    {"B505", Level::warning, 5,
     "#SBATCH -n4 -p ml\n#SBATCH --mem=64G\nsrun --exact -n1 ./a &\nsrun --exact -n1 ./b &\nwait\n",
     "#SBATCH -n4 -p ml\n#SBATCH --mem=64G\n"
     "srun --exact -n1 --mem=16G ./a &\nsrun --exact -n1 --mem=16G ./b &\nwait\n"},
    {"B506", Level::warning, 5,
     "#SBATCH -n4\n#SBATCH --gres=gpu:4\nsrun --exact -n1 ./a &\nsrun --exact -n1 ./b &\nwait\n",
     "#SBATCH -n4\n#SBATCH --gres=gpu:4\n"
     "srun --exact -n1 --gres=gpu:1 ./a &\nsrun --exact -n1 --gres=gpu:1 ./b &\nwait\n"},
    // Places and limits
    {"B601", Level::error, 2, "#SBATCH -p mll\n", "#SBATCH -p ml\n"},
    {"B602", Level::error, 2, "#SBATCH -C nvlnk\n", "#SBATCH -C 'nvlink|rack2'\n"},
    {"B602", Level::error, 2, "#SBATCH -N2 -C '[nvlink*1&rack3*1]'\n",
     "#SBATCH -N2 -C '[nvlink*1&rack2*1]'\n"},
    {"B603", Level::error, 2, "#SBATCH -w gpu9\n", "#SBATCH -w gpu1\n"},
    {"B603", Level::error, 3, "#SBATCH -p ml\n#SBATCH -w gpu5\n", "#SBATCH -w gpu5\n"},
    {"B604", Level::error, 3, "#SBATCH -p short\n#SBATCH -t 5\n",
     "#SBATCH -p short\n#SBATCH -t 2\n"},
    {"B604", Level::error, 3, "#SBATCH -p short\n#SBATCH -t 0\n",
     "#SBATCH -p short,debug\n#SBATCH -t 5\n"},
    {"B605", Level::note, 0, "echo\n", "#SBATCH -t 10\necho\n"},
    {"B606", Level::error, 2, "#SBATCH --mem=100G\n", "#SBATCH --mem=64G\n"},
    {"B606", Level::error, 3, "#SBATCH --gres=gpu:4\n#SBATCH --mem-per-gpu=32G\n",
     "#SBATCH --gres=gpu:4\n#SBATCH --mem-per-gpu=16G\n"},
    {"B607", Level::error, 2, "#SBATCH -N9\n", "#SBATCH -N8\n"},
    {"B607", Level::error, 3, "#SBATCH -p ml\n#SBATCH -N5\n", "#SBATCH -p ml\n#SBATCH -N4\n"},
    {"B608", Level::error, 2, "#SBATCH -c 64\n", "#SBATCH -c 32\n"},
    {"B609", Level::warning, 2, "#SBATCH -p closed\n", "#SBATCH -p debug\n"},
    {"B611", Level::note, 0, "#SBATCH --gres=gpu:1\n", "#SBATCH --gres=gpu:1 --mem=16G\n"},
    {"B612", Level::note, 2, "#SBATCH --time=24:00\n", "#SBATCH --time=24:00:00\n"},
    {"B613", Level::warning, 2, "#SBATCH --mem=64\n", "#SBATCH --mem=64G\n"},
    // Files
    {"B702", Level::warning, 3, "#SBATCH --array=1-10\n#SBATCH -o run.out\n",
     "#SBATCH --array=1-10\n#SBATCH -o run_%a.out\n"},
    {"B703", Level::note, 2, "#SBATCH -o rank%t.out\n", "#SBATCH -o job%j.out\n"},
    {"B704", Level::warning, 2, "#SBATCH -o run_%A_%a.out\n", "#SBATCH -o run_%j.out\n"},
    {"B706", Level::note, 2, "#SBATCH -o /tmp/run.out\n", "#SBATCH -o run.out\n"},
};

TEST(Rules, FireOnTheWrongScript) {
  for (const Case& each : kCases) {
    const auto findings = Explained().sbatch(script(each.wrong));
    const Finding* found = find(findings, each.code);
    ASSERT_NE(found, nullptr) << each.code << " is missing; found: " << codes(findings) << "\n"
                              << each.wrong;
    EXPECT_EQ(found->level, each.level) << each.code << "\n" << each.wrong;
    EXPECT_EQ(found->line, each.line) << each.code << "\n" << each.wrong;
    EXPECT_FALSE(found->text.empty());
  }
}

TEST(Rules, AreQuietOnTheRightScript) {
  for (const Case& each : kCases) {
    const auto findings = Explained().sbatch(script(each.right));
    const Finding* found = find(findings, each.code);
    EXPECT_EQ(found, nullptr) << each.code << ": " << (found == nullptr ? "" : found->text) << "\n"
                              << each.right;
  }
}

// What a finding says in detail.

/// Text and hint of a finding; "" when it is not there.
std::string told(const std::vector<Finding>& findings, std::string_view code) {
  const Finding* found = find(findings, code);
  return found == nullptr ? "" : found->text + "\n" + found->hint;
}

bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Hints, SharedGpusOfMpirunAreCountedOverTheJob) {
  const std::string told_here = told(
      Explained().sbatch(script("#SBATCH -p ml -N2 -n8 --gres=gpu:4\nmpirun -np 8 ./app --lr 1\n")),
      "B104");
  EXPECT_TRUE(says(told_here, "7 ranks for 4 GPUs on gpu1")) << told_here;
  EXPECT_TRUE(says(told_here, "8 GPUs as before")) << told_here;
  EXPECT_TRUE(says(told_here, "mpirun -np 8 berth bind ./app")) << told_here;
}

TEST(Hints, NoDirectiveThatWouldBeRefused) {
  const std::string told_here =
      told(Explained().sbatch(script("#SBATCH -p ml -N1 -n4 -c4 --gres=gpu:4\nsrun -n2 ./app\n")),
           "B104");
  EXPECT_TRUE(says(told_here, "srun --gpus-per-task=1")) << told_here;
  EXPECT_TRUE(says(told_here, "srun --gpus-per-task=2")) << told_here;
  EXPECT_FALSE(says(told_here, "#SBATCH")) << told_here;
  EXPECT_FALSE(says(told_here, "on each node")) << told_here;
}

TEST(Hints, UnknownTypeWithoutANearOne) {
  const auto findings = Explained().sbatch(script("#SBATCH --gres=gpu:zzzzzz\n"));
  ASSERT_NE(find(findings, "B102"), nullptr);
  EXPECT_EQ(find(findings, "B102")->hint, "#SBATCH --gres=gpu");
}

TEST(Hints, MemoryKeepsTheGpusOfTheLine) {
  const std::string told_here =
      told(Explained().sbatch(script("#SBATCH -N1 -n4 --mem=8G --gres=gpu:4\n"
                                     "srun --exact -n1 --gres=gpu:2 ./a &\n"
                                     "srun --exact -n1 --gres=gpu:2 ./b &\nwait\n")),
           "B505");
  EXPECT_TRUE(says(told_here, "srun --exact -n1 --gres=gpu:2 --mem=4G")) << told_here;
}

TEST(Hints, TimeOfComponents) {
  const auto findings =
      Explained().sbatch(script("#SBATCH -n1 -t5\n#SBATCH hetjob\n#SBATCH -n1\nsrun ./a\n"));
  EXPECT_TRUE(says(told(findings, "B605"), "No --time for component 1")) << codes(findings);
}

TEST(Hints, CountsTooLarge) {
  const auto findings = Explained().sbatch(script("#SBATCH --gres=gpu:99999999999999999999\n"));
  EXPECT_TRUE(says(told(findings, "B101"), "has a count that is too large")) << codes(findings);
}

TEST(Hints, UnevenGpus) {
  const std::string told_here = told(
      Explained().sbatch(script("#SBATCH -p ml -N2 --ntasks-per-node=2 --gpus=4\nsrun ./app\n")),
      "B104");
  EXPECT_TRUE(says(told_here, "all GPUs of its node")) << told_here;
  EXPECT_TRUE(says(told_here, "2 tasks for 3 GPUs on gpu1, 2 tasks for 1 GPU on gpu2"))
      << told_here;
}

// Those that need something besides a script.

TEST(Rules, NoInterpreterLine) {
  const auto findings = Explained().sbatch("srun hostname\n");
  EXPECT_EQ(codes(findings), "B209");
  EXPECT_EQ(findings[0].hint, "#!/bin/bash");
}

TEST(Rules, ByteOrderMark) {
  const auto findings = Explained().sbatch("\xEF\xBB\xBF#!/bin/bash\nsrun hostname\n");
  ASSERT_EQ(codes(findings), "B209");
  EXPECT_NE(findings[0].text.find("byte order mark"), std::string::npos);
}

TEST(Rules, DosLineBreaks) {
  EXPECT_EQ(codes(Explained().sbatch("#!/bin/bash\r\nsrun hostname\r\n")), "B210");
}

TEST(Rules, PeerAccess) {
  const std::string text = script("#SBATCH -n4 --gpus-per-task=1 -t5\nsrun python a.py\n");
  Explained open;
  EXPECT_FALSE(has(open.sbatch(text), "B110"));
  Explained fenced;
  fenced.cluster().settings.constrain_devices = true;
  const auto findings = fenced.sbatch(text);
  const Finding* found = find(findings, "B110");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->level, Level::note);
  EXPECT_NE(found->hint.find("allow-task-sharing"), std::string::npos);
  Explained of_steps;
  of_steps.cluster().settings.constrain_devices = of_steps.cluster().settings.step_fence = true;
  EXPECT_FALSE(has(of_steps.sbatch(text), "B110"));
  Explained back;
  back.cluster().settings.constrain_devices = back.cluster().settings.step_fence = true;
  EXPECT_TRUE(has(back.sbatch(script("#SBATCH -n4 --gpus-per-task=1 -t5\n"
                                     "srun --gres-flags=no-task-sharing python a.py\n")),
                  "B110"));
  Explained mended;
  mended.cluster().settings.constrain_devices = true;
  EXPECT_FALSE(has(mended.sbatch(script("#SBATCH -n4 --gpus-per-task=1\n"
                                        "srun --gres-flags=allow-task-sharing python a.py\n")),
                   "B110"));
}

TEST(Rules, WrittenDevicesAreRightWhereGpusAreRenumbered) {
  const std::string text = script(
      "#SBATCH --gres=gpu:2\nCUDA_VISIBLE_DEVICES=0 ./a &\nCUDA_VISIBLE_DEVICES=1 ./b &\nwait\n");
  Explained fenced;
  fenced.cluster().settings.constrain_devices = true;
  EXPECT_FALSE(has(fenced.sbatch(text), "B111"));
  EXPECT_TRUE(has(Explained().sbatch(text), "B111"));
}

TEST(Rules, OneTaskWhereSeveralWereMeant) {
  EXPECT_TRUE(has(Explained().srun({"--gpus=4", "--gpus-per-task=1"}), "B115"));
  EXPECT_FALSE(has(Explained().srun({"-n4", "--gpus-per-task=1"}), "B115"));
}

TEST(Rules, EnvironmentOverridesDirective) {
  Explained job;
  job.input.environment["SBATCH_PARTITION"] = "ml";
  const auto findings = job.sbatch(script("#SBATCH --partition=debug\n"));
  const Finding* found = find(findings, "B215");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->line, 2);
  EXPECT_EQ(found->hint, "unset SBATCH_PARTITION");
  EXPECT_FALSE(has(Explained().sbatch(script("#SBATCH --partition=debug\n")), "B215"));
}

TEST(Rules, MemoryOfUnknownSizeIsNotTaken) {
  const std::string text = script("#SBATCH --gres=gpu:1 -t1\n");
  EXPECT_TRUE(has(Explained().sbatch(text), "B611"));
  Explained unknown;
  for (auto& node : unknown.cluster().nodes) node.memory_mb = 1;
  EXPECT_FALSE(has(unknown.sbatch(text), "B611"));
}

TEST(Rules, LargeArray) {
  Explained job;
  job.cluster().settings.max_array_size = 100;
  EXPECT_TRUE(has(job.sbatch(script("#SBATCH --array=0-200\n")), "B610"));
  Explained small;
  small.cluster().settings.max_array_size = 100;
  EXPECT_FALSE(has(small.sbatch(script("#SBATCH --array=0-99\n")), "B610"));
}

TEST(Rules, Directories) {
  Explained job;
  job.input.directory_exists = [](const std::string& name) { return name == "here"; };
  const auto findings = job.sbatch(script("#SBATCH -o logs/a.out\n#SBATCH -D nowhere\n"));
  ASSERT_NE(find(findings, "B701"), nullptr);
  EXPECT_EQ(find(findings, "B701")->level, Level::note);
  ASSERT_NE(find(findings, "B705"), nullptr);
  EXPECT_EQ(find(findings, "B705")->level, Level::error);
  Explained fine;
  fine.input.directory_exists = job.input.directory_exists;
  const auto quiet = fine.sbatch(script("#SBATCH -o here/a.out\n"));
  EXPECT_FALSE(has(quiet, "B701"));
  EXPECT_FALSE(has(quiet, "B705"));
}

TEST(Rules, RefusalsThatNoRuleExplains) {
  // Refused by sbatch itself.
  EXPECT_EQ(codes(Explained().sbatch(script("#SBATCH -n0x\n"))), "B299");
  // Refused by the controller: 5 nodes with 4 a100 do not exist, though each number is possible.
  const auto findings = Explained().sbatch(script("#SBATCH -N5 --gres=gpu:a100:4 -t1\n"));
  EXPECT_TRUE(has(findings, "B699")) << codes(findings);
  // Accepted, and kept from running by a limit that has no rule.
  Explained limited;
  limited.cluster().partitions[0].min_nodes = 2;
  const auto pending = limited.sbatch(script("#SBATCH -N1 -t1\n"));
  ASSERT_TRUE(has(pending, "B698")) << codes(pending);
  EXPECT_EQ(find(pending, "B698")->level, Level::error);
  // One cause, one finding.
  const auto closed = Explained().sbatch(script("#SBATCH -p closed -t1\n"));
  EXPECT_TRUE(has(closed, "B609")) << codes(closed);
  EXPECT_FALSE(has(closed, "B698")) << codes(closed);
}

TEST(Rules, EveryOneIsTested) {
  std::set<std::string_view> tested = {"B110", "B115", "B209", "B210", "B215", "B299",
                                       "B610", "B698", "B699", "B701", "B705"};
  for (const Case& each : kCases) tested.insert(each.code);
  for (const Rule& rule : rules()) {
    EXPECT_TRUE(tested.contains(rule.code)) << rule.code;
  }
  EXPECT_GE(rules().size(), 30U);
}

}  // namespace
}  // namespace berth::lint
