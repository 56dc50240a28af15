"""Nodes that cannot start what they are given: no job is lost to them, and no user can make one look so."""

import contextlib
import pathlib
import re
import subprocess

import pytest

import cluster
from hosts import Hosts

pytestmark = pytest.mark.live
NOBODY = 65534
PIDS = pathlib.Path("/sys/fs/cgroup/pids")


@pytest.fixture(scope="module")
def hosts():
    """The spool of h1 is a small file system of its own."""
    with Hosts(3) as h:
        h[1].run("mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "none", h[1].home / "spool")
        h.start()
        yield h


def show(hosts, job):
    text = hosts[0].run("scontrol", "-o", "show", "job", job).stdout
    return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in text.splitlines()]


def wait_ended(hosts, job):
    def ended():
        parts = show(hosts, job)
        return parts if all(part["JobState"] in cluster.ENDED for part in parts) else None
    return cluster.until(ended, what=f"the end of {job}: {show(hosts, job)[0]}{''.join(h.logs() for h in hosts.hosts)}")


def reason(hosts, node="h1"):
    text = hosts[0].run("scontrol", "-o", "show", "node", node).stdout
    found = re.search(r" Reason=(.*?) \[", text)
    return found[1] if found else ""


def resume(hosts, node="h1"):
    """The node takes jobs again when an administrator says so, and then they run there."""
    assert hosts.state_of(node) == "drained"
    hosts[0].run("scontrol", "update", f"nodename={node}", "state=resume")
    assert reason(hosts, node) == ""
    hosts[0].run("srun", "-w", node, "true")
    cluster.until(lambda: hosts.state_of(node) == "idle", what="an idle node")


@contextlib.contextmanager
def full_spool(hosts):
    """What is written there fails; what is there stays."""
    spool = hosts[1].home / "spool"
    hosts[1].run("sh", "-c", f"dd if=/dev/zero of={spool}/fill bs=4k 2>/dev/null", check=False)
    try:
        yield
    finally:
        hosts[1].run("rm", f"{spool}/fill")


@contextlib.contextmanager
def other_supervisor(hosts, program):
    """berth-stepd of h1 is something else."""
    over = cluster.bin_dir() / "berth-stepd"
    hosts[1].run("mount", "--bind", program, over)
    try:
        yield
    finally:
        hosts[1].run("umount", over)


@contextlib.contextmanager
def processes_left(hosts, count):
    """The agent of h1 and all that it starts may have so many processes more than now."""
    if not (PIDS / "cgroup.procs").exists():
        pytest.skip("needs the pids controller of cgroup v1")
    agent = hosts[1].agent.pid
    before = next(line.split(":", 2)[2] for line in pathlib.Path(f"/proc/{agent}/cgroup").read_text().splitlines()
                  if line.split(":")[1] == "pids")
    group = PIDS / f"berth-black-hole-{agent}"
    group.mkdir()
    try:
        (group / "cgroup.procs").write_text(str(agent))
        (group / "pids.max").write_text(str(int((group / "pids.current").read_text()) + count))
        yield
    finally:
        (PIDS / before.lstrip("/") / "cgroup.procs").write_text(str(agent))
        cluster.until(lambda: not (group / "cgroup.procs").read_text(), what="an empty group")
        group.rmdir()


@pytest.mark.parametrize("options", [(), ("--no-requeue",)])
def test_an_array_beside_a_node_with_a_full_spool(hosts, options):
    """All 50 run, on the other node; two of them have been on the bad one, and no more."""
    said = hosts.directory / f"said{len(options)}"
    with full_spool(hosts):
        job = hosts[0].run("sbatch", "--parsable", "-n1", "-o", "/dev/null", "--array=0-49", *options, "--wrap",
                           f"echo $SLURM_ARRAY_TASK_ID $SLURMD_NODENAME $SLURM_RESTART_COUNT >> {said}").stdout.strip()
        elements = wait_ended(hosts, job)
        assert {one["JobState"] for one in elements} == {"COMPLETED"} and len(elements) == 50
        assert reason(hosts).startswith("launch failed twice: ") and "No space left on device" in reason(hosts)
        lines = [line.split() for line in said.read_text().splitlines()]
        assert sorted(int(line[0]) for line in lines) == list(range(50))
        assert {line[1] for line in lines} == {"h2"}
        assert 1 <= sum(int(line[2]) for line in lines) <= 2
    resume(hosts)


@pytest.mark.parametrize("program, why", [("/dev/null", "berth-stepd: Permission denied"),
                                          ("/bin/false", "berth-stepd ended before it started anything")])
def test_a_supervisor_that_is_not_one(hosts, program, why):
    with other_supervisor(hosts, program):
        job = hosts[0].run("sbatch", "--parsable", "--no-requeue", "-o", "/dev/null", "--exclude=h2", "--wrap",
                           "true").stdout.strip()
        cluster.until(lambda: hosts.state_of("h1") == "drained", what=f"a drained node{hosts[1].logs()}")
        assert reason(hosts).startswith("launch failed twice: ") and reason(hosts).endswith(why)
        cluster.until(lambda: show(hosts, job)[0]["JobState"] == "PENDING", what="the job in the queue")
        assert show(hosts, job)[0]["Restarts"] == "1"
        assert hosts[1].processes().count(hosts[1].agent.pid) == 1
    resume(hosts)
    assert wait_ended(hosts, job)[0]["JobState"] == "COMPLETED"


@pytest.mark.parametrize("count, what", [(0, "berth-stepd: Resource temporarily unavailable"),
                                         (1, "fork: Resource temporarily unavailable")])
def test_a_node_without_processes(hosts, count, what):
    """None is left for the supervisor; or for the script."""
    with processes_left(hosts, count):
        job = hosts[0].run("sbatch", "--parsable", "-o", "/dev/null", "-w", "h1", "--wrap", "true").stdout.strip()
        cluster.until(lambda: hosts.state_of("h1") == "drained", what=f"a drained node{hosts[1].logs()}")
        assert reason(hosts) == f"launch failed twice: {what}" or reason(hosts).endswith("/" + what)
    resume(hosts)
    assert wait_ended(hosts, job)[0]["JobState"] == "COMPLETED"


@pytest.mark.parametrize("trouble", ["spool", "supervisor", "dying", "processes"])
def test_srun_says_which_node_and_why(hosts, trouble):
    bad = {"spool": full_spool(hosts), "supervisor": other_supervisor(hosts, "/dev/null"),
           "dying": other_supervisor(hosts, "/bin/false"), "processes": processes_left(hosts, 1)}[trouble]
    with bad:
        done = hosts[0].run("srun", "-w", "h1", "true", check=False)
        assert done.returncode != 0
        cluster.until(lambda: hosts.state_of("h1") == "drained", what=f"a drained node{hosts[1].logs()}")
        assert reason(hosts).startswith("launch failed twice: ")
        if trouble != "spool":  # there the job itself cannot begin
            assert re.search(r"srun: error: Task launch for StepId=\d+\.0 failed on node h1: launch failed twice: ",
                             done.stderr), done.stderr
    resume(hosts)


def test_the_second_try_is_as_good_as_the_first(hosts):
    """A spool that is full for a moment only: nobody notices."""
    spool = hosts[1].home / "spool"
    before = (hosts[1].home / "berthd.log").read_text().count("cannot begin on h1")
    with full_spool(hosts):
        job = hosts[0].run("sbatch", "--parsable", "-o", "/dev/null", "-w", "h1", "--wrap", "true").stdout.strip()
        cluster.until(lambda: (hosts[1].home / "berthd.log").read_text().count("cannot begin on h1") > before,
                      what="the first try")
        hosts[1].run("truncate", "-s", "0", f"{spool}/fill")
        assert wait_ended(hosts, job)[0]["JobState"] == "COMPLETED"
    assert show(hosts, job)[0]["Restarts"] == "0" and reason(hosts) == ""


def test_a_job_on_two_nodes_of_which_the_first_is_bad(hosts):
    """The script would have run there: nothing has begun, and --no-requeue does not count."""
    job = hosts[0].run("sbatch", "--parsable", "--no-requeue", "-H", "-N2", "-o", "/dev/null", "--wrap",
                             "true").stdout.strip()
    with full_spool(hosts):
        hosts[0].run("scontrol", "release", job)
        cluster.until(lambda: hosts.state_of("h1") == "drained", what=f"a drained node{hosts[1].logs()}")
        cluster.until(lambda: show(hosts, job)[0]["JobState"] == "PENDING", what="the job in the queue")
    resume(hosts)
    assert wait_ended(hosts, job)[0]["JobState"] == "COMPLETED"


# ---- what users do ------------------------------------------------------------------------------

HARMLESS = {
    "directory": (["--chdir=/nonexistent"], ""),
    "forbidden directory": (["--chdir=/root"], ""),
    "output": (["-o", "/nonexistent\x01/out"], ""),
    "forbidden output": (["-o", "/root/out"], ""),
    "output on a full disk": (["-o", "/dev/full"], ""),
    "output that is a directory": (["-o", "/tmp"], ""),
    "input": (["-i", "/nonexistent"], ""),
    "no processes": ([], "ulimit -u 1"),
    "no files": ([], "ulimit -n 4"),
    "no file sizes": ([], "ulimit -f 0"),
    "no stack": ([], "ulimit -s 8"),
    "no memory": ([], "ulimit -v 1000"),
    "no data": ([], "ulimit -d 1"),
    "hardly any memory": (["--mem=1"], ""),
}


def test_no_user_can_drain_a_node(hosts, tmp_path):
    """Jobs that cannot run, by all that a user can choose: they fail, and are not taken for the node's fault."""
    folder = hosts.directory / "of-nobody"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    gone = folder / "gone"
    jobs = {}

    def submit(name, options, before="", script="#!/bin/sh\nexec /bin/sh -c true\n"):
        text = folder / "job.sh"
        text.write_text(script)
        done = subprocess.run(
            [*hosts[0].within(), "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--", "sh",
             "-c", f'exec 3>&1; {before or ":"}; cd {folder}; exec sbatch --parsable --requeue -w h1 "$@"', "sh",
             *([] if "-o" in options else ["-o", "/dev/null"]), *options, text],
            env=hosts[0].environment(**({"HUGE": "x" * 100_000} if name == "environment" else {})), text=True,
            capture_output=True, timeout=cluster.SECONDS, check=False)
        if done.returncode == 0:
            jobs[done.stdout.strip()] = name

    for name, (options, before) in HARMLESS.items():
        submit(name, options, before)
    submit("environment", [])
    submit("interpreter", [], script="#!/nonexistent/shell\n")
    submit("argument list", ["/usr/bin/true"], script="#!/bin/sh\nexec /bin/true $(seq 1000000)\n")
    gone.mkdir()
    gone.chmod(0o777)
    submit("directory that goes", [f"--chdir={gone}"], script="#!/bin/sh\ntrue\n")
    hosts[0].run("sbatch", "-w", "h1", "-o", "/dev/null", "--wrap", f"rmdir {gone}", user=NOBODY, check=False)
    submit("many tasks", ["--overcommit", "-n2"], script="#!/bin/sh\nsrun -O -n200 true\n")
    nobody_knows = hosts[0].run("sbatch", "--parsable", "-w", "h1", "-o", "/dev/null", "--wrap", "true", user=54321,
                                check=False)
    if nobody_knows.returncode == 0:
        jobs[nobody_knows.stdout.strip()] = "unknown user"
    assert len(jobs) >= 12, jobs
    for job, name in jobs.items():
        ended = wait_ended(hosts, job)[0]
        assert ended["Restarts"] == "0", name
    for words in (["-i", "/nonexistent"], ["-o", "/root/out"], ["--chdir=/nonexistent"], ["--pty"], ["-u"]):
        hosts[0].run("srun", "-w", "h1", *words, "true", user=NOBODY, check=False)
    assert hosts.state_of("h1") in ("idle", "mixed", "allocated", "completing"), (reason(hosts), jobs)
    assert reason(hosts) == ""
    cluster.until(lambda: hosts.state_of("h1") == "idle", what="an idle node")


# ---- a machine that is started anew -------------------------------------------------------------

@pytest.mark.parametrize("service", [0, 1, 2])
def test_jobs_of_a_machine_that_is_started_anew(service):
    """They begin again where they may, and are NODE_FAIL else; FAILED none of them is."""
    hosts = Hosts(2, keys=f"ReturnToService={service}\nSlurmdParameters=config_overrides\nKillWait=1\n", munge=())
    hosts.text = hosts.text.replace("CPUs=2", "CPUs=4")
    with hosts:
        hosts.start()
        started = hosts.directory / "started"

        def submit(*words):
            return hosts[0].run("sbatch", "--parsable", "-n1", "--mem=10", "-o", "/dev/null", *words,
                                "--wrap",
                                f"echo begun >> {started}; exec sleep 1000").stdout.strip()
        again, once = submit("--requeue"), submit("--no-requeue")
        srun = subprocess.Popen([*hosts[0].within(), "srun", "-i", "none", "--mem=10", "-J", "step", "sh", "-c",
                                 f"echo begun >> {started}; exec sleep 1000"], env=hosts[0].environment(),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        try:
            cluster.until(lambda: started.exists() and len(started.read_text().split()) == 3, what="three jobs")
            step = hosts[0].run("squeue", "-h", "-n", "step", "-o", "%i").stdout.strip()
            before = hosts[1].processes()
            hosts.reboot(1)
            assert before and not set(before) & set(hosts[1].processes())
            said = srun.communicate(timeout=cluster.SECONDS)[1]
            assert srun.returncode != 0 and "srun: error: Node failure on h1" in said
        finally:
            srun.kill()
            srun.wait()
        for job in (once, step):
            assert wait_ended(hosts, job)[0]["JobState"] == "NODE_FAIL", (job, said, hosts[0].logs())
        cluster.until(lambda: show(hosts, again)[0]["JobState"] == "PENDING", what="the job in the queue")
        assert show(hosts, again)[0]["Restarts"] == "1"
        if service == 2:
            hosts.wait_idle(1)
        else:
            assert hosts.state_of("h1") == "down" and reason(hosts) == "Node unexpectedly rebooted"
            hosts[0].run("scontrol", "update", "nodename=h1", "state=resume")
        # It need not wait for its time.
        hosts[0].run("scontrol", "update", f"jobid={again}", "starttime=now")
        cluster.until(lambda: len(started.read_text().split()) == 4, what="the job's second start")
        assert show(hosts, again)[0]["JobState"] == "RUNNING"
