"""berth up, status and down on the real programs."""

import fcntl
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import pytest

from cluster import ROOT, Cluster, as_user, bin_dir, clean_environment, processes_naming, until

pytestmark = pytest.mark.live
CORPUS = ROOT / "tests/conf/corpus"
USER = "games"  # whom Debian always has


def berth(*words, env=None, timeout=120, **options):
    return subprocess.run([bin_dir() / "berth", *map(str, words)], env=env or clean_environment(), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout, **options)


def test_this_machine_from_nothing_to_nothing():
    with Cluster() as c:
        assert re.match(r"cluster local is up; its state is in " + re.escape(str(c.state)), c.up_text)
        assert "export" not in c.up_text  # PATH and SLURM_CONF are set
        tries = c.up_text.split("try:\n")[1].splitlines()
        assert sum(line.strip().startswith(("sinfo", "srun", "sbatch")) for line in tries) == 3
        # What it says to try works.
        assert " idle " in c.out("sinfo")
        assert c.out("srun", "-n1", "printenv", "SLURM_PROCID") == "0"
        assert "DefMemPerCPU" in c.conf.read_text()
        again = c.up()
        assert again.returncode == 0 and "runs already" in again.stdout
        # It is not where commands look by themselves: the hint says what to set.
        bare = berth("up", "--state", c.state, env={"PATH": "/usr/bin:/bin", "HOME": c.own})
        assert f"export PATH={bin_dir()}:$PATH SLURM_CONF={c.conf}" in bare.stdout
        status = c.run("berth", "status", "--state", c.state).stdout
        assert "1 of 1 are up" in status
        down = c.down()
        assert down.returncode == 0, down.stderr
        assert not processes_naming(str(c.state))
        assert c.run("berth", "status", "--state", c.state, rc=3).stdout.startswith("no cluster runs")
        assert c.down().returncode == 0  # nothing to do is no error


def test_run_files_go_and_state_stays():
    base = pathlib.Path("/run/berth") if os.geteuid() == 0 else None
    with Cluster(emulate="2x0") as c:
        job = c.submit("--wrap", "true", "-o", "/dev/null")
        c.wait_state(job, "COMPLETED")
        before = set(base.iterdir()) if base else set()
        assert c.down().returncode == 0
        if base:
            left = set(base.iterdir()) if base.exists() else set()
            assert left < before
        # The next cluster in the same place goes on where the last one ended: ids are not used again.
        c.start()
        later = c.submit("--wrap", "true", "-o", "/dev/null")
        assert int(later) > int(job)
        assert job in c.out("sacct", "-n", "-X", "-o", "jobid")


@pytest.mark.parametrize(
    ("spec", "nodes", "gres"),
    [
        ("4x4:a100", "4", "gpu:a100:4(S:0-1)"),
        ("gpu[1-2]:cpus=8:mem=32G:gpus=v100x2", "2", "gpu:v100:2(S:0-1)"),
        ("3x0", "3", "(null)"),
    ],
)
def test_emulated_by_spec(spec, nodes, gres):
    with Cluster(emulate=spec) as c:
        assert c.out("sinfo", "-h", "-o", "%D %G %t") == f"{nodes} {gres} idle"
        assert "(pretended)" in c.up_text
        # Other configuration, same place: refused while it runs.
        other = c.call([bin_dir() / "berth", "up", "--state", c.state, "--emulate", "9x1"])
        assert other.returncode == 1 and "another configuration" in other.stderr


def test_emulated_by_directory_is_found_by_its_slurm_conf():
    with Cluster(emulate=CORPUS) as c:
        conf = pathlib.Path(c.emulate)
        assert (c.state / "gres.conf").read_text() == (conf / "gres.conf").read_text()
        for path in (c.conf, conf / "slurm.conf"):
            text = c.out("sinfo", "-h", "-p", "ml", "-o", "%N", env={"SLURM_CONF": str(path)})
            assert text == "gpu[1-4]"
        assert c.submit("-H", "--wrap", "true") == "20001"
        # Jobs are told the file that was named, not the copy.
        assert c.out("srun", "-n1", "printenv", "SLURM_CONF") == str(conf / "slurm.conf")
        # A second cluster of the same directory does not take the name away.
        with Cluster(emulate="1x0") as d:
            assert d.down().returncode == 0
            d.emulate = c.emulate
            d.start()
            assert "names another cluster that runs" in d.up_text
            assert d.out("srun", "-n1", "printenv", "SLURM_CONF") == str(d.conf)
            assert c.out("srun", "-n1", "printenv", "SLURM_CONF") == str(conf / "slurm.conf")


def test_two_clusters_side_by_side():
    with Cluster(emulate="2x1:a100") as a, Cluster(emulate="3x2:h100") as b:
        assert a.out("sinfo", "-h", "-o", "%D %G") == "2 gpu:a100:1(S:0)"
        assert b.out("sinfo", "-h", "-o", "%D %G") == "3 gpu:h100:2(S:0-1)"
        job = a.submit("-H", "--wrap", "true")
        assert b.job_state(job) == ""
        # BERTH_CLUSTER is enough where there is no SLURM_CONF.
        env = dict(b.env, BERTH_CLUSTER=str(b.state))
        del env["SLURM_CONF"]
        run = subprocess.run(["sinfo", "-h", "-o", "%D"], env=env, text=True, capture_output=True, check=True)
        assert run.stdout.strip() == "3"
        a.stop()
        assert b.out("sinfo", "-h", "-o", "%D") == "3"


def test_thousand_nodes_in_one_agent():
    with Cluster(emulate="1000x8:h100") as c:
        assert "1000 nodes" in c.up_text
        assert c.out("sinfo", "-h", "-o", "%D %t") == "1000 idle"
        agents = [p for p, line in processes_naming(str(c.state)).items() if "/berthd " in line]
        assert len(agents) == 1
        job = c.submit("-N1000", "-n1000", "-o", "/dev/null", "--wrap", "true")
        c.wait_state(job, "COMPLETED", seconds=180)
        assert c.field(job, "NumNodes") == "1000"


def test_plain_jobs_share_a_node():
    """Memory defaults to each CPU's share: without it the first job would hold the whole node."""
    with Cluster(emulate="1x0") as c:
        jobs = [c.submit("-n1", "-o", "/dev/null", "--wrap", "sleep 300") for _ in range(3)]
        for job in jobs:
            c.wait_state(job, "RUNNING")


def test_down_ends_every_process(tmp_path):
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=stubborn\nKillWait=2\nSlurmdParameters=config_overrides\nNodeName=n[1-2] CPUs=4 RealMemory=4096\n"
        "PartitionName=main Nodes=ALL Default=YES State=UP\n")
    with Cluster(emulate=tmp_path) as c:
        mark = f"berth-left-{os.getpid()}-{time.monotonic_ns()}"
        # A child that ignores SIGTERM and one that left its session and its parent.
        script = c.work / "stubborn.sh"
        script.write_text("#!/bin/bash\n#SBATCH -o /dev/null\ntrap '' TERM\n"
                          f"(setsid bash -c 'exec -a {mark} sleep 1000' &)\n"
                          f"bash -c 'exec -a {mark} sleep 1000'\n")
        job = c.submit(script)
        c.wait_state(job, "RUNNING")
        until(lambda: len(processes_naming(mark)) >= 2, what="the job's processes")
        assert c.down().returncode == 0
        until(lambda: not processes_naming(mark), seconds=10, what="the end of the job's processes")


def test_killed_daemons_come_back_with_up():
    with Cluster(emulate="2x0") as c:
        held = c.submit("-H", "--wrap", "true")
        running = c.submit("-o", "/dev/null", "--wrap", "sleep 300")
        c.wait_state(running, "RUNNING")
        for which in ("controller", "node"):
            os.kill(c.pid(which), signal.SIGKILL)
            until(lambda: c.run("berth", "status", "--state", c.state, rc=None).returncode == 3, what="its end")
            c.start()
        assert c.job_state(held) == "PENDING"
        assert c.job_state(running) == "RUNNING"


def test_up_starts_anew_what_was_on_its_way_out():
    """A process that was killed keeps its lock until the last of its threads is gone."""
    with Cluster(emulate="2x0") as c:
        pid = c.pid("controller")
        paths = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        with open(next(path for path in paths if path.endswith(".pid"))) as lock:
            os.kill(pid, signal.SIGKILL)
            fcntl.flock(lock, fcntl.LOCK_EX)  # got when it is gone; from now on as if it were not
            release = threading.Timer(2, fcntl.flock, (lock, fcntl.LOCK_UN))
            release.start()
            c.start()
            release.join()
        assert c.pid("controller") != pid


def test_a_slurm_conf_of_ones_own_is_kept():
    with Cluster(emulate="2x0") as c:
        assert c.down().returncode == 0
        own = c.conf.read_text().replace("# Made by berth up", "# Mine")
        c.conf.write_text(own)
        run = c.up()
        assert run.returncode == 1 and "your own" in run.stderr
        assert c.conf.read_text() == own
        c.conf.write_text(own.replace("# Mine", "# Made by berth up"))
        c.start()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--emulate", "4x"], "--emulate"),
        (["--emulate", "/no/such/place"], "no such directory"),
        (["--state", "/dev/null/x"], "choose another place with --state"),
        (["--colour"], "unrecognized option"),
        (["now"], "what is now?"),
    ],
)
def test_refusals(words, text, tmp_path):
    more = [] if "--state" in words else ["--state", tmp_path / "state"]
    run = berth("up", *words, *more)
    assert run.returncode == 1
    assert text in run.stderr
    assert run.stdout == ""


def test_a_broken_configuration_names_the_line(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/slurm.conf").write_text("ClusterName=c\nNodeNme=n1\n")
    run = berth("up", "--state", tmp_path / "state", "--emulate", tmp_path / "conf")
    assert run.returncode == 1
    assert "slurm.conf:2: NodeNme is not a key of slurm.conf; did you mean NodeName?" in run.stderr


def test_down_and_status_of_nothing(tmp_path):
    run = berth("down", "--state", tmp_path / "none")
    assert run.returncode == 1 and "there is no cluster" in run.stderr
    run = berth("status", "--state", tmp_path / "none")
    assert run.returncode == 3
    for command in ("up", "down", "status"):
        run = berth(command, "--help")
        assert run.returncode == 0 and run.stdout.startswith(f"usage: berth {command}")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_as_a_plain_user():
    """No root, no configuration: the user's own state directory, found without any variable."""
    entry = pwd.getpwnam(USER)
    home = pathlib.Path(tempfile.mkdtemp(prefix="berth-home-", dir="/tmp"))
    (home / "run").mkdir(mode=0o700)
    for path in (home, home / "run"):
        os.chown(path, entry.pw_uid, entry.pw_gid)
    env = clean_environment(HOME=str(home), XDG_STATE_HOME=str(home / "state"), XDG_RUNTIME_DIR=str(home / "run"))
    try:
        run = berth("up", "--emulate", "2x2:a100", env=env, **as_user(USER))
        try:
            assert run.returncode == 0, run.stderr
            assert "SLURM_CONF" not in run.stdout
            who = subprocess.run(["srun", "-n1", "id", "-un"], env=env, text=True, capture_output=True,
                                 timeout=60, cwd="/", stdin=subprocess.DEVNULL, **as_user(USER))
            assert who.stdout.strip() == USER, who.stderr
        finally:
            down = berth("down", env=env, **as_user(USER))
        assert down.returncode == 0, down.stderr
        assert not processes_naming(str(home / "state"))
        assert list((home / "run").iterdir()) == []
    finally:
        shutil.rmtree(home)
