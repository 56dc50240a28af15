// What is read from scripts: commands in order, background, waits, what is uncertain.
#include "script/script.h"

#include <gtest/gtest.h>

#include <chrono>

namespace berth::script {
namespace {

using Variables = std::map<std::string, std::string>;

const Variables kBatch = {{"SLURM_JOB_NODELIST", "gpu[1-2]"},
                          {"SLURM_NNODES", "2"},
                          {"SLURM_NTASKS", "4"},
                          {"SLURM_JOB_ID", "42"},
                          {"SLURMD_NODENAME", "gpu1"},
                          {"SLURM_CPUS_PER_TASK", "3"}};

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    out +=
        word.find_first_of(" \n") == std::string::npos && !word.empty() ? word : "<" + word + ">";
  }
  return out;
}

/// One line an event; only launchers and waits: "3: srun -n1 a &2 ?".
std::string summary(const Script& script, bool all = false) {
  std::string out;
  for (const Event& event : script.events) {
    const std::string line = std::to_string(event.line) + ": ";
    if (event.kind == Event::Kind::wait_all) {
      out += line + "wait\n";
    } else if (event.kind == Event::Kind::wait_for) {
      out += line + "wait for";
      for (const std::size_t chain : event.chains) out += " " + std::to_string(chain);
      out += "\n";
    } else if (event.kind == Event::Kind::run) {
      const Command& command = script.commands[event.command];
      if (!all && command.launcher == Launcher::none) continue;
      out += line + joined(command.words);
      if (command.background) out += " &";
      if (command.chain > 0) out += std::to_string(command.chain);
      if (command.uncertain) out += command.conditional ? " ??" : " ?";
      out += "\n";
    }
  }
  return out;
}

std::string read(std::string_view text, bool all = false,
                 const std::vector<std::string>& arguments = {}) {
  return summary(read_script(text, kBatch, arguments), all);
}

struct Row {
  const char* name;
  const char* script;
  const char* events;
};

class ReadScript : public testing::TestWithParam<Row> {};

TEST_P(ReadScript, Events) {
  EXPECT_EQ(read(GetParam().script), GetParam().events);
}

const Row kRows[] = {
    {"plain", "#!/bin/bash\n#SBATCH -N2\n\nsrun python train.py\n", "4: srun python train.py\n"},
    {"continuation", "srun \\\n  -n 4 \\\n  python x.py\n", "1: srun -n 4 python x.py\n"},
    {"quotes", "srun sh -c 'a \"b\" $X' \"c d\" e\\ f\n",
     "1: srun sh -c <a \"b\" $X> <c d> <e f>\n"},
    {"comment", "srun a # srun b\n#srun c\n", "1: srun a\n"},
    {"separators", "srun a; srun b && srun c\n", "1: srun a\n1: srun b\n1: srun c\n"},
    {"crlf", "srun a\r\nsrun b\r\n", "1: srun a\n2: srun b\n"},
    {"background", "srun a &\nsrun b &\nwait\n", "1: srun a &1\n2: srun b &2\n3: wait\n"},
    {"path and prefixes",
     "/opt/slurm/bin/srun a\ntime srun b\nenv X=1 srun c\ntimeout 10 srun d\nnumactl -N 0 mpirun "
     "e\n"
     "nohup srun f &\nexec srun g\nsrun never\n",
     "1: /opt/slurm/bin/srun a\n2: srun b\n3: env X=1 srun c\n4: timeout 10 srun d\n"
     "5: numactl -N 0 mpirun e\n6: nohup srun f &1\n7: exec srun g\n"},
    {"the corpus' step function",
     "step() { n=$1; shift; srun \"$@\" sh -c \"echo S >>$W/log; p step$n; sleep ${D-1.5}; echo "
     "E\" & "
     "sleep 0.25; }\n"
     "depth() { awk '/S/{d++; if(d>m)m=d} /E/{d--} END{print \"max:\", m+0}' $W/log; rm -f $W/log; "
     "}\n"
     "for i in $(seq 2); do step $i -n1 --exact; done; wait; depth\n",
     "1: srun -n1 --exact sh -c <echo S >>/log; p step1; sleep 1.5; echo E> &1\n"
     "1: srun -n1 --exact sh -c <echo S >>/log; p step2; sleep 1.5; echo E> &2\n"
     "3: wait\n"},
    {"for with options in a variable",
     "for o in '-n3' '-w gpu9' '-n2 -c2'; do echo \"== $o\"; timeout 8 srun $o p; echo rc=$?; "
     "done\n",
     "1: timeout 8 srun -n3 p\n1: timeout 8 srun -w gpu9 p\n1: timeout 8 srun -n2 -c2 p\n"},
    {"arithmetic for", "for ((i=0;i<3;i++)); do srun -n1 job $i & done\nwait",
     "1: srun -n1 job 0 &1\n1: srun -n1 job 1 &2\n1: srun -n1 job 2 &3\n2: wait\n"},
    {"brace range", "for i in {1..3}; do srun job $((i*2)); done",
     "1: srun job 2\n1: srun job 4\n1: srun job 6\n"},
    {"counting while", "i=0\nwhile [ $i -lt 2 ]; do\n  srun job $i\n  i=$((i+1))\ndone\n",
     "3: srun job 0\n3: srun job 1\n"},
    {"while read", "while read f; do srun job $f; done < list\n", "1: srun job $f ??\n"},
    {"while true", "while true; do srun a; done\n", "1: srun a\n"},
    {"until false", "until false; do srun a; done\n", "1: srun a\n"},
    {"if unknown",
     "if [ -f x ]; then\n srun a\nelif grep -q y z; then srun b\nelse\n srun c\nfi\nsrun d\n",
     "2: srun a ??\n3: srun b ??\n5: srun c ??\n7: srun d\n"},
    {"if known",
     "if [ \"$SLURM_NNODES\" -gt 1 ]; then srun a; else srun b; fi\n"
     "if [[ $SLURM_NTASKS == 4 && -n $SLURM_JOB_ID ]]; then srun c; fi\n",
     "1: srun a\n2: srun c\n"},
    {"branches disagree", "if [ -f x ]; then N=1; M=2; else N=3; M=2; fi\nsrun -n$N a $M\n",
     "2: srun -n$N a 2 ?\n"},
    {"exit in a branch is not the end", "if [ ! -f data ]; then echo no; exit 1; fi\nsrun a\n",
     "2: srun a\n"},
    {"exit is the end", "srun a\nexit 0\nsrun b\n", "1: srun a\n"},
    {"case known", "case $SLURM_NNODES in 1) srun a;; 2|3) srun b;; *) srun c;; esac\n",
     "1: srun b\n"},
    {"case unknown", "x=$(date)\ncase $x in\n a) srun a;;\n *) srun c;;\nesac\n",
     "3: srun a ??\n4: srun c ??\n"},
    {"or", "srun a || srun b\n", "1: srun a\n1: srun b ??\n"},
    {"and after a test", "[ -d d ] && srun a\n[ -n \"$SLURM_JOB_ID\" ] && srun b\n",
     "1: srun a ??\n2: srun b\n"},
    {"subshell in the background", "(srun a; srun b) &\n{ srun c; srun d; } &\nwait\n",
     "1: srun a &1\n1: srun b &1\n2: srun c &2\n2: srun d &2\n3: wait\n"},
    {"pipeline", "srun a | tee log\nsrun b 2>&1 | tee -a log &\nwait\n",
     "1: srun a1\n1: wait for 1\n2: srun b &3\n2: wait for 3\n3: wait\n"},
    {"wait for a job", "srun a &\nA=$!\nsrun b &\npids+=($!)\nwait $A\nwait ${pids[@]}\nwait -n\n",
     "1: srun a &1\n3: srun b &2\n5: wait for 1\n6: wait for 2\n7: wait for\n"},
    {"redirections", "srun a >out 2>err <in &>both 3>&1\n", "1: srun a\n"},
    {"here-document",
     "cat > x.py <<'EOF'\nit's `not` shell $(\nsrun no\nEOF\nsrun yes <<-E && srun too\n\tsrun "
     "no\n\tE\n",
     "5: srun yes\n5: srun too\n"},
    {"variables", "A=1\nB=\"-n $A\"\nsrun $B \"$B\" ${C:-c} ${A:+set} ${D-d} \"${E}\" ${F}\n",
     "3: srun -n 1 <-n 1> c set d <>\n"},
    {"string operators",
     "f=/data/run.tar.gz\nsrun ${f##*/} ${f%.*} ${f%%.*} ${f/run/x} ${#f} ${f:6:3} ${A^^}\n",
     "2: srun run.tar.gz /data/run.tar /data/run /data/x.tar.gz 16 run\n"},
    {"arrays",
     "a=(x 'y z' $SLURM_NNODES)\na+=(w)\nsrun \"${a[@]}\" ${#a[@]} ${a[0]} ${a[-1]}\nsrun "
     "\"${none[@]}\" b\n",
     "3: srun x <y z> 2 w 4 x w\n4: srun b\n"},
    {"local and return",
     "f() { local n=$1; if [ $n -gt 1 ]; then return; fi; srun job $n; }\nn=7\nf 1\nf 2\nsrun $n\n",
     "1: srun job 1\n5: srun 7\n"},
    {"function keyword", "function go {\n  srun -n$1 a\n}\ngo 3\n", "2: srun -n3 a\n"},
    {"break and continue",
     "for i in 1 2 3 4; do [ $i = 2 ] && continue; [ $i = 4 ] && break; srun $i; done\n",
     "1: srun 1\n1: srun 3\n"},
    {"subshell keeps its variables", "N=1\n(N=2; srun $N)\nsrun $N\n", "2: srun 2\n3: srun 1\n"},
    {"unknown words stay as written", "srun -n$(nproc) a `date` $RANDOM\n",
     "1: srun -n$(nproc) a `date` $RANDOM ?\n"},
    {"unset after source", "srun a $X\nsource env.sh\nsrun b $X ${Y:-2}\n",
     "1: srun a\n3: srun b $X 2 ?\n"},
    {"head node",
     "head=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\nsrun -w \"$head\" a\n"
     "nodes=($(scontrol show hostnames $SLURM_JOB_NODELIST))\nsrun -w ${nodes[1]} b ${#nodes[@]}\n"
     "mapfile -t m < <(scontrol show hostnames)\nsrun ${m[0]} $(hostname)\n",
     "2: srun -w gpu1 a\n4: srun -w gpu2 b 2\n6: srun gpu1 gpu1\n"},
    {"step inside a substitution",
     "ip=$(srun -N1 -n1 -w gpu1 hostname --ip-address)\nsrun python --ip $ip\n",
     "1: srun -N1 -n1 -w gpu1 hostname --ip-address\n2: srun python --ip $ip ?\n"},
    {"command in a variable",
     "CMD=\"srun -n 2 python x.py\"\n$CMD --a\neval $CMD\nbash -c \"$CMD -b\"\n",
     "2: srun -n 2 python x.py --a\n3: srun -n 2 python x.py\n4: srun -n 2 python x.py -b\n"},
    {"pytorch",
     "nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )\n"
     "nodes_array=($nodes)\n"
     "head_node=${nodes_array[0]}\n"
     "head_node_ip=$(srun --nodes=1 --ntasks=1 -w \"$head_node\" hostname --ip-address)\n"
     "export LOGLEVEL=INFO\n"
     "srun torchrun \\\n--nnodes 2 \\\n--nproc_per_node 1 \\\n--rdzv_endpoint $head_node_ip:29500 "
     "\\\n"
     "multinode.py 50 10\n",
     "4: srun --nodes=1 --ntasks=1 -w gpu1 hostname --ip-address\n"
     "6: srun torchrun --nnodes 2 --nproc_per_node 1 --rdzv_endpoint $head_node_ip:29500 "
     "multinode.py 50 10 ?\n"},
    {"launcher variable",
     "export MASTER_PORT=$((12000 + SLURM_JOB_ID))\n"
     "LAUNCHER=\"python -u -m torch.distributed.run --nproc_per_node 4 --master_port "
     "$MASTER_PORT\"\n"
     "srun --jobid $SLURM_JOBID bash -c \"$LAUNCHER train.py\" 2>&1 | tee log.txt\n",
     "3: srun --jobid bash -c <python -u -m torch.distributed.run --nproc_per_node 4 --master_port "
     "12042 "
     "train.py>1\n3: wait for 1\n"},
    {"launchers",
     "mpirun -np 4 a\nmpiexec.hydra a\norterun a\ntorchrun b\npython -m torch.distributed.launch "
     "c\n"
     "python3.11 -u -m torch.distributed.run d\ndeepspeed e\naccelerate launch f\naccelerate "
     "config\n"
     "python x.py\n",
     "1: mpirun -np 4 a\n2: mpiexec.hydra a\n3: orterun a\n4: torchrun b\n"
     "5: python -m torch.distributed.launch c\n6: python3.11 -u -m torch.distributed.run d\n"
     "7: deepspeed e\n8: accelerate launch f\n"},
    {"throttle",
     "for f in a b; do\n  srun job $f &\n  while (( $(jobs -r | wc -l) >= 4 )); do wait -n; "
     "done\ndone\nwait\n",
     "2: srun job a &1\n3: wait for 2\n3: wait for\n2: srun job b &3\n3: wait for 4\n3: wait "
     "for\n5: wait\n"},
    {"glob in for", "for f in *.yaml; do srun job $f; done\n", "1: srun job $f ??\n"},
    {"set positional", "set -- x y\nset -euo pipefail\nsrun $# $2\n", "3: srun 2 y\n"},
};

INSTANTIATE_TEST_SUITE_P(Table, ReadScript, testing::ValuesIn(kRows), [](const auto& row) {
  std::string name = row.param.name;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
});

TEST(ReadScriptDetails, Arguments) {
  EXPECT_EQ(read("for a; do srun $a; done\nsrun \"$@\" $# $1", false, {"x", "y z"}),
            "1: srun x\n1: srun y z\n2: srun x <y z> 2 x\n");
}

TEST(ReadScriptDetails, LauncherPosition) {
  const Script s = read_script(
      "X=1 env A=b numactl --cpunodebind=0 python -m torch.distributed.run --k v t.py", {}, {});
  ASSERT_EQ(s.commands.size(), 1u);
  const Command& c = s.commands[0];
  EXPECT_EQ(c.launcher, Launcher::torch_distributed);
  EXPECT_EQ(c.words[c.launcher_at], "python");
  EXPECT_EQ(c.words[c.arguments_at], "--k");
  EXPECT_EQ(c.assignments, (std::map<std::string, std::string>{{"X", "1"}, {"A", "b"}}));
}

TEST(ReadScriptDetails, EnvironmentChanges) {
  const Script s = read_script(
      "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK\nSLURM_NTASKS=2\nPRIVATE=1\nsrun a\n"
      "unset SLURM_NTASKS\nexport PRIVATE\nsrun b\n",
      kBatch, {});
  std::vector<const Command*> sruns;
  for (const Command& c : s.commands) {
    if (c.launcher == Launcher::srun) sruns.push_back(&c);
  }
  ASSERT_EQ(sruns.size(), 2u);
  EXPECT_EQ(*sruns[0]->environment, (Changes{{"SRUN_CPUS_PER_TASK", "3"}, {"SLURM_NTASKS", "2"}}));
  EXPECT_EQ(
      *sruns[1]->environment,
      (Changes{{"SRUN_CPUS_PER_TASK", "3"}, {"SLURM_NTASKS", std::nullopt}, {"PRIVATE", "1"}}));
}

TEST(ReadScriptDetails, TextAndCallers) {
  const Script s = read_script("go() {\n  srun \\\n    -n1 \"$@\" > log\n}\n\ngo x\n", {}, {});
  ASSERT_EQ(s.commands.size(), 1u);
  EXPECT_EQ(s.commands[0].text, "srun -n1 \"$@\" > log");
  EXPECT_EQ(s.commands[0].line, 2);
  EXPECT_EQ(s.commands[0].called_from, 6);
}

TEST(ReadScriptDetails, AssignmentsAreListed) {
  const Script s = read_script("export CUDA_VISIBLE_DEVICES=0\nA=1\nB=2 ./x\n", {}, {});
  ASSERT_EQ(s.commands.size(), 3u);
  EXPECT_EQ(s.commands[0].assignments.at("CUDA_VISIBLE_DEVICES"), "0");
  EXPECT_TRUE(s.commands[1].words.empty());
  EXPECT_EQ(s.commands[2].assignments.at("B"), "2");
}

TEST(ReadScriptDetails, OtherLanguages) {
  for (const char* line :
       {"#!/usr/bin/env python3\nsrun a\n", "#! /usr/bin/perl -w\nsrun a\n",
        "#!/usr/bin/env -S julia --project\nsrun a\n", "#!/bin/tcsh\nsrun a\n"}) {
    const Script s = read_script(line, {}, {});
    EXPECT_FALSE(s.is_shell) << line;
    EXPECT_TRUE(s.commands.empty());
    EXPECT_EQ(s.notes.size(), 1u);
  }
  for (const char* line : {"#!/bin/sh\nsrun a\n", "#!/usr/bin/env bash\nsrun a\n",
                           "#!/bin/bash -l\nsrun a", "#!/bin/bash\r\nsrun a"}) {
    const Script s = read_script(line, {}, {});
    EXPECT_TRUE(s.is_shell) << line;
    EXPECT_EQ(s.commands.size(), 1u) << line;
  }
}

TEST(ReadScriptDetails, SyntaxErrorsKeepWhatIsBefore) {
  struct Bad {
    const char* text;
    int line;
    std::size_t commands;
  };
  for (const Bad& bad :
       {Bad{"srun a\nif true; then\nsrun b\n", 4, 1}, Bad{"srun a\necho 'x\n", 2, 1},
        Bad{"srun a\n)\n", 2, 1}, Bad{"srun a\ndone\n", 2, 1}, Bad{"srun a\nsrun $(b\n", 2, 1},
        Bad{"for 1 in a; do b; done", 1, 0}}) {
    const Script s = read_script(bad.text, {}, {});
    ASSERT_TRUE(s.syntax_error) << bad.text;
    EXPECT_EQ(s.syntax_error->line, bad.line) << bad.text << s.syntax_error->what;
    EXPECT_EQ(s.commands.size(), bad.commands) << bad.text;
  }
}

TEST(ReadScript, SaysWhyACommandMayNotRun) {
  const Script s = read_script("until test -f x; do srun a; done\n", {}, {});
  ASSERT_EQ(s.commands.size(), 1u);
  EXPECT_EQ(s.commands[0].why_uncertain, "line 1: inside an until loop");
}

/// Texts made to cost much: each must end soon and within the limits.
TEST(ReadScriptLimits, HostileScripts) {
  std::string nested_if;
  for (int i = 0; i < 1000; ++i) nested_if += "if a; then ";
  std::string doubling = "a=xxxxxxxx\n";
  for (int i = 0; i < 60; ++i) doubling += "a=$a$a\n";
  std::string fibonacci = "f() { f $1; f $1; }\nf x\n";
  std::string many(2'000'000, ';');
  std::string words = "srun";
  for (int i = 0; i < 300'000; ++i) words += " a";
  std::string exports;
  for (int i = 0; i < 9000; ++i) {
    exports += "export V" + std::to_string(i) + "=" + std::string(50, 'x') + "\nsrun a\n";
  }
  std::string arithmetic = "x=$((" + std::string(100'000, '(') + "1))\n";
  std::string dollars;
  for (int i = 0; i < 100'000; ++i) dollars += "$(";
  std::string heres;
  for (int i = 0; i < 100'000; ++i) heres += "$(<<a ";
  std::string backs;
  for (int i = 0; i < 100'000; ++i) backs += "((a);#'\n)";
  const std::string scripts[] = {
      "for i in $(seq 1000000); do srun a; done",
      "for ((;;)); do for ((;;)); do srun a; done; done",
      "i=0; while [ $i -lt 100000000 ]; do i=$((i+1)); done; srun a",
      "for i in {1..1000000000}; do srun a; done",
      "for i in {1..100}{1..100}{1..100}{1..100}; do srun a; done",
      "x={a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}; "
      "srun $x",
      "f() { f; }; f",
      "f() { f & }; f",
      "eval 'eval \"eval srun a\"'; x='eval $x'; eval $x",
      nested_if,
      doubling,
      fibonacci,
      many,
      "a" + std::string(1'000'000, '&'),
      words,
      exports,
      arithmetic,
      dollars,
      heres,
      backs,
      std::string(1'000'000, '('),
      std::string(1'000'000, '{'),
      std::string(1'000'000, '`'),
      std::string("srun a\0b", 8),
      std::string(5'000'000, 'a'),
      "x=" + std::string(4000, 'a') + "; for i in $(seq 10000); do y=${x%%b*}; done",
  };
  for (const std::string& text : scripts) {
    const auto begin = std::chrono::steady_clock::now();
    const Script s = read_script(text, {}, {});
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_LE(s.commands.size(), kMaxCommands);
    EXPECT_LE(s.notes.size(), 200u);
    EXPECT_LT(took, std::chrono::seconds(20)) << text.substr(0, 60);
  }
}

TEST(ReadScriptLimits, SaysWhenItStops) {
  const Script s = read_script("for i in $(seq 20000); do srun a; done", {}, {});
  EXPECT_TRUE(s.truncated);
  EXPECT_EQ(s.commands.size(), kMaxCommands);
  EXPECT_FALSE(s.notes.empty());
}

}  // namespace
}  // namespace berth::script
