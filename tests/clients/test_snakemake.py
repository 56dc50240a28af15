"""Snakemake's own Slurm executor (--slurm): rules become jobs, with what they ask for, and their ends are noticed."""

import pathlib
import signal
import tempfile

import pytest

from cluster import until

pytestmark = pytest.mark.live

# Snakemake asks for the state of a job every half minute; once in a second is the most it takes.
EAGER = ("--max-status-checks-per-second", "1")


class Workflow:
    def __init__(self, cluster, text):
        self.cluster = cluster
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=cluster.work))
        (self.folder / "Snakefile").write_text(text)

    def words(self, *more, resources=()):
        return ["snakemake", "--slurm", "-j", "4", "--nocolor", *more,
                "--default-resources", "mem_mb=500", "runtime=5", *resources]

    def run(self, *more, resources=(), rc=0):
        done = self.cluster.run(*self.words(*EAGER, *more, resources=resources), rc=None, timeout=300, cwd=self.folder)
        told = done.stdout + done.stderr
        assert done.returncode == rc, f"{done.returncode}\n{told}\n{self.slurm_logs()}\n{self.cluster.logs()}"
        return told

    def slurm_logs(self):
        return "\n".join(f"--- {p}\n{p.read_text()}" for p in sorted(self.folder.glob(".snakemake/slurm_logs/*/*.log")))

    def text(self, name):
        return (self.folder / name).read_text()

    def jobs(self, rule, fields):
        """The rows that sacct has for the jobs of a rule of this workflow."""
        text = self.cluster.out("sacct", "-a", "-X", "-n", "-P", "-o", f"WorkDir,JobName,{fields}")
        rows = [row.split("|") for row in text.splitlines()]
        return [row[2:] for row in rows if row[0] == str(self.folder) and row[1].startswith(f"snakejob_{rule}_")]


def test_rules_run_as_jobs_with_what_they_ask_for(cluster):
    flow = Workflow(cluster, """
rule all:
    input: "total.txt", "gpus.txt", "ranks.txt"

rule part:
    output: "part{i}.txt"
    threads: 2
    resources: mem_mb=1000, runtime=7
    shell: "echo {wildcards.i} $SLURMD_NODENAME $SLURM_CPUS_ON_NODE $SLURM_MEM_PER_NODE $SLURM_STEP_ID > {output}"

rule total:
    input: expand("part{i}.txt", i=range(3))
    output: "total.txt"
    shell: "cat {input} > {output}"

rule gpus:
    output: "gpus.txt"
    resources: slurm_extra="--gres=gpu:2"
    shell: "echo $CUDA_VISIBLE_DEVICES > {output}"

rule ranks:
    output: "ranks.txt"
    resources: mpi="srun", tasks=3, nodes=3
    shell: "{resources.mpi} -n {resources.tasks} sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME' > {output}"
""")
    flow.run(resources=["slurm_account=default", "slurm_partition=main"])
    parts = [line.split() for line in flow.text("total.txt").splitlines()]
    assert [p[0] for p in parts] == ["0", "1", "2"]
    assert {p[1] for p in parts} <= {f"node{n}" for n in range(1, 5)}
    assert [p[2:] for p in parts] == [["2", "1000", "0"]] * 3
    assert len(flow.text("gpus.txt").strip().split(",")) == 2
    ranks = sorted(line.split() for line in flow.text("ranks.txt").splitlines())
    assert [r for r, _ in ranks] == ["0", "1", "2"]
    assert len({node for _, node in ranks}) == 3
    assert flow.jobs("part", "State,AllocCPUS,ReqMem,Timelimit,Account,Partition") == \
        [["COMPLETED", "2", "1000M", "00:07:00", "default", "main"]] * 3
    assert flow.jobs("total", "State,AllocCPUS,ReqMem") == [["COMPLETED", "1", "500M"]]
    assert flow.jobs("gpus", "State") == [["COMPLETED"]]
    assert flow.jobs("ranks", "State,NNodes") == [["COMPLETED", "3"]]


def test_the_account_is_guessed_from_earlier_jobs(cluster):
    flow = Workflow(cluster, 'rule one:\n    output: "one.txt"\n    shell: "echo > {output}"\n')
    cluster.wait_state(cluster.submit("-A", "default", "-o", "/dev/null", "--wrap", "true"), "COMPLETED")
    first = cluster.out("sh", "-c", 'sacct -nu "$USER" -o Account%20 | head -n1')
    assert first == "default", "the first job of today has no account"
    assert "Guessed SLURM account: default" in flow.run()
    assert flow.jobs("one", "State,Account") == [["COMPLETED", "default"]]


def test_an_account_that_is_not_there_is_refused(cluster):
    flow = Workflow(cluster, 'rule any:\n    output: "any.txt"\n    shell: "echo > {output}"\n')
    told = flow.run(resources=["slurm_account=physics"], rc=1)
    assert "account physics appears to be invalid. Available accounts:\ndefault" in told
    assert flow.jobs("any", "State") == []


def test_a_rule_that_fails_is_noticed(cluster):
    flow = Workflow(cluster, """
rule all:
    input: "good.txt", "bad.txt"

rule good:
    output: "good.txt"
    resources: mem_mb=100
    shell: "echo fine > {output}"

rule bad:
    output: "bad.txt"
    resources: mem_mb=100
    shell: "echo before; exit 7"
""")
    told = flow.run("--keep-going", rc=1)
    [[job, state, code]] = flow.jobs("bad", "JobIDRaw,State,ExitCode")
    assert (state, code) == ("FAILED", "1:0")
    assert f"SLURM-job '{job}' failed, SLURM status is: 'FAILED'" in told
    assert "before" in flow.text(f".snakemake/slurm_logs/rule_bad/{job}.log")
    assert flow.text("good.txt") == "fine\n"
    assert flow.jobs("good", "State") == [["COMPLETED"]]


def test_an_interrupt_cancels_the_jobs(cluster):
    flow = Workflow(cluster, """
rule all:
    input: "long0.txt", "long1.txt"

rule long:
    output: "long{i}.txt"
    shell: "touch began{wildcards.i}; sleep 1000"
""")
    # Not eagerly: while it asks for states it has no list of jobs to cancel.
    # Whoever started the tests may ignore the signal.
    run = cluster.popen("env", "--default-signal=INT", "-C", flow.folder, *flow.words())
    try:
        until(lambda: all((flow.folder / f"began{i}").exists() for i in (0, 1)), what="the start of both")
        run.send_signal(signal.SIGINT)
        told = "".join(run.communicate(timeout=120))
    finally:
        run.kill()
    assert run.returncode != 0, told
    until(lambda: all(state.startswith("CANCELLED by") for [state] in flow.jobs("long", "State")),
          what="the end of both")
    assert len(flow.jobs("long", "State")) == 2
    cluster.wait_idle()
