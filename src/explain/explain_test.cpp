// Scripts and command lines on a small cluster, and what is said about them.
#include "explain/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explain/processes.h"
#include "explain/render.h"
#include "explain/table.h"
#include "explain/words.h"
#include "site/site.h"

namespace berth::explain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Two nodes with four a100 each, 16 CPUs in 2 sockets, 64 GiB.
class Explain : public testing::Test {
 protected:
  Explain() : site_(*site::from_emulate_spec("gpu[1-2]:cpus=16:mem=64G:gpus=a100x4")) {}

  Explanation script(const std::string& directives, const std::string& body,
                     request::Environment environment = {}) {
    Input input;
    input.script = "#!/bin/bash\n" + directives + "\n" + body;
    input.words = {"job.sh"};
    input.name = "job.sh";
    input.around.environment = std::move(environment);
    return run(input);
  }

  Explanation command(request::Command command, std::vector<std::string> words) {
    Input input;
    input.command = command;
    input.words = std::move(words);
    input.name = std::string(request::command_name(command));
    return run(input);
  }

  Explanation run(Input& input) {
    const cluster::Usage idle(site_.cluster);
    input.cluster = &site_.cluster;
    if (input.usage == nullptr) input.usage = &idle;
    return explain(input);
  }

  site::Site site_;
};

/// "rank node local mask cuda", one line a task.
std::string tasks_of(const Step& step) {
  std::string out;
  for (const Task& task : step.tasks) {
    out += std::to_string(task.rank) + " " + task.node + " " + std::to_string(task.local_id) + " " +
           task.cpus.hex() + " " + task.cuda_visible_devices.value_or("-") + "\n";
  }
  return out;
}

TEST_F(Explain, OneGpuForEachTask) {
  const Explanation e = script("#SBATCH -N2 --ntasks-per-node=2 --gpus-per-task=1 -t 10", "srun a");
  EXPECT_TRUE(e.accepted);
  EXPECT_TRUE(e.fine());
  EXPECT_THAT(e.asks, ElementsAre("2 nodes, 1 GPU per task = 4 GPUs, 2 tasks per node = 4 tasks, "
                                  "each task sees its own GPU, 10 min, partition main"));
  ASSERT_EQ(e.steps.size(), 1u);
  EXPECT_EQ(tasks_of(e.steps[0]),
            "0 gpu1 0 0x1 0\n1 gpu1 1 0x2 1\n2 gpu2 0 0x1 0\n3 gpu2 1 0x2 1\n");
  EXPECT_EQ(e.steps[0].tasks[2].env.at("SLURM_PROCID"), "2");
  EXPECT_EQ(e.env.at("SLURM_JOB_NODELIST"), "gpu[1-2]");
  ASSERT_TRUE(e.batch);
  EXPECT_EQ(e.batch->node, "gpu1");
}

TEST_F(Explain, TheDesignsExample) {
  const Explanation e =
      script("#SBATCH -N2 --ntasks-per-node=2 --gres=gpu:4 -t 10", "srun python train.py");
  EXPECT_THAT(e.asks, ElementsAre("2 nodes × 4 GPUs = 8 GPUs, 2 tasks per node = 4 tasks, "
                                  "no binding: every task sees all 4, 10 min, partition main"));
  const std::string text = render_text(e, {});
  EXPECT_THAT(text, HasSubstr("it would get     gpu[1-2]: CPUs 0,8  GPUs 0-3 a100"));
  EXPECT_THAT(text, HasSubstr("line 3: srun python train.py"));
  EXPECT_THAT(text, HasSubstr("  rank  node  local  CPUs  GPUs     CUDA_VISIBLE_DEVICES\n"
                              "     0  gpu1      0  0     0,1,2,3  0,1,2,3\n"));
  EXPECT_THAT(text, HasSubstr("warning B104, line 2: "));
  EXPECT_THAT(text, Not(HasSubstr("\033")));
  EXPECT_THAT(render_text(e, {true, false}), HasSubstr("\033[1;33mwarning B104"));
}

struct TimeRow {
  const char* name;
  const char* body;
  /// "id:start:waits_for:beside", blank between steps; lists joined by +.
  const char* steps;
};

std::string joined(const std::vector<std::uint32_t>& ids) {
  std::string out;
  for (const std::uint32_t id : ids) out += (out.empty() ? "" : "+") + std::to_string(id);
  return out;
}

std::string timeline_of(const Explanation& e) {
  std::string out;
  for (const Step& step : e.steps) {
    const char* start = step.start == StepStart::at_once   ? "now"
                        : step.start == StepStart::waits   ? "waits"
                        : step.start == StepStart::refused ? "fails"
                        : step.start == StepStart::never   ? "never"
                                                           : "unknown";
    if (!out.empty()) out += ' ';
    out += (step.id ? std::to_string(*step.id) : "-") + ":" + start + ":" + joined(step.waits_for) +
           ":" + joined(step.beside);
  }
  return out;
}

class ExplainTime : public Explain, public testing::WithParamInterface<TimeRow> {};

TEST_P(ExplainTime, Steps) {
  const Explanation e = script("#SBATCH -N1 -n4 --mem=4G --gres=gpu:4 -t 10", GetParam().body);
  EXPECT_EQ(timeline_of(e), GetParam().steps);
}

const TimeRow kTimes[] = {
    {"foreground", "srun a\nsrun b", "0:now:: 1:now::"},
    {"plain in the background", "srun -n1 a &\nsrun -n1 b &\nsrun -n1 c &\nwait",
     "0:now:: 1:waits:0: 2:waits:1:"},
    {"exact side by side",
     "for i in 1 2 3 4; do srun -n1 --exact --mem=1G --gres=gpu:1 a & done; wait",
     "0:now:: 1:now::0 2:now::0+1 3:now::0+1+2"},
    {"the fifth and sixth wait",
     "for i in 1 2 3 4 5 6; do srun -n1 --exact --mem=1G --gres=gpu:1 a & done; wait",
     "0:now:: 1:now::0 2:now::0+1 3:now::0+1+2 4:waits:0:1+2+3 5:waits:1:2+3+4"},
    {"a whole step waits for all",
     "for i in 1 2 3; do srun -n1 --exact --mem=1G --gres=gpu:1 a & done\nsrun b\nwait",
     "0:now:: 1:now::0 2:now::0+1 3:waits:0+1+2:"},
    {"wait ends them", "srun -n1 a &\nwait\nsrun b", "0:now:: 1:now::"},
    {"wait for one",
     "srun -n1 --exact --mem=1G --gres=gpu:1 a &\nA=$!\nsrun -n1 --exact --mem=1G --gres=gpu:1 b "
     "&\n"
     "wait $A\nsrun -n1 --exact --mem=1G --gres=gpu:1 c",
     "0:now:: 1:now::0 2:now::1"},
    {"groups in the background run one after another",
     "(srun -n1 --exact --mem=1G --gres=gpu:1 a; srun -n1 --exact --mem=1G --gres=gpu:1 b) &\n"
     "srun -n1 --exact --mem=1G --gres=gpu:1 c\nwait",
     "0:now:: 1:now::0 2:now::1"},
    {"overlap", "srun -n1 a &\nsrun -n1 --overlap b &\nwait", "0:now:: 1:now::0"},
    {"refused steps have no number", "srun -n9 a\nsrun b", "-:fails:: 0:now::"},
    {"syntax errors too", "srun -n x a\nsrun b", "-:fails:: 0:now::"},
    {"pipelines are foreground", "srun a | tee log\nsrun b", "0:now:: 1:now::"},
    {"mpirun on one node makes no step", "mpirun a\nsrun b", "-:now:: 0:now::"},
    {"options that are not known", "srun -n$(nproc) a\nsrun b", "-:unknown:: 0:now::"},
    {"changed environment", "export SLURM_NTASKS=2\nsrun -n1 a &\nSLURM_MEM_PER_NODE=1 srun b",
     "0:now:: 1:waits:0:"},
};

INSTANTIATE_TEST_SUITE_P(Table, ExplainTime, testing::ValuesIn(kTimes), [](const auto& row) {
  std::string name = row.param.name;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
});

TEST_F(Explain, TheScriptsVariablesReachSrun) {
  const Explanation e =
      script("#SBATCH -N1 -n4 -t 10",
             "export SLURM_NTASKS=2\nsrun a\nunset SLURM_NTASKS SLURM_NPROCS\nsrun b");
  ASSERT_EQ(e.steps.size(), 2u);
  EXPECT_EQ(e.steps[0].tasks.size(), 2u);
  EXPECT_EQ(e.steps[1].tasks.size(), 1u);
}

TEST_F(Explain, TheUsersVariablesReachTheScript) {
  EXPECT_EQ(script("#SBATCH -n4 -t 10", "srun -n$N a", {{"N", "3"}}).steps[0].tasks.size(), 3u);
  // --export=NONE hides them.
  const Explanation hidden =
      script("#SBATCH -n4 -t 10 --export=NONE", "srun -n${N-2} a", {{"N", "3"}});
  EXPECT_EQ(hidden.steps[0].tasks.size(), 2u);
  const Explanation named = script("#SBATCH -n4 -t 10 --export=N,M=1", "srun -n$N a\nsrun -n$M b",
                                   {{"N", "3"}, {"X", "9"}});
  EXPECT_EQ(named.steps[0].tasks.size(), 3u);
  EXPECT_EQ(named.steps[1].tasks.size(), 1u);
}

TEST_F(Explain, RanksOfMpirun) {
  const Explanation all = script("#SBATCH -N2 --ntasks-per-node=2 --gres=gpu:4 -t 10", "mpirun a");
  ASSERT_EQ(all.steps.size(), 1u);
  EXPECT_EQ(all.steps[0].kind, StepKind::mpirun);
  EXPECT_EQ(all.steps[0].id, 0u);
  EXPECT_EQ(tasks_of(all.steps[0]),
            "0 gpu1 0 0x101 0,1,2,3\n1 gpu1 1 0x101 0,1,2,3\n"
            "2 gpu2 0 0x101 0,1,2,3\n3 gpu2 1 0x101 0,1,2,3\n");
  const Explanation bound =
      script("#SBATCH -N2 --ntasks-per-node=2 --gpus-per-task=1 -t 10", "mpirun -np 3 a");
  EXPECT_EQ(tasks_of(bound.steps[0]), "0 gpu1 0 0x3 -\n1 gpu1 1 0x3 -\n2 gpu2 0 0x3 -\n");
}

/// GPUs of each task: "0 2|1 3", a bar between nodes.
std::string gpus_by_node(const Step& step) {
  std::string out;
  for (std::size_t i = 0; i < step.tasks.size(); ++i) {
    if (i > 0) out += step.tasks[i].node == step.tasks[i - 1].node ? " " : "|";
    out += step.tasks[i].gpus.list();
  }
  return out;
}

TEST_F(Explain, RanksThatBerthBindBinds) {
  struct Row {
    const char* directives;
    const char* line;
    const char* gpus;
  };
  // Ranks take cores of the two sockets in turn, and GPUs that are near to these.
  for (const Row& row : {
           Row{"-N2 --ntasks-per-node=4 --gres=gpu:4", "mpirun -np 8 berth bind ./a",
               "0 2 1 3|0 2 1 3"},
           Row{"-N2 --ntasks-per-node=4 --gpus-per-task=1", "mpirun berth bind ./a",
               "0 2 1 3|0 2 1 3"},
           Row{"-N2 --ntasks-per-node=2 --gres=gpu:4", "mpiexec -n 4 berth bind ./a",
               "0,1 2,3|0,1 2,3"},
           Row{"-N1 -n2 --gres=gpu:4", "mpirun berth bind --gpus-per-rank 1 ./a", "0 2"},
           Row{"-N1 -n2 --gres=gpu:4", "mpirun berth bind --gpus-per-rank=2 -- ./a", "0,1 2,3"},
           Row{"-N1 -n8 --gres=gpu:4", "mpirun berth bind ./a", "0 2 0 2 1 3 1 3"},
           Row{"-N1 -n4 --gres=gpu:4", "mpirun bash -c 'exec berth bind ./a'", "0 2 1 3"},
           Row{"-N1 -n4 --gres=gpu:4", "srun berth bind ./a", "0 2 1 3"},
           Row{"-N1 -n4 --gres=gpu:4", "torchrun --nproc_per_node=4 --no_python berth bind ./a",
               "0 2 1 3"},
       }) {
    const Explanation e =
        script(std::string("#SBATCH -t 10 ") + row.directives, row.line, {{"PATH", "/usr/bin"}});
    ASSERT_EQ(e.steps.size(), 1u) << row.line;
    EXPECT_EQ(gpus_by_node(e.steps[0]), row.gpus) << row.directives << ": " << row.line;
    for (const Task& task : e.steps[0].tasks) {
      EXPECT_EQ(task.cuda_visible_devices, task.gpus.list());
      EXPECT_EQ(task.env.at("CUDA_VISIBLE_DEVICES"), task.gpus.list());
    }
    for (const lint::Finding& finding : e.findings) {
      EXPECT_NE(finding.level, lint::Level::warning) << finding.code << ": " << finding.text;
    }
    EXPECT_TRUE(e.steps[0].notes.empty()) << e.steps[0].notes.front();
  }
  // Each has the cores that bind takes, too.
  const Explanation cores = script("#SBATCH -N1 -n2 --gres=gpu:4 -t 10", "mpirun berth bind ./a");
  EXPECT_EQ(tasks_of(cores.steps[0]), "0 gpu1 0 0x1 0,1\n1 gpu1 1 0x100 2,3\n");
  EXPECT_TRUE(cores.steps[0].tasks[0].bound);
  EXPECT_EQ(cores.steps[0].tasks[1].env.at("BERTH_TASK_CPUS"), "0x100");
}

TEST_F(Explain, SaysWhereBerthBindFails) {
  const Explanation e =
      script("#SBATCH -N1 -n4 --gres=gpu:4 -t 10", "mpirun berth bind --gpus-per-rank 2 ./a");
  EXPECT_THAT(e.steps[0].notes,
              ElementsAre("berth bind fails on gpu1: 4 ranks on this node with 2 GPUs each are 8 "
                          "GPUs, but the job has 4 here"));
  EXPECT_FALSE(e.fine());
  const Explanation wrong =
      script("#SBATCH -N1 -n4 --gres=gpu:4 -t 10", "mpirun berth bind --gpu 2 ./a");
  EXPECT_THAT(wrong.steps[0].notes, ElementsAre("berth bind fails on gpu1: unknown option --gpu"));
}

TEST_F(Explain, LaunchersWithoutSrunStayOnTheFirstNode) {
  const Explanation e = script("#SBATCH -N2 --ntasks-per-node=1 --gpus-per-node=4 -c8 -t 10",
                               "torchrun --nproc_per_node=4 t.py");
  ASSERT_EQ(e.steps.size(), 1u);
  EXPECT_EQ(e.steps[0].kind, StepKind::local);
  EXPECT_FALSE(e.steps[0].id);
  EXPECT_EQ(e.steps[0].tasks.size(), 4u);
  for (const Task& task : e.steps[0].tasks) EXPECT_EQ(task.node, "gpu1");
}

TEST_F(Explain, TorchrunUnderSrunMultiplies) {
  const Explanation e = script("#SBATCH -N2 --ntasks-per-node=4 --gpus-per-node=4 -t 10",
                               "srun torchrun --nnodes=2 --nproc_per_node=4 t.py");
  ASSERT_EQ(e.steps.size(), 1u);
  EXPECT_EQ(e.steps[0].tasks.size(), 8u);
  EXPECT_EQ(e.steps[0].processes, 32u);
}

TEST_F(Explain, AccelerateUnderSrun) {
  const char* job = "#SBATCH -N2 --ntasks-per-node=1 --gpus-per-node=4 -c8 -t 10";
  const Explanation told =
      script(job, "srun accelerate launch --num_machines 2 --num_processes 8 t.py");
  EXPECT_EQ(told.steps[0].processes, 8u);
  const Explanation unknown = script(job, "srun accelerate launch t.py");
  EXPECT_FALSE(unknown.steps[0].processes);
  EXPECT_THAT(unknown.steps[0].notes, ElementsAre(HasSubstr("configuration file")));
}

TEST_F(Explain, DeepspeedReachesTheHostsItIsToldOf) {
  const char* job = "#SBATCH -N2 --ntasks-per-node=1 --gpus-per-node=4 -c8 -t 10";
  const Explanation told = script(job, "deepspeed --hostfile=hosts t.py");
  EXPECT_THAT(told.steps[0].notes, ElementsAre(HasSubstr("by ssh")));
  const Explanation alone = script(job, "deepspeed t.py");
  EXPECT_THAT(alone.steps[0].notes, ElementsAre(HasSubstr("gpu1 only")));
}

TEST_F(Explain, HiddenLaunchersAreNamed) {
  const char* job = "#SBATCH -n4 -t 10";
  EXPECT_THAT(script(job, "parallel -j4 'srun -n1 app {}' ::: 1 2").notes,
              testing::Contains("line 3: srun inside parallel is not followed"));
  EXPECT_THAT(script(job, "xargs -n1 srun app < list").notes,
              testing::Contains("line 3: srun inside xargs is not followed"));
  EXPECT_THAT(script(job, "singularity exec i.sif srun app").notes,
              testing::Contains("line 3: srun inside singularity is not followed"));
  EXPECT_THAT(script(job, "xargs echo < list").notes, IsEmpty());
}

TEST_F(Explain, PartlyReadScriptsSaySo) {
  const Explanation e = script("#SBATCH -n1 -t 10", "echo a\nif true; then\n");
  EXPECT_TRUE(e.script_truncated);
  EXPECT_THAT(render_text(e, {}), HasSubstr("no launcher line found in the part of the script"));
  EXPECT_THAT(render_text(script("#SBATCH -n1 -t 10", "echo a\n"), {}),
              HasSubstr("no launcher line found: "));
}

TEST_F(Explain, TwoGpusAreBoth) {
  const Explanation e = script("#SBATCH -n2 -N1 --gres=gpu:2 -t 10", "srun a");
  EXPECT_THAT(e.asks, ElementsAre(HasSubstr("every task sees both")));
}

TEST_F(Explain, WhatIsInsideAnIfIsUncertain) {
  const Explanation e =
      script("#SBATCH -n4 -t 10", "if [ -f x ]; then srun -n9 a; else srun b; fi\nsrun c");
  ASSERT_EQ(e.steps.size(), 3u);
  EXPECT_TRUE(e.steps[0].uncertain);
  EXPECT_TRUE(e.steps[1].uncertain);
  EXPECT_FALSE(e.steps[2].uncertain);
  EXPECT_THAT(render_text(e, {}), HasSubstr("it may not run: line 3: inside an if"));
}

TEST_F(Explain, Refusals) {
  const Explanation never = command(request::Command::srun, {"--gres=gpu:9", "a"});
  EXPECT_FALSE(never.accepted);
  EXPECT_EQ(never.verdict, place::Verdict::never);
  ASSERT_TRUE(never.error);
  EXPECT_THAT(
      never.error->lines,
      ElementsAre("srun: error: Unable to allocate resources: Requested node configuration is "
                  "not available"));
  EXPECT_THAT(never.error->nearest_miss, HasSubstr("has 4 GPUs, asked 9"));
  EXPECT_THAT(render_text(never, {}),
              HasSubstr("it is refused, exit code 1:\n  srun: error: Unable"));

  const Explanation syntax = command(request::Command::srun, {"-N", "zero", "a"});
  EXPECT_FALSE(syntax.accepted);
  ASSERT_TRUE(syntax.error);
  EXPECT_FALSE(syntax.fine());
  EXPECT_THAT(syntax.steps, IsEmpty());
}

TEST_F(Explain, BusyClusters) {
  cluster::Usage usage(site_.cluster);
  const Explanation first = command(request::Command::srun, {"-N2", "--gres=gpu:3", "a"});
  ASSERT_TRUE(first.accepted);
  // Take three GPUs of each node, as that job would.
  request::Surroundings around;
  const auto parsed =
      request::parse(request::Command::srun,
                     std::vector<std::string>{"-N2", "--gres=gpu:3", "--mem=1G", "a"}, "", around);
  ASSERT_TRUE(parsed);
  usage.take(place::place_job(site_.cluster, usage, parsed->components[0]).allocation);
  Input input;
  input.command = request::Command::srun;
  input.words = {"--gres=gpu:2", "--mem=1G", "a"};
  input.usage = &usage;
  const Explanation later = run(input);
  EXPECT_TRUE(later.accepted);
  EXPECT_EQ(later.verdict, place::Verdict::later);
  EXPECT_EQ(later.pending_reason, "Resources");
  EXPECT_TRUE(later.assumes_idle);
  EXPECT_EQ(later.steps.size(), 1u);
  EXPECT_THAT(render_text(later, {}), HasSubstr("it fits this cluster, but not what is free now"));
  input.words = {"--gres=gpu:1", "--mem=1G", "a"};
  const Explanation now = run(input);
  EXPECT_EQ(now.verdict, place::Verdict::now);
  EXPECT_EQ(now.steps[0].tasks[0].gpus.list(), "3");
}

TEST_F(Explain, SallocRunsItsCommandHere) {
  const Explanation shell = command(request::Command::salloc, {"-N1"});
  EXPECT_TRUE(shell.accepted);
  EXPECT_THAT(shell.steps, IsEmpty());
  EXPECT_FALSE(shell.batch);
  EXPECT_FALSE(shell.env.contains("SLURM_PROCID"));
  const Explanation step =
      command(request::Command::salloc, {"-N2", "srun", "sh", "-c", "echo $X {1..2}"});
  ASSERT_EQ(step.steps.size(), 1u);
  EXPECT_EQ(step.steps[0].tasks.size(), 2u);
  EXPECT_EQ(step.steps[0].line, 0);
  EXPECT_EQ(step.steps[0].command, "srun sh -c 'echo $X {1..2}'");
}

TEST_F(Explain, HeterogeneousJobs) {
  const Explanation e =
      script("#SBATCH -n1 --gres=gpu:1 -t 10 -w gpu2\n#SBATCH hetjob\n#SBATCH -n2 -w gpu1",
             "srun a\nsrun --het-group=1 b\nsrun --het-group=0,1 c\nsrun --het-group=2 d");
  ASSERT_EQ(e.steps.size(), 4u);
  EXPECT_EQ(tasks_of(e.steps[0]), "0 gpu2 0 0x1 0\n");
  EXPECT_EQ(tasks_of(e.steps[1]), "0 gpu1 0 0x1 -\n1 gpu1 1 0x100 -\n");
  EXPECT_EQ(tasks_of(e.steps[2]), "0 gpu2 0 0x1 0\n1 gpu1 0 0x1 -\n2 gpu1 1 0x100 -\n");
  EXPECT_EQ(e.steps[2].id, 2u);
  EXPECT_EQ(e.steps[2].tasks[2].env.at("SLURM_NTASKS"), "3");
  EXPECT_EQ(e.steps[2].tasks[0].env.at("SLURM_JOB_NODELIST"), "gpu[1-2]");
  ASSERT_TRUE(e.steps[3].error);
  EXPECT_EQ(e.steps[3].error->text,
            "Requested het-group offset exceeds highest hetjob index (2 > 1)");
}

TEST_F(Explain, PartsOfAStepUseDifferentNodes) {
  const Explanation e = script("#SBATCH -N2 --ntasks-per-node=2 -t 10", "srun -n1 a : -n2 b");
  ASSERT_EQ(e.steps.size(), 1u);
  ASSERT_EQ(e.steps[0].tasks.size(), 3u);
  EXPECT_NE(e.steps[0].tasks[0].node, e.steps[0].tasks[1].node);
  EXPECT_EQ(e.steps[0].tasks[2].rank, 2u);
}

TEST_F(Explain, ArraysAreExplainedOnce) {
  const Explanation e =
      script("#SBATCH -n1 --array=3-6 -t 10 -o %a", "srun -n1 a $SLURM_ARRAY_TASK_ID");
  EXPECT_EQ(e.array_size, 4u);
  EXPECT_EQ(e.steps[0].command, "srun -n1 a 3");
  EXPECT_THAT(render_text(e, {}), HasSubstr("an array of 4 jobs"));
}

TEST_F(Explain, LongTablesAreShortened) {
  const Explanation e = script("#SBATCH -N2 -n128 -O -t 10", "srun a");
  ASSERT_EQ(e.steps[0].tasks.size(), 128u);
  EXPECT_THAT(render_text(e, {}), HasSubstr("52 of 128 ranks shown; --all shows every one"));
  EXPECT_THAT(render_text(e, {false, true}), Not(HasSubstr("…")));
}

TEST_F(Explain, LoopsBecomeOneTable) {
  const Explanation e =
      script("#SBATCH -N1 -n4 -t 10", "for i in 1 2 3; do srun -n1 --exact a $i & done\nwait");
  EXPECT_THAT(render_text(e, {}), HasSubstr("3 steps, side by side\n  step  rank  node"));
}

TEST_F(Explain, StepsAfterAWaitAreNotSideBySide) {
  const char* job = "#SBATCH -N1 -n8 --gres=gpu:4 --mem-per-cpu=1G -t 10";
  const std::string srun = "srun --exact -n1 --gpus=1 a $i &";
  const std::string by_if =
      render_text(script(job, "for i in 1 2 3 4 5 6; do\n" + srun +
                                  "\nif [ $i -eq 4 ]; then wait; fi\ndone\nwait"),
                  {});
  EXPECT_THAT(by_if, HasSubstr("6 steps, 4 at once, 2 after the wait\n"));
  EXPECT_THAT(by_if, HasSubstr("after the wait\n     5"));
  const std::string by_count = render_text(
      script(job, "for i in 1 2 3 4 5 6; do\n" + srun + "\n((++j % 4 == 0)) && wait\ndone\nwait"),
      {});
  EXPECT_THAT(by_count, HasSubstr("6 steps, 4 at once, 2 after the wait\n"));
  EXPECT_THAT(render_text(script(job, "for i in 1 2; do\n" + srun + "\nwait\ndone"), {}),
              HasSubstr("2 steps, one after another\n"));
}

TEST_F(Explain, AFailedLaunchIsARefusal) {
  const Explanation e = command(request::Command::srun, {"-n2", "--cpu-bind=map_cpu:9", "x"});
  EXPECT_FALSE(e.accepted);
  EXPECT_EQ(e.verdict, place::Verdict::never);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings[0].code, "B502");
  EXPECT_THAT(e.findings[0].text, HasSubstr("CPU binding outside of job step allocation"));
  EXPECT_THAT(render_text(e, {}), Not(HasSubstr("B502")));  // said above
}

TEST_F(Explain, JobsThatNeverStartAreNotFine) {
  const Explanation e = command(request::Command::srun, {"-n65", "x"});
  EXPECT_EQ(e.verdict, place::Verdict::pending);
  EXPECT_FALSE(e.fine());
}

TEST_F(Explain, RefusalsAreShownOnce) {
  const Explanation e = script("#SBATCH -N2 --gres=gpu:4 -w gpu1 -n0x", "srun a");
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings[0].code, "B299");
  EXPECT_THAT(render_text(e, {}), Not(HasSubstr("B299")));
}

TEST_F(Explain, WhatIsSaidOfSeveralLinesIsSaidOnce) {
  const Explanation e = script("#SBATCH -N1 -n4 -t 10",
                               "srun -n1 a &\nsrun -n1 b &\nsrun -n1 c &\nsrun -n1 d &\nwait");
  const auto& found = e.findings;
  ASSERT_EQ(std::ranges::count(found, "B503", &lint::Finding::code), 1);
  EXPECT_THAT(std::ranges::find(found, "B503", &lint::Finding::code)->lines, ElementsAre(4, 5, 6));
  EXPECT_THAT(render_text(e, {}), HasSubstr("warning B503, lines 4-6: "));
}

TEST_F(Explain, ArraysSayWhoHoldsThemBack) {
  const Explanation e = script("#SBATCH --array=1-8%4 -n1 -t 10 --mem=1G", "srun a");
  EXPECT_THAT(render_text(e, {}), HasSubstr("4 of the array's 8 elements would start at once, "
                                            "because of %4 in --array\n"));
}

TEST_F(Explain, ManyStepsAreBounded) {
  const Explanation e =
      script("#SBATCH -N1 -n4 -t 10", "for i in $(seq 5000); do srun -n1 a & done\nwait");
  EXPECT_EQ(e.steps.size(), kMaxSteps);
  EXPECT_THAT(e.notes, testing::Contains(HasSubstr("only the first 1000")));
  const Explanation wide =
      script("#SBATCH -N2 -n1000 -O -t 10", "for i in $(seq 50); do srun a; done");
  std::size_t listed = 0;
  std::uint64_t hidden = 0;
  for (const Step& step : wide.steps) {
    listed += step.tasks.size();
    hidden += step.tasks_not_listed;
  }
  EXPECT_EQ(listed, kMaxTasks);
  EXPECT_EQ(listed + hidden, 50'000u);
}

TEST_F(Explain, OtherLanguagesAreNotRead) {
  Input input;
  input.script = "#!/usr/bin/env python3\n#SBATCH -n2 -t 10\nimport os\n";
  input.words = {"job.py"};
  const Explanation e = run(input);
  EXPECT_TRUE(e.accepted);
  EXPECT_THAT(e.steps, IsEmpty());
  EXPECT_THAT(e.notes, testing::Contains(HasSubstr("python3")));
}

TEST_F(Explain, TerminalsAreSafe) {
  const Explanation e = script("#SBATCH -n1 -t 10", "srun $'\\033[31m' a");
  const std::string text = render_text(e, {});
  EXPECT_EQ(text.find('\033'), std::string::npos);
}

TEST(Processes, Mpirun) {
  const std::vector<std::uint32_t> slots = {2, 2};
  const auto layout = [&](std::vector<std::string> words) { return mpi_layout(words, slots); };
  EXPECT_THAT(layout({"mpirun", "a"}).node_of_rank, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(layout({"mpirun", "-np", "3", "a"}).node_of_rank, ElementsAre(0, 0, 1));
  EXPECT_THAT(layout({"mpirun", "--map-by", "node", "a"}).node_of_rank, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(layout({"mpirun", "-N", "1", "a"}).node_of_rank, ElementsAre(0, 1));
  EXPECT_THAT(layout({"mpirun", "-np", "5", "a"}).problem,
              HasSubstr("5 processes and finds 4 slots"));
  EXPECT_EQ(layout({"mpirun", "-np", "6", "--oversubscribe", "a"}).node_of_rank.size(), 6u);
  EXPECT_LE(layout({"mpirun", "-np", "999999", "--oversubscribe", "a"}).node_of_rank.size(),
            std::size_t{kMaxProcesses});
}

TEST(Processes, Local) {
  const auto count = [](std::vector<std::string> words) { return local_processes(words, 4); };
  EXPECT_EQ(count({"torchrun", "t.py"}), 1u);
  EXPECT_EQ(count({"torchrun", "--nproc-per-node=gpu", "t.py"}), 4u);
  EXPECT_EQ(count({"python", "-m", "torch.distributed.launch", "--nproc_per_node", "2", "t.py"}),
            2u);
  EXPECT_EQ(count({"deepspeed", "t.py"}), 4u);
  EXPECT_EQ(count({"deepspeed", "--num_gpus", "2", "t.py"}), 2u);
  EXPECT_EQ(count({"accelerate", "launch", "--num_processes=3", "t.py"}), 3u);
}

TEST(Words, Times) {
  EXPECT_EQ(time_in_words(10), "10 min");
  EXPECT_EQ(time_in_words(60), "1 h");
  EXPECT_EQ(time_in_words(95), "1 h 35 min");
  EXPECT_EQ(time_in_words(1440 + 120), "1 day 2 h");
  EXPECT_EQ(counted(1, "process"), "1 process");
  EXPECT_EQ(counted(2, "process"), "2 processes");
}

TEST(Tables, Align) {
  Table table;
  table.column("n", Align::right);
  table.column("ä");
  table.column("last");
  table.row({"10", "öö", "x"});
  table.row({"1", "b", ""});
  EXPECT_EQ(table.text("> "), ">  n  ä   last\n> 10  öö  x\n>  1  b\n");
  EXPECT_EQ(cut("äöü", 3), "äöü");
  EXPECT_EQ(cut("äöüß", 3), "äö…");
}

}  // namespace
}  // namespace berth::explain
