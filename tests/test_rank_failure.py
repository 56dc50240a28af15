"""A rank dies while the others wait for it: the step ends after the grace, nothing is left, and the message says who
was first. BERTH_REPEAT says how often (make test-clients: 100 times)."""

import os
import random
import re
import signal
import subprocess
import time

import pytest

from cluster import Cluster, processes_naming, until

pytestmark = pytest.mark.live

GRACE = 1
REPEAT = int(os.environ.get("BERTH_REPEAT", "4"))
CONF = f"""\
ClusterName=ranks
SlurmctldHost=localhost
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=2
LaunchParameters=failure_grace={GRACE}
NodeName=n[1-4] CPUs=4 RealMemory=4000
PartitionName=all Nodes=ALL Default=YES
"""
# Says where it is, then waits as a rank in a collective does; told to, it goes in one way or another.
RANK = """
trap 'echo "rank $SLURM_PROCID has a problem" >&2; exit 3' USR1
trap 'exit 0' USR2
echo "$SLURM_PROCID $SLURMD_NODENAME $$"
while :; do sleep 0.1; done
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conf")
    (folder / "slurm.conf").write_text(CONF)
    with Cluster(emulate=folder) as c:
        yield c


class Step:
    def __init__(self, cluster, *words):
        self.mark = f"rank-failure-{time.monotonic_ns()}"
        self.process = subprocess.Popen(
            ["srun", "-N4", "-n8", "--ntasks-per-node=2", *words, "bash", "-c", RANK, self.mark], env=cluster.env,
            cwd=cluster.work, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.ranks = {}
        for _ in range(8):
            rank, node, pid = self.process.stdout.readline().split()
            self.ranks[int(rank)] = (node, int(pid))

    def end(self, seconds=60):
        out, self.text = self.process.communicate(timeout=seconds)
        return self.process.returncode

    def left(self):
        return {pid: line for pid, line in processes_naming(self.mark).items() if pid != os.getpid()}


ENDS = {
    signal.SIGKILL: ("Killed", 137),
    signal.SIGSEGV: ("Segmentation fault", 139),
    signal.SIGUSR1: ("Exited with exit code 3", 3),
}


@pytest.mark.parametrize("number", range(REPEAT))
def test_the_step_ends_and_says_who_was_first(cluster, number):
    choose = random.Random(number)
    step = Step(cluster)
    rank = choose.randrange(8)
    how = choose.choice(list(ENDS))
    node, pid = step.ranks[rank]
    began = time.monotonic()
    os.kill(pid, how)
    code = step.end()
    took = time.monotonic() - began
    words, expected = ENDS[how]
    assert GRACE * 0.9 <= took < GRACE + 10, f"{took} s\n{step.text}"
    assert f"task {rank} on {node} failed first: {words}" in step.text, step.text
    if how == signal.SIGUSR1:
        assert f"its last line on standard error: rank {rank} has a problem" in step.text, step.text
    assert code == expected, f"{code}\n{step.text}"
    until(lambda: not step.left(), 10, f"the end of {step.left()}")
    cluster.wait_idle()


def test_an_exit_with_zero_ends_nobody(cluster):
    step = Step(cluster)
    os.kill(step.ranks[5][1], signal.SIGUSR2)
    time.sleep(GRACE + 2)
    assert step.process.poll() is None
    for rank in (0, 1, 2, 3, 4, 6, 7):
        os.kill(step.ranks[rank][1], signal.SIGUSR2)
    assert step.end() == 0, step.text


def test_who_wants_the_others_to_go_on_says_so(cluster):
    step = Step(cluster, "--kill-on-bad-exit=0")
    os.kill(step.ranks[2][1], signal.SIGUSR1)
    time.sleep(GRACE + 2)
    assert step.process.poll() is None
    for rank in (0, 1, 3, 4, 5, 6, 7):
        os.kill(step.ranks[rank][1], signal.SIGUSR2)
    assert step.end() == 3, step.text


def test_who_says_how_long_to_wait_has_said_it_for_failures_too(cluster):
    step = Step(cluster, "-W", "4")
    began = time.monotonic()
    os.kill(step.ranks[2][1], signal.SIGUSR1)
    step.end()
    assert time.monotonic() - began > 3.5, step.text
    assert "failed first" not in step.text


def test_kill_on_bad_exit_has_no_grace(cluster):
    step = Step(cluster, "-K")
    began = time.monotonic()
    os.kill(step.ranks[2][1], signal.SIGUSR1)
    step.end()
    assert re.search(r"task 2 on n2 failed first: Exited with exit code 3; .*rank 2 has a problem", step.text), step.text
    assert time.monotonic() - began < GRACE + 8


def test_the_clock_stands_still_while_the_job_is_suspended(cluster):
    step = Step(cluster)
    job = cluster.out("squeue", "-h", "-o", "%i").split()[0]
    os.kill(step.ranks[2][1], signal.SIGUSR1)
    cluster.run("scontrol", "suspend", job)
    time.sleep(GRACE + 2)
    assert step.process.poll() is None
    cluster.run("scontrol", "resume", job)
    assert step.end() == 3, step.text
    assert "task 2 on n2 failed first" in step.text
