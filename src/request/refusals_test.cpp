// What is refused, in which words and with which exit code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "request/parse_testing.h"

namespace berth::request {
namespace {

using testing::outcome;

struct RefusedCase {
  const char* line;
  const char* expected;
};

void PrintTo(const RefusedCase& one, std::ostream* out) {
  *out << one.line;
}

class Refusal : public ::testing::TestWithParam<RefusedCase> {};

TEST_P(Refusal, SaysWhatSlurmSays) {
  EXPECT_EQ(outcome(GetParam().line), GetParam().expected);
}

// Recorded from Slurm 26.11.
constexpr RefusedCase kRecorded[] = {
    {"sbatch -d foo:1 --wrap true",
     "1: sbatch: error: Batch job submission failed: Job dependency problem"},
    {"sbatch -d afterok --wrap true",
     "1: sbatch: error: Batch job submission failed: Job dependency problem"},
    {"sbatch -d afterok:abc --wrap true",
     "1: sbatch: error: Batch job submission failed: Job dependency problem"},
    {"sbatch --begin=someday --wrap true",
     "255: Invalid time specification (pos=0): someday | "
     "sbatch: error: Invalid --begin specification"},
    {"sbatch --deadline=now+1 -t 10 --wrap true",
     "1: sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or "
     "exceeds some limit)"},
    {"srun -n2 -c2 --cpus-per-gpu=2 --gpus=2 true",
     "1: srun: fatal: --cpus-per-task, --tres-per-task=cpu:#, and --cpus-per-gpu are mutually "
     "exclusive"},
    {"srun -n1 --gres=gpu:1 --gpu-bind=foo true",
     "255: srun: error: Invalid --gpu-bind argument: foo"},
    {"srun -n1 --gpu-bind=slots true", "255: srun: error: Invalid --gpu-bind argument: slots"},
    {"srun -n1 --gpu-bind=v,map_gpu:1,0,3,2 true",
     "255: srun: error: Invalid --gpu-bind argument: v,map_gpu:1,0,3,2"},
    {"srun --gpus=foo:bar true", "1: srun: error: Invalid Trackable RESource (TRES) specification"},
    {"srun --gres=gpu:a100:two true",
     "1: srun: error: Invalid Trackable RESource (TRES) specification"},
    {"sbatch --gres=gpu:1:tesla:v100 j.sh",
     "1: sbatch: error: Invalid Trackable RESource (TRES) specification"},
    {"sbatch -M other --wrap true",
     "1: sbatch: error: 'other' can't be reached now, or it is an invalid entry for --cluster.  "
     "Use 'sacctmgr list clusters' to see available clusters. | "
     "sbatch: error: Problem talking to database"},
    {"srun --exclusive=foo true", "255: srun: error: Invalid --exclusive specification"},
    {"srun --hint=foo true",
     "1: srun: error: unrecognized --hint argument \"foo\", see --hint=help"},
    {"sbatch --mail-type=FOO --wrap true", "255: sbatch: error: Invalid --mail-type specification"},
    {"srun --mpi=foo true",
     "1: srun: error: Invalid MPI type 'foo', --mpi=list for acceptable types | "
     "srun: error: MPI: Cannot create context for mpi/foo | "
     "srun: error: MPI: Unable to load any plugin"},
    {"sbatch --nosuch --wrap true",
     "255: sbatch: unrecognized option '--nosuch' | Try \"sbatch --help\" for more information"},
    {"sbatch --signal=FOO@10 --wrap true", "255: sbatch: error: Invalid --signal specification"},
    {"sbatch --uid=root --wrap true", "255: sbatch: error: --uid only permitted by root user"},
    {"srun --mem=1G --mem-per-cpu=1G true",
     "1: srun: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."},
    {"srun -n2 --ntasks-per-gpu=1 --gpus-per-task=1 true",
     "1: srun: fatal: --gpus-per-task is mutually exclusive with --ntasks-per-gpu and "
     "SLURM_NTASKS_PER_GPU"},
    {"srun --ntasks-per-gpu=1 --ntasks-per-node=1 --gpus=1 true",
     "1: srun: fatal: --ntasks-per-node is mutually exclusive with --ntasks-per-gpu and "
     "SLURM_NTASKS_PER_GPU"},
    {"srun -n2 --gres=shard:6 --gres-flags=one-task-per-sharing true",
     "255: srun: error: In order to use --gres-flags=one-task-per-sharing you must also have "
     "SelectTypeParameters=MULTIPLE_SHARING_GRES_PJ in your slurm.conf"},
    {"srun -n -1 true", "1: srun: error: Invalid numeric value \"-1\" for --ntasks."},
    {"srun -n2 --tres-per-task=gpu:1 true",
     "1: srun: error: Unable to allocate resources: Invalid Trackable RESource (TRES) "
     "specification"},
    {"srun -n2 -c2 --tres-per-task=cpu:4 true",
     "1: srun: fatal: You can not have --tres-per-task=cpu= and --cpus-per-task please use one or "
     "the other"},
    {"sbatch --wrap hostname j.sh",
     "1: sbatch: error: Script arguments not permitted with --wrap option"},
    {"srun --mem=1G", "1: srun: fatal: No command given to execute."},
    {"srun --gpus-per-task=1 true",
     "1: srun: error: Failed to validate job spec. --gpus-per-task or --tres-per-task used without "
     "either --gpus or -n/--ntasks is not allowed. | "
     "srun: error: Invalid generic resource (gres) specification"},
};
INSTANTIATE_TEST_SUITE_P(Recorded, Refusal, ::testing::ValuesIn(kRecorded));

constexpr RefusedCase kWords[] = {
    {"srun --launcher=torch --gpu-bind=single:1 true",
     "1: srun: error: --launcher=torch and --gpu-bind both say which GPUs a task sees"},
    {"srun --launcher=mpi --tres-bind=gres/gpu:closest true",
     "1: srun: error: --launcher=mpi and --tres-bind both say which GPUs a task sees"},
    {"srun -y true", "255: srun: invalid option -- 'y' | Try \"srun --help\" for more information"},
    {"srun -n",
     "255: srun: option requires an argument -- 'n' | "
     "Try \"srun --help\" for more information"},
    {"srun --ntasks",
     "255: srun: option '--ntasks' requires an argument | "
     "Try \"srun --help\" for more information"},
    {"srun --exact=1 true",
     "255: srun: option '--exact' doesn't allow an argument | "
     "Try \"srun --help\" for more information"},
    {"srun --mem-per=1 true",
     "255: srun: option '--mem-per=1' is ambiguous; possibilities: '--mem-per-cpu' "
     "'--mem-per-gpu' | Try \"srun --help\" for more information"},
    {"sbatch --pty --wrap x",
     "255: sbatch: unrecognized option '--pty' | "
     "Try \"sbatch --help\" for more information"},
    {"salloc -b now",
     "255: salloc: invalid option -- 'b' | "
     "Try \"salloc --help\" for more information"},
};
INSTANTIATE_TEST_SUITE_P(Words, Refusal, ::testing::ValuesIn(kWords));

constexpr RefusedCase kNumbers[] = {
    {"srun -n0 true", "1: srun: error: Invalid numeric value \"0\" for --ntasks."},
    {"srun -n 4294967296 true",
     "1: srun: error: Invalid numeric value \"4294967296\" for --ntasks."},
    {"srun -n '' true", "1: srun: error: Invalid numeric value \"\" for --ntasks."},
    {"srun -c two true", "1: srun: error: Invalid numeric value \"two\" for --cpus-per-task."},
    {"srun --ntasks-per-node=x true",
     "1: srun: error: Invalid numeric value \"x\" for --ntasks-per-node."},
    {"srun --tasks-per-node=0 true",
     "1: srun: error: Invalid numeric value \"0\" for --ntasks-per-node."},
    {"srun --cpus-per-gpu=-2 true",
     "1: srun: error: Invalid numeric value \"-2\" for --cpus-per-gpu."},
    {"srun --jobid=abc true", "1: srun: error: Invalid numeric value \"abc\" for --jobid."},
    {"srun -W soon true", "1: srun: error: Invalid numeric value \"soon\" for --wait."},
    {"srun -N two true",
     "255: srun: error: \"two\" is not a valid node count | "
     "srun: error: Invalid --nodes specification"},
    {"srun -N 4-2 true",
     "255: srun: error: Invalid node count range: at most 2 is below at least 4 | "
     "srun: error: Invalid --nodes specification"},
    {"srun -N 4294967296 true",
     "255: srun: error: \"4294967296\" is not a valid node count | "
     "srun: error: Invalid --nodes specification"},
    {"srun -N0 true", "1: srun: error: invalid number of nodes (-N 0-0)"},
};
INSTANTIATE_TEST_SUITE_P(Numbers, Refusal, ::testing::ValuesIn(kNumbers));

constexpr RefusedCase kValues[] = {
    {"srun --mem=lots true", "255: srun: error: Invalid --mem specification"},
    {"srun --mem=1.5G true", "255: srun: error: Invalid --mem specification"},
    {"srun --mem-per-cpu=-1 true", "255: srun: error: Invalid --mem-per-cpu specification"},
    {"srun --mem-per-gpu=x true", "255: srun: error: Invalid --mem-per-gpu specification"},
    {"srun --tmp=x true", "255: srun: error: Invalid --tmp specification"},
    {"srun -t 1h true", "255: srun: error: Invalid --time specification"},
    {"srun --time-min=x true", "255: srun: error: Invalid --time-min specification"},
    {"sbatch --deadline=never --wrap x",
     "255: Invalid time specification (pos=0): never | "
     "sbatch: error: Invalid --deadline specification"},
    {"srun -mpi=pmi2 true", "255: srun: error: Invalid --distribution specification"},
    {"srun -m plane true", "255: srun: error: Invalid --distribution specification"},
    {"srun -m plane=0 true", "255: srun: error: Invalid --distribution specification"},
    {"srun -m plane=2:block true", "255: srun: error: Invalid --distribution specification"},
    {"srun -m block:block:block:block true",
     "255: srun: error: Invalid --distribution specification"},
    {"srun -m block,tight true", "255: srun: error: Invalid --distribution specification"},
    {"srun -B 2:x true", "255: srun: error: Invalid --extra-node-info specification"},
    {"srun -B 1:2:3:4 true", "255: srun: error: Invalid --extra-node-info specification"},
    {"srun -w gpu[1- true", "255: srun: error: Invalid --nodelist specification"},
    {"srun -w ./nodes true", "255: srun: error: Invalid --nodelist specification"},
    {"srun -F nodes true", "255: srun: error: Invalid --nodefile specification"},
    {"srun -x gpu[2-1] true", "255: srun: error: Invalid --exclude specification"},
    {"srun --cpu-bind=foo true",
     "255: srun: error: unrecognized --cpu-bind argument \"foo\" | "
     "srun: error: Invalid --cpu-bind specification"},
    {"srun --cpu-bind=map_cpu true",
     "255: srun: error: unrecognized --cpu-bind argument \"map_cpu\" | "
     "srun: error: Invalid --cpu-bind specification"},
    {"srun --cpu-bind=mask_cpu:zz true",
     "255: srun: error: unrecognized --cpu-bind argument \"mask_cpu:zz\" | "
     "srun: error: Invalid --cpu-bind specification"},
    {"srun --mem-bind=near true",
     "255: srun: error: unrecognized --mem-bind argument \"near\" | "
     "srun: error: Invalid --mem-bind specification"},
    {"srun --gres-flags=tight true", "255: srun: error: Invalid --gres-flags specification"},
    {"srun --gres-flags=allow-task-sharing,no-task-sharing true",
     "255: srun: error: Invalid --gres-flags specification"},
    {"sbatch --gres-flags=no-task-sharing --wrap x",
     "255: sbatch: error: Invalid --gres-flags specification"},
    {"sbatch --gres-flags=allow-task-sharing --wrap x",
     "255: sbatch: error: Invalid --gres-flags specification"},
    {"srun --het-group=x true", "255: srun: error: Invalid --het-group specification"},
    {"srun --het-group=0-99999 true", "255: srun: error: Invalid --het-group specification"},
    {"srun --kill-on-bad-exit=2 true",
     "255: srun: error: Invalid --kill-on-bad-exit specification"},
    {"sbatch --open-mode=x --wrap x", "255: sbatch: error: Invalid --open-mode specification"},
    {"sbatch --nice=low --wrap x", "255: sbatch: error: Invalid --nice specification"},
    {"sbatch --signal=B:USR1@x --wrap x", "255: sbatch: error: Invalid --signal specification"},
    {"srun --signal=B:USR1 true", "255: srun: error: Invalid --signal specification"},
    {"sbatch --switches=x --wrap x", "255: sbatch: error: Invalid --switches specification"},
    {"sbatch --propagate=ALLES --wrap x", "255: sbatch: error: Invalid --propagate specification"},
    {"sbatch --profile=x --wrap x", "255: sbatch: error: Invalid --profile specification"},
    {"sbatch --acctg-freq=x --wrap x", "255: sbatch: error: Invalid --acctg-freq specification"},
    {"sbatch --kill-on-invalid-dep=maybe --wrap x",
     "255: sbatch: error: Invalid --kill-on-invalid-dep specification"},
    {"sbatch --wait-all-nodes=2 --wrap x",
     "255: sbatch: error: Invalid --wait-all-nodes specification"},
    {"sbatch --gid=0 --wrap x", "255: sbatch: error: --gid only permitted by root user"},
    {"srun --gpu-freq=fast true", "255: srun: error: Invalid --gpu-freq argument: fast"},
    {"srun --cpu-freq=fast true", "255: srun: error: Invalid --cpu-freq specification"},
    {"sbatch -a 5-2 --wrap x",
     "1: sbatch: error: Batch job submission failed: Invalid job array specification"},
    {"sbatch -a 1-x --wrap x",
     "1: sbatch: error: Batch job submission failed: Invalid job array specification"},
    {"sbatch -a 0-4000000,0-4000000,0-4000000,0-4000000,0-4000000 --wrap x",
     "1: sbatch: error: Batch job submission failed: Invalid job array specification"},
};
INSTANTIATE_TEST_SUITE_P(Values, Refusal, ::testing::ValuesIn(kValues));

constexpr RefusedCase kBinds[] = {
    {"srun --gpu-bind=verbose true", "255: srun: error: Invalid --gpu-bind argument: verbose"},
    {"srun --gpu-bind=single true", "255: srun: error: Invalid --gpu-bind argument: single"},
    {"srun --gpu-bind=single:0 true", "255: srun: error: Invalid --gpu-bind argument: single:0"},
    {"srun --gpu-bind=per_task:x true",
     "255: srun: error: Invalid --gpu-bind argument: per_task:x"},
    {"srun --gpu-bind=map:z true",
     "255: srun: error: Failed to validate z, offending character is z | "
     "srun: error: Invalid --gpu-bind argument: map:z"},
    {"srun --gpu-bind=mask:0x3,0xg true",
     "255: srun: error: Failed to validate 0xg, offending character is g | "
     "srun: error: Invalid --gpu-bind argument: mask:0x3,0xg"},
    {"srun --tres-bind=closest true", "255: srun: error: Invalid --tres-bind argument: closest"},
    {"srun --tres-bind=gres/gpu:foo true",
     "255: srun: error: Invalid --tres-bind argument: gres/gpu:foo"},
    {"srun --tres-bind=gres/nic:closest true",
     "1: srun: error: --tres-bind of gres/nic is not supported by berth"},
};
INSTANTIATE_TEST_SUITE_P(Binds, Refusal, ::testing::ValuesIn(kBinds));

constexpr RefusedCase kConflicts[] = {
    {"srun -n2 --gpus-per-node=1 --gres=gpu:1 true",
     "1: srun: fatal: --gpus-per-node and --gres=gpu are mutually exclusive."},
    {"srun -n2 --gpus-per-node=1 --gres=gres/gpu:a100=1 true",
     "1: srun: fatal: --gpus-per-node and --gres=gpu are mutually exclusive."},
    {"srun -n2 --gpus-per-node=1 --gres=gpux:1 true", "ok"},
    {"srun -n2 --gpus-per-task=1 --tres-per-task=gres/gpu=1 true",
     "1: srun: fatal: You can not have --tres-per-task=gres/gpu: and --gpus-per-task please use "
     "one "
     "or the other"},
    {"srun -n2 --ntasks-per-gpu=1 --gpus-per-socket=1 --sockets-per-node=1 true",
     "1: srun: fatal: --gpus-per-socket is mutually exclusive with --ntasks-per-gpu and "
     "SLURM_NTASKS_PER_GPU"},
    {"srun -n2 --ntasks-per-gpu=1 --tres-per-task=gres/gpu=1 true",
     "1: srun: fatal: --tres-per-task=gres/gpu is mutually exclusive with --ntasks-per-gpu and "
     "SLURM_NTASKS_PER_GPU"},
    {"srun -n2 --tres-per-task=cpu:2 --cpus-per-gpu=2 --gpus=2 true",
     "1: srun: fatal: --cpus-per-task, --tres-per-task=cpu:#, and --cpus-per-gpu are mutually "
     "exclusive"},
    {"srun --exclusive -s true",
     "1: srun: fatal: --exclusive and --oversubscribe options are mutually exclusive"},
    {"srun --exclusive --overlap true",
     "1: srun: error: --exclusive and --overlap are mutually exclusive"},
    {"srun --exact --whole true", "1: srun: error: --exact and --whole are mutually exclusive"},
    {"srun -S1 --thread-spec=1 true",
     "1: srun: fatal: --core-spec and --thread-spec are mutually exclusive"},
    {"srun -Q -v true", "1: srun: error: don't specify both --verbose (-v) and --quiet (-Q)"},
    {"srun --pty -o x true", "1: srun: error: --output is incompatible with --pty"},
    {"srun --jobid=3 -r1 -w gpu1 true",
     "1: srun: error: -r,--relative not allowed with -w,--nodelist or -x,--exclude."},
    {"srun -r1 true", "1: srun: fatal: --relative option invalid for job allocation request"},
    {"srun -m arbitrary -N2 -w gpu1,gpu2 true",
     "1: srun: error: --nodes is incompatible with --distribution=arbitrary"},
    {"sbatch --begin=now+2hours --deadline=now+1hour --wrap x",
     "1: sbatch: error: Incompatible begin and deadline time specification"},
    {"sbatch --begin=2030-02-01 --deadline=2030-01-01T10:00 --wrap x",
     "1: sbatch: error: Incompatible begin and deadline time specification"},
    {"sbatch --begin=now+1hour --deadline=now+2hours -t 5 --wrap x", "ok"},
    {"sbatch -N6 --segment=4 --wrap x", "1: sbatch: fatal: Invalid --segment specification"},
    {"sbatch -N8 --segment=4 --wrap x", "ok"},
};
INSTANTIATE_TEST_SUITE_P(Conflicts, Refusal, ::testing::ValuesIn(kConflicts));

constexpr RefusedCase kRefused[] = {
    {"sbatch --bb=x --wrap x", "1: sbatch: error: --bb is not supported by berth"},
    {"sbatch --bbf=x --wrap x", "1: sbatch: error: --bbf is not supported by berth"},
    {"srun -Z true", "1: srun: error: --no-allocate is not supported by berth"},
    {"srun --x11 true", "1: srun: error: --x11 is not supported by berth"},
    {"srun --context=x true", "1: srun: error: --context is not supported by berth"},
    {"sbatch --container=x --wrap x", "1: sbatch: error: --container is not supported by berth"},
    {"srun --async true", "1: srun: error: --async is not supported by berth"},
    {"srun --reboot true", "1: srun: error: --reboot is not supported by berth"},
    {"sbatch --power=x --wrap x", "ok"},
    {"srun -T4 true", "ok"},
};
INSTANTIATE_TEST_SUITE_P(Refused, Refusal, ::testing::ValuesIn(kRefused));

TEST(Answers, HelpTextsAreNoErrors) {
  for (const char* line : {"srun --hint=help true", "srun --mpi=list true", "srun --gres=help true",
                           "srun --cpu-bind=help true", "srun --mem-bind=help true"}) {
    const Result<Parsed> parsed = testing::parse_line(line);
    ASSERT_FALSE(parsed) << line;
    EXPECT_EQ(parsed.error().exit_code, 0) << line;
    EXPECT_EQ(parsed.error().code, Code::ok) << line;
    EXPECT_FALSE(parsed.error().messages.empty()) << line;
  }
}

TEST(Answers, HelpAndVersionComeBeforeEverything) {
  for (const char* line : {"srun --help", "sbatch --usage --mem=bad", "salloc -V --nodes=x"}) {
    const Result<Parsed> parsed = testing::parse_line(line, {}, "");
    ASSERT_TRUE(parsed) << line;
    EXPECT_EQ(parsed->components.size(), 1u);
    EXPECT_EQ(parsed->components[0].given.all().size(), 1u);
  }
}

TEST(Hints, SayWhatIsAllowedAndWhere) {
  EXPECT_EQ(testing::parse_line("sbatch --nodez=2 x").error().hint, "did you mean --nodes?");
  for (const char* option :
       {"container-image", "container-mounts", "container-name", "no-container-mount-home"}) {
    const Result<Parsed> parsed = testing::parse_line(fmt::format("srun --{}=a x", option));
    ASSERT_FALSE(parsed) << option;
    EXPECT_EQ(parsed.error().exit_code, 255);
    EXPECT_EQ(parsed.error().what(), fmt::format("unrecognized option '--{}=a'", option));
    EXPECT_EQ(
        parsed.error().hint,
        fmt::format("--{} is an option of a site plugin (pyxis) that berth does not know", option));
  }
  EXPECT_EQ(testing::parse_line("srun --container-di=a x").error().hint,
            "did you mean --container-id?");
  EXPECT_EQ(testing::parse_line("sbatch --gres=gpu:99999999999999999999 x").error().hint,
            "--gres=gpu:99999999999999999999: in \"gpu:99999999999999999999\", the count "
            "99999999999999999999 is too large");
  EXPECT_EQ(testing::parse_line("sbatch --gpus=a100:99999999999999999999 x").error().hint,
            "--gpus=a100:99999999999999999999: the count 99999999999999999999 is too large");
  EXPECT_EQ(testing::parse_line("sbatch --exact x").error().hint,
            "--exact is an option of srun, not of sbatch");
  EXPECT_EQ(testing::parse_line("sbatch x", {}, "#!/bin/sh\n\n#SBATCH -t 1h\n").error().hint,
            "line 3 of the script: --time=1h: minutes, minutes:seconds, hours:minutes:seconds, "
            "days-hours[:minutes[:seconds]]");
  Surroundings around;
  around.environment["SBATCH_TIMELIMIT"] = "1h";
  EXPECT_TRUE(testing::parse_line("sbatch x", around)
                  .error()
                  .hint.starts_with("from the variable SBATCH_TIMELIMIT: --time=1h: "));
  EXPECT_EQ(testing::parse_line("sbatch --mem=1 x", {}, "#!/bin/sh\n#SBATCH --mem-per-cpu=2\n")
                .error()
                .hint,
            "given: --mem and --mem-per-cpu (line 2 of the script); drop one");
}

TEST(Hints, LongValuesAreCutShort) {
  const Result<Parsed> parsed =
      testing::parse_line("srun -n " + std::string(1'000'000, 'x') + " y");
  ASSERT_FALSE(parsed);
  EXPECT_LT(parsed.error().messages.front().text.size(), 1100u);
  EXPECT_LT(parsed.error().hint.size(), 600u);
}

TEST(Clusters, TheOwnNameIsFine) {
  Surroundings around;
  around.cluster_name = "here";
  EXPECT_EQ(outcome("sbatch -M here x", around), "ok");
  EXPECT_NE(outcome("sbatch -M there x", around), "ok");
}

TEST(ExitCode, VariableReplacesOne) {
  Surroundings around;
  around.environment["SLURM_EXIT_ERROR"] = "77";
  EXPECT_EQ(outcome("srun -n0 true", around),
            "77: srun: error: Invalid numeric value \"0\" for --ntasks.");
  EXPECT_EQ(outcome("srun -t x true", around), "255: srun: error: Invalid --time specification");
}

TEST(Sharing, ConfiguredClusterAllowsOneTaskPerSharing) {
  Surroundings around;
  around.multiple_sharing_gres = true;
  const Result<Parsed> parsed =
      testing::parse_line("srun -n2 --gres=shard:6 --gres-flags=one-task-per-sharing x", around);
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->components[0].gres_flags.one_task_per_sharing);
}

}  // namespace
}  // namespace berth::request
