"""What a user's process may do on a node, and that every job can be ended."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

from cluster import Cluster, receivers_of, until

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: jobs of another user"),
]

USER = "nobody"
CONF = """\
ClusterName=unkillable
SlurmctldHost=localhost
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=10
KillWait=1
UnkillableStepTimeout=2
{more}NodeName=n[1-2] Sockets=1 CoresPerSocket=4 RealMemory=4000
PartitionName=main Nodes=ALL Default=YES
"""


def conf_in(folder, more=""):
    (folder / "slurm.conf").write_text(CONF.format(more=more))
    return folder


@pytest.fixture(scope="module")
def frozen():
    """A file system that can be frozen: who writes there waits in the kernel, and no signal ends him. It is there
    before the cluster, whose pretended nodes see what was mounted when they began."""
    if not all(map(shutil.which, ("fsfreeze", "mkfs.ext4"))):
        yield None
        return
    place = pathlib.Path(tempfile.mkdtemp(prefix="berth-frozen-"))
    image = place.with_suffix(".img")
    with open(image, "wb") as file:
        file.truncate(8 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    mounted = subprocess.run(["mount", "-o", "loop", image, place]).returncode == 0
    if mounted:
        os.chmod(place, 0o777)
    yield place if mounted else None
    subprocess.run(["umount", "-l", place], check=False)
    place.rmdir()
    image.unlink()


@contextlib.contextmanager
def freezing(place):
    """Calls of what is given freeze and thaw."""
    if place is None:
        pytest.skip("needs fsfreeze, mkfs.ext4 and to mount a file")
    state = [False]

    def freeze(on):
        if state[0] != on:
            subprocess.run(["fsfreeze", "-f" if on else "-u", place], check=True)
        state[0] = on
    try:
        yield freeze
    finally:
        freeze(False)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, frozen):
    folder = tmp_path_factory.mktemp("conf")
    program = folder / "unkillable.sh"
    program.write_text(f"#!/bin/sh\necho $SLURM_JOB_ID $SLURM_STEP_ID $BERTH_UNKILLABLE_PIDS >>{folder}/told\n")
    program.chmod(0o755)
    with Cluster(emulate=conf_in(folder, f"UnkillableStepProgram={program}\n")) as c:
        c.told = folder / "told"
        yield c


def log_of_agent(c):
    return (c.state / "log/node.log").read_text()


def another_agent(c):
    """A killed agent may hold its lock until its thread has written; then `berth up` finds it running."""
    agent = c.pid("node")
    os.kill(agent, signal.SIGKILL)

    def started():
        c.start()
        with contextlib.suppress(AssertionError):
            return c.pid("node") != agent
        return False
    until(started, what="a new agent")


def written(path):
    return until(lambda: path.exists() and path.read_text().strip(), what=f"something in {path}")


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


# ---- niceness and limits ------------------------------------------------------------------------

def in_a_hurry(*words):
    """A command of an ordinary user that root has given the best niceness there is, and so asks for it."""
    return ["nice", "-n", "-20", "setpriv", f"--reuid={USER}", "--clear-groups", "--", *words]


def niceness_of_jobs(c):
    script = c.run(*in_a_hurry("sbatch", "--parsable", "-o", f"{c.work}/nice.%j", "--wrap", "nice; srun -n1 nice"))
    job = script.stdout.strip()
    c.wait_state(job, "COMPLETED")
    return {"srun": c.run(*in_a_hurry("srun", "-n1", "nice")), "sbatch": (c.work / f"nice.{job}").read_text()}


def test_niceness_is_the_daemons_unless_the_configuration_says_so(cluster):
    own = os.getpriority(os.PRIO_PROCESS, cluster.pid("node"))
    seen = niceness_of_jobs(cluster)
    assert seen["srun"].stdout.split() == [str(own)] and not seen["srun"].stderr, seen
    assert seen["sbatch"].split() == [str(own)] * 2, seen
    assert cluster.out("nice", "-n", "7", "srun", "-n1", "nice") == str(own)


def test_a_user_asks_for_no_better_niceness_than_the_daemons(tmp_path):
    with Cluster(emulate=conf_in(tmp_path, "PropagatePrioProcess=1\n")) as c:
        own = os.getpriority(os.PRIO_PROCESS, c.pid("node"))
        seen = niceness_of_jobs(c)
        assert seen["srun"].stdout.split() == [str(own)], seen
        assert f"Can't propagate a niceness of -20 from submit host: it is {own} here" in seen["srun"].stderr
        assert [line for line in seen["sbatch"].splitlines() if line.lstrip("-").isdigit()] == [str(own)] * 2, seen
        # A worse one is his to take, and root's word counts.
        assert c.out("nice", "-n", "7", "srun", "-n1", "nice", user=USER) == str(own + 7)
        assert c.out("nice", "-n", "-20", "srun", "-n1", "nice") == "-20"


# ---- ends that somebody holds up ----------------------------------------------------------------

def full_pipe(c, name):
    """A pipe of the user's that somebody has opened, and filled, and does not read."""
    path = c.work / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    os.chmod(path, 0o666)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 65536)
    os.close(writer)
    return path, reader


@pytest.mark.parametrize("stream", ["-o", "-e"])
def test_a_job_whose_output_nobody_reads_ends_when_it_is_told(cluster, stream):
    path, reader = full_pipe(cluster, f"full{stream}")
    try:
        other = [] if stream == "-o" else ["-o", "/dev/null"]
        job = cluster.submit(stream, path, *other, "--wrap", "sleep 300", user=USER)
        cluster.wait_state(job, "RUNNING")
        cluster.run("scancel", job, user=USER)
        cluster.wait_state(job, "CANCELLED", seconds=15)
        cluster.wait_idle(15)
    finally:
        os.close(reader)


def test_a_step_whose_output_nobody_reads_ends_when_it_is_told(cluster):
    path, reader = full_pipe(cluster, "labelled0")
    try:
        # By task: it is the node that writes it.
        srun = cluster.popen("srun", "-n1", "--label", "-o", path.with_name("labelled%t"), "head", "-c", "100000000", "/dev/zero", user=USER)
        until(lambda: cluster.out("squeue", "-h", "-s", "-o", "%i"), what="the step")
        srun.send_signal(signal.SIGTERM)
        srun.communicate(timeout=30)
        cluster.wait_idle(15)
    finally:
        os.close(reader)


def test_input_that_nobody_writes_holds_up_nothing(cluster):
    path = cluster.work / "silent"
    os.mkfifo(path)
    os.chmod(path, 0o666)
    keeper = os.open(path, os.O_RDWR)
    try:
        job = cluster.submit("-i", path, "-o", "/dev/null", "--wrap", "cat", user=USER)
        cluster.wait_state(job, "RUNNING")
        cluster.run("scancel", job, user=USER)
        cluster.wait_state(job, "CANCELLED", seconds=15)
    finally:
        os.close(keeper)


@pytest.mark.parametrize("agent", ["the agent that started it", "another agent"])
def test_a_stopped_supervisor_does_not_keep_its_job(cluster, agent):
    job = cluster.submit("-o", f"{cluster.work}/pid.%j", "--wrap", "echo $$; sleep 300", user=USER)
    pid = written(cluster.work / f"pid.{job}")
    supervisor = parent_of(pid)
    if agent == "another agent":
        another_agent(cluster)
    os.kill(supervisor, signal.SIGSTOP)
    cluster.run("scancel", job)
    cluster.wait_state(job, "CANCELLED", seconds=30)
    cluster.wait_idle(15)
    until(lambda: not os.path.exists(f"/proc/{pid}"), what="the end of the script")
    log = log_of_agent(cluster)
    assert f"step {job}.batch on n1 should be over: its processes are killed" in log
    said = f"step {job}.batch on n1: its supervisor does not answer and is killed: {supervisor} berth-stepd (T"
    assert said in log


def drained(c, node):
    return until(lambda: (c.out("sinfo", "-h", "-n", node, "-o", "%T|%E") + "|").split("|")[:2]
                 if "drain" in c.out("sinfo", "-h", "-n", node, "-o", "%T") else None, what="a drained node")


def resume(c, node):
    c.run("scontrol", "update", f"nodename={node}", "state=resume")
    until(lambda: c.out("sinfo", "-h", "-n", node, "-o", "%T") == "idle", what="the node is back")


def test_processes_that_no_signal_ends_drain_their_node_and_keep_their_job(cluster, frozen):
    with freezing(frozen) as freeze:
        job = cluster.submit("-w", "n1", "-o", f"{cluster.work}/pid.%j", "--wrap",
                             f"cd {frozen}; echo $$; while [ ! -e {cluster.work}/go ]; do sleep 0.05; done; >{frozen}/file",
                             user=USER)
        pid = written(cluster.work / f"pid.{job}")
        freeze(True)
        (cluster.work / "go").touch()
        until(lambda: pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "D", what="it hangs")
        cluster.run("scancel", job, user=USER)
        state, reason = drained(cluster, "n1")
        assert reason.startswith(f"Kill task failed: step {job}.batch: {pid} slurm_script (D, in "), reason
        assert f"node n1: {reason}" in log_of_agent(cluster)
        assert until(lambda: cluster.told.exists() and cluster.told.read_text(), what="the program of the "
                     "configuration") == f"{job} batch {pid}\n"
        # Its resources are not free, and another agent does not forget why.
        assert cluster.out("squeue", "-h", "-j", job, "-o", "%t") == "CG"
        assert state == "draining", state
        another_agent(cluster)
        until(lambda: log_of_agent(cluster).count(f"node n1: {reason}") == 2, what="the new agent says so too")
        freeze(False)
        cluster.wait_state(job, "CANCELLED", seconds=15)
        until(lambda: cluster.out("squeue", "-h", "-j", job) == "", what="the end of the job")
        (cluster.work / "go").unlink()
        resume(cluster, "n1")


def test_a_file_that_is_received_on_a_dead_file_system_drains_its_node(cluster, frozen):
    with freezing(frozen) as freeze:
        job = cluster.submit("-w", "n1", "-o", "/dev/null", "--wrap", "sleep 300", user=USER)
        cluster.wait_state(job, "RUNNING")
        file = cluster.work / "to be copied"
        file.write_text("x")
        freeze(True)
        client = cluster.popen("sbcast", "--jobid", job, file, frozen / "copied", user=USER)
        pid = until(lambda: next(iter(receivers_of(job)), None), what="a receiver")
        until(lambda: pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "D", what="it hangs")
        cluster.run("scancel", job, user=USER)
        state, reason = drained(cluster, "n1")
        assert reason.startswith(f"Kill task failed: sbcast to job {job}: {pid} berth-stepd (D, in "), reason
        assert f"node n1: {reason}" in log_of_agent(cluster)
        until(lambda: f"{job} sbcast_1 {pid}\n" in (cluster.told.read_text() if cluster.told.exists() else ""),
              what="the program of the configuration")
        assert cluster.out("squeue", "-h", "-j", job, "-o", "%t") == "CG" and state == "draining"
        another_agent(cluster)
        until(lambda: log_of_agent(cluster).count(f"node n1: {reason}") == 2, what="the new agent says so too")
        assert cluster.out("squeue", "-h", "-j", job, "-o", "%t") == "CG"
        freeze(False)
        cluster.wait_state(job, "CANCELLED", seconds=15)
        until(lambda: cluster.out("squeue", "-h", "-j", job) == "", what="the end of the job")
        assert not receivers_of(job) and not (frozen / "copied").exists()
        client.communicate(timeout=60)
        assert client.returncode == 1
        resume(cluster, "n1")


def test_a_supervisor_that_hangs_in_a_file_system_drains_its_node(cluster, frozen):
    with freezing(frozen) as freeze:
        freeze(True)
        job = cluster.submit("-w", "n2", "-o", f"{frozen}/out", "--wrap", "sleep 300", user=USER)
        cluster.wait_state(job, "RUNNING")
        cluster.run("scancel", job, user=USER)
        _, reason = drained(cluster, "n2")
        assert reason.startswith(f"Kill task failed: step {job}.batch: ") and "berth-stepd (D, in " in reason, reason
        freeze(False)
        until(lambda: cluster.out("squeue", "-h", "-j", job) == "", what="the end of the job")
        resume(cluster, "n2")
