"""Programs that do not want to end with their job, and what a task is given that is not its own.

BERTH_ESCAPES: how often each of them is tried (3; 20 in `make soak`)."""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

import pytest

from cluster import ROOT, SECONDS, Cluster, processes_naming, receivers_of, until

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: jobs of another user"),
]
USER = "nobody"
ROUNDS = int(os.environ.get("BERTH_ESCAPES", 3))
CONF = """\
ClusterName=escapes
SlurmctldHost={host}
SlurmUser=root
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=10
KillWait=1
SlurmdParameters=config_overrides
NodeName={node} Sockets=1 CoresPerSocket=32 RealMemory=4000
PartitionName=main Nodes=ALL Default=YES
"""

TRACED = """
import ctypes, os, sys, time
child = os.fork()
if child == 0:
    time.sleep(float(sys.argv[1]))
assert ctypes.CDLL(None).ptrace(16, child, 0, 0) == 0
time.sleep(float(sys.argv[1]))
"""
# A process that is never the same: each starts the next and ends. It has an end of its own, too.
RUNNING_AWAY = """
import os, sys, time
for i in range(20000):
    if os.fork(): os._exit(0)
    os.setsid()
    time.sleep(0.002)
"""
WAYS = {
    "setsid": "setsid sleep {n} & wait",
    "double fork": "(setsid sh -c 'sleep {n} & sleep {n} &' &); sleep {n}",
    "many": "for i in $(seq 40); do (setsid sh -c 'sleep {n} &' &); done; sleep {n}",
    "deaf": "trap '' TERM INT HUP CONT QUIT; sh -c 'sleep {n}; sleep {n}'",
    "stopped": "sleep {n} & sleep 0.2; kill -STOP $!; kill -STOP $$; sleep {n}",
    "traced": "python3 -c '" + TRACED + "' {n}",
    "namespaces": "unshare --user --map-root-user --pid --fork --mount-proc sh -c 'sleep {n} & sleep {n}'",
    "another name": "env -i setsid sh -c 'exec -a berthd sleep {n}' || env -i setsid sleep {n}; sleep {n}",
    "running away": "python3 -c '" + RUNNING_AWAY + "' {n} & sleep {n}",
}


@pytest.fixture(scope="module", params=["this machine", "pretended"])
def cluster(request, tmp_path_factory):
    host = socket.gethostname().split(".")[0]
    if request.param == "pretended":
        folder = tmp_path_factory.mktemp("conf")
        (folder / "slurm.conf").write_text(CONF.format(host="localhost", node="n1"))
        with Cluster(emulate=folder) as c:
            yield c
        return
    c = Cluster()
    c.state.mkdir()
    c.conf.write_text(CONF.format(host=host, node=host))
    with c:
        yield c


def in_squeue(c, job):
    return c.out("squeue", "-h", "-j", job, "-o", "%T", rc=None)


def test_nothing_is_left_of_a_cancelled_job(cluster):
    """When a job does not hold its node any more nothing of it is there: not a moment later."""
    slowest = 0.0
    for _ in range(ROUNDS):
        jobs = {}
        for name, script in WAYS.items():
            number = f"36{random.randrange(10**6):06}.{random.randrange(10**6):06}"
            jobs[name] = (cluster.submit("-o", "/dev/null", "--wrap", script.replace("{n}", number), user=USER), number)
        for name, (job, number) in jobs.items():
            until(lambda: processes_naming(number), what=f"a process of {name}")
        began = time.monotonic()
        cluster.run("scancel", *(job for job, _ in jobs.values()), user=USER)
        left = dict(jobs)
        while left:
            for name, (job, number) in list(left.items()):
                if in_squeue(cluster, job):
                    continue
                survivors = processes_naming(number)
                assert not survivors, (name, survivors, cluster.logs())
                del left[name]
            slowest = max(slowest, time.monotonic() - began)
            assert slowest < SECONDS, (left, cluster.logs())
    assert cluster.out("sinfo", "-h", "-o", "%T") == "idle", cluster.logs()  # it was never drained
    print(f"the slowest was gone after {slowest:.2f} s, of which KillWait is 1 s")


def test_nothing_is_left_when_the_script_ends(cluster):
    for name in ("setsid", "double fork", "many", "another name"):
        number = f"37{random.randrange(10**6):06}.{random.randrange(10**6):06}"
        script = WAYS[name].replace("; sleep {n}", "").replace("& wait", "&").replace("{n}", number)
        job = cluster.submit("-o", "/dev/null", "--wrap", f"({script}) & sleep 0.3", user=USER)
        until(lambda: not in_squeue(cluster, job), what="the end of the job")
        assert not processes_naming(number), name


# ---- files on their way (sbcast) ------------------------------------------------------------------

class Copying:
    """An sbcast into a job that has begun to write and has then stopped sending."""

    def __init__(self, cluster, job, *words):
        self.cluster = cluster
        large = cluster.work / "large"
        with open(large, "wb") as file:
            file.truncate(16 << 30)  # without a block on the disk; more than can be sent before it is stopped
        self.folder = pathlib.Path(cluster.own) / f"to.{job}.{random.randrange(10**6)}"
        self.folder.mkdir()
        os.chmod(self.folder, 0o777)
        self.client = cluster.popen("sbcast", "--jobid", job, *words, large, self.folder / "file", user=USER)
        self.receiver = until(lambda: self.writes(job), what="a receiver that writes")
        self.client.send_signal(signal.SIGSTOP)

    def writes(self, job):
        for pid, files in receivers_of(job).items():
            if any(file.startswith(str(self.folder)) for file in files):
                return pid
        assert self.client.poll() is None, self.client.communicate()
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.client.poll() is None:
            self.client.kill()
            self.client.communicate()

    def left(self):
        return os.path.exists(f"/proc/{self.receiver}") or list(self.folder.iterdir())

    def end(self):
        self.client.send_signal(signal.SIGCONT)
        _, errors = self.client.communicate(timeout=SECONDS)
        return self.client.returncode, errors


def sleeper(cluster, *words):
    job = cluster.submit("-o", "/dev/null", *words, "--wrap", "sleep 300", user=USER)
    cluster.wait_state(job, "RUNNING")
    return job


@pytest.mark.parametrize("how", ["cancelled", "script ends", "stopped receiver"])
def test_a_file_on_its_way_ends_with_its_job(cluster, how):
    for _ in range(ROUNDS):
        go = cluster.work / f"go.{random.randrange(10**9)}"
        job = cluster.submit("-o", "/dev/null", "--wrap", f"while [ ! -e {go} ]; do sleep 0.02; done", user=USER)
        cluster.wait_state(job, "RUNNING")
        with Copying(cluster, job) as copying:
            if how == "stopped receiver":
                os.kill(copying.receiver, signal.SIGSTOP)
            began = time.monotonic()
            if how == "script ends":
                go.touch()
            else:
                cluster.run("scancel", job, user=USER)
            until(lambda: not in_squeue(cluster, job), what="the end of the job")
            assert not copying.left(), cluster.logs()  # not a moment later
            took = time.monotonic() - began
            assert took < 5, took  # KillWait is 1 s
            code, errors = copying.end()
        assert code == 1 and (how == "stopped receiver" or "Job/step already completing or completed" in errors), errors
        assert not list(pathlib.Path(cluster.state, "spool").glob(f"*/file.{job}.*"))


def test_a_file_for_one_attempt_is_not_written_in_the_next(cluster):
    job = sleeper(cluster, "--requeue")
    with Copying(cluster, job) as copying:
        cluster.run("scontrol", "requeue", job)
        cluster.run("scontrol", "update", f"jobid={job}", "StartTime=now")  # else in two minutes
        until(lambda: cluster.field(job, "Restarts") == "1" and cluster.job_state(job) == "RUNNING", what="the next attempt")
        assert not copying.left()
        code, errors = copying.end()
        assert code == 1 and "Job/step already completing or completed" in errors, errors
        assert not copying.left()
    cluster.run("scancel", job)
    until(lambda: not in_squeue(cluster, job), what="the end of the job")


def test_a_file_on_its_way_ends_with_the_agent_and_its_job_does_not(cluster):
    job = sleeper(cluster)
    with Copying(cluster, job) as copying:
        os.kill(cluster.pid("node"), signal.SIGKILL)
        until(lambda: not copying.left(), what="the end of the receiver")
        code, _ = copying.end()
        assert code == 1
    until(lambda: cluster.start() or cluster.pid("node"), what="a new agent")
    small = cluster.work / "small"
    small.write_text("whole")
    copied = copying.folder / "small"
    until(lambda: cluster.run("sbcast", "-f", "--jobid", job, small, copied, user=USER, rc=None).returncode == 0,
          what="a file for the job that still runs")
    assert copied.read_text() == "whole" and copied.stat().st_uid != 0
    assert cluster.job_state(job) == "RUNNING"
    assert not list(pathlib.Path(cluster.state, "spool").glob(f"*/file.{job}.*"))
    cluster.run("scancel", job)
    until(lambda: not in_squeue(cluster, job), what="the end of the job")


def test_files_are_copied_to_files_only(cluster):
    job = sleeper(cluster)
    small = cluster.work / "small"
    small.write_text("new")
    folder = cluster.work / "only"
    folder.mkdir(exist_ok=True)
    os.chmod(folder, 0o777)
    pipe = folder / f"pipe.{job}"
    os.mkfifo(pipe)
    os.chmod(pipe, 0o666)
    for target in (pipe, "/dev/null"):
        refused = cluster.run("sbcast", "-f", "--jobid", job, small, target, user=USER, rc=1)
        assert f"{target}: is no regular file" in refused.stderr, refused
    there = folder / f"there.{job}"
    cluster.run("sbcast", "--jobid", job, small, there, user=USER)
    refused = cluster.run("sbcast", "--jobid", job, cluster.work / "small", there, user=USER, rc=1)
    assert "File exists" in refused.stderr
    # Also when much of it is on its way already.
    large = cluster.work / "large"
    with open(large, "wb") as file:
        file.truncate(16 << 30)
    refused = cluster.run("sbcast", "--jobid", job, large, there, user=USER, rc=1)
    assert "File exists" in refused.stderr and there.read_text() == "new", refused
    cluster.run("scancel", job)
    until(lambda: not in_squeue(cluster, job), what="the end of the job")


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def test_a_killed_supervisor_ends_its_job_and_nothing_is_left(cluster):
    for _ in range(ROUNDS):
        number = f"38{random.randrange(10**6):06}.{random.randrange(10**6):06}"
        pid_file = cluster.work / f"pid.{number}"
        job = cluster.submit("--no-requeue", "-o", "/dev/null", "--wrap",
                             f"echo $$ >{pid_file}; (setsid sh -c 'sleep {number} &' &); sleep {number}", user=USER)
        until(lambda: len(processes_naming(number)) >= 2 and pid_file.exists(), what="its processes")
        supervisor = parent_of(int(pid_file.read_text()))
        began = time.monotonic()
        os.kill(supervisor, signal.SIGKILL)
        until(lambda: not in_squeue(cluster, job), what="the end of the job")
        took = time.monotonic() - began
        assert not processes_naming(number)
        assert cluster.job_state(job) not in ("COMPLETED", "RUNNING", "")
        assert took < 10, took  # two seconds on a machine of its own
    assert cluster.out("srun", "-n32", "true") == ""  # all of it is free


def test_a_task_has_its_three_streams_and_no_other_descriptor(cluster):
    """Neither of a script nor of a step, a task of many (they are started side by side), or a prolog's."""
    audit = cluster.work / "audit.py"
    audit.write_text("import os\n"
                     "fds = [fd for fd in os.listdir('/proc/self/fd') if os.path.lexists(f'/proc/self/fd/{fd}')]\n"
                     "print(*sorted(fds, key=int))\n")
    words = ["python3", str(audit)]
    for more in (["-n1"], ["-n30"], ["-n1", "--pty"]):
        got = cluster.out("srun", "--mpi=none", *more, *words, user=USER).splitlines()
        assert {line.strip() for line in got} == {"0 1 2"}, more
    # With PMI there is one more, which is named.
    number, *seen = cluster.out("srun", "-n1", "sh", "-c", f"echo $PMI_FD; exec python3 {audit}", user=USER).split()
    assert seen == ["0", "1", "2", number]
    job = cluster.submit("-o", f"{cluster.work}/audit.%j", "--wrap", f"exec python3 {audit}", user=USER)
    assert cluster.wait_end(job) == "COMPLETED"
    assert (cluster.work / f"audit.{job}").read_text() == "0 1 2\n"


BYSTANDERS = """
import json, os, pathlib, random, subprocess, sys, threading
sys.path.insert(0, {tests!r})
from cluster import Cluster, until
pathlib.Path("/proc/sys/kernel/pid_max").write_text("450")
hit, ran, stop = [], [0], threading.Event()

def watch():
    # Short ones, so that their numbers come and go among those of the jobs.
    while not stop.is_set():
        status = subprocess.run(["sleep", "0.05"], user=2, group=2, extra_groups=[]).returncode
        ran[0] += 1
        if status != 0: hit.append(status)

with Cluster(emulate="2x0") as c:
    watchers = [threading.Thread(target=watch) for _ in range(8)]
    for watcher in watchers: watcher.start()
    random.seed(25)
    jobs = []
    for i in range({jobs}):
        jobs.append(c.submit("-o", "/dev/null", "--wrap", random.choice(
            ["true", "sleep 0.05", "(setsid sleep 0.1 &); true", "sleep 5"])))
        if i % 4 == 3: c.run("scancel", *random.sample(jobs[-8:], 2), rc=None)
    c.run("scancel", "-u", "root", rc=None)
    until(lambda: c.out("squeue", "-h") == "", what="the end of the jobs")
    stop.set()
    for watcher in watchers: watcher.join()
    highest = max(int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit())
print(json.dumps(dict(hit=hit, ran=ran[0], highest=highest)))
"""


@pytest.mark.skipif(tuple(map(int, os.uname().release.split(".")[:2])) < (6, 14),
                    reason="pid_max is the whole machine's before Linux 6.14")
def test_nobody_is_hit_by_a_signal_for_a_number_that_is_used_again(cluster):
    """450 process numbers for all that runs in a namespace: each is used again within a second."""
    if "pretended" not in cluster.up_text and cluster.emulate is None:
        pytest.skip("once is enough")
    jobs = 150 * ROUNDS
    before = pathlib.Path("/proc/sys/kernel/pid_max").read_text()
    script = BYSTANDERS.format(tests=str(ROOT / "tests"), jobs=jobs)
    # The cluster in there has a directory below /run of its own: it is another pid namespace, and pid files name pids.
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", script],
                          capture_output=True, text=True, timeout=10 * SECONDS)
    assert pathlib.Path("/proc/sys/kernel/pid_max").read_text() == before
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["hit"] == [] and told["ran"] > 100 and told["highest"] <= 450, told
