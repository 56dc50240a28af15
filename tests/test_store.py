"""What the controller has stored: checked, backed up, restored; damage and old copies are refused, in words."""

import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import time

import pytest

from cluster import Cluster, bin_dir, processes_naming, until

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def cluster():
    with Cluster(emulate="2x0") as c:
        yield c


def store(c):
    return c.state / "state"


def controller(c, *words, rc=0):
    """berthctld instead of the one that serves."""
    done = subprocess.run([bin_dir() / "berthctld", "-f", c.state / "slurm.conf", "--state", store(c), *map(str, words)],
                          text=True, capture_output=True, timeout=60)
    assert rc is None or done.returncode == rc, done.stdout + done.stderr
    return done.stdout + done.stderr


def stop_controller(c):
    """The agent and its jobs go on."""
    pid = c.pid("controller")
    os.kill(pid, signal.SIGTERM)
    until(lambda: not os.path.exists(f"/proc/{pid}") or "(zombie)" in pathlib.Path(f"/proc/{pid}/status").read_text(),
          what="the controller has stopped")


def copy(source, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def test_check_and_damage(cluster):
    c = cluster
    held = [c.submit("-H", "--wrap", "true") for _ in range(5)]
    assert "another controller uses" in controller(c, "--check", rc=1)
    assert re.search(r"Damage:\s+none", c.out("sdiag"))
    stop_controller(c)
    assert "5 jobs" in controller(c, "--check") and "whole" in controller(c, "--check")
    copy(store(c), c.work / "good")
    with open(store(c) / "berth.db", "r+b") as file:
        for page in range(os.path.getsize(file.name) // 4096):
            file.seek(page * 4096 + 2000)
            byte = file.read(1)
            file.seek(page * 4096 + 2000)
            file.write(bytes([byte[0] ^ 4]))
    told = controller(c, "--check", rc=1)
    assert "DAMAGED" in told and "berth restore" in told and "page 1 of" in told
    told = c.up(timeout=60)
    assert told.returncode != 0
    assert "is damaged" in c.logs()
    copy(c.work / "good", store(c))
    c.start()
    assert all(c.job_state(job) == "PENDING" for job in held)
    for job in held:
        c.run("scancel", job)


def test_a_backup_of_a_running_cluster_goes_back_and_no_id_comes_again(cluster):
    c = cluster
    file = c.work / "backup"
    waits = c.submit("--begin=now+1hour", "--wrap", "true")
    conf = ["-f", c.state / "slurm.conf"]
    assert "bytes" in c.out("berth", "backup", file, *conf)
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert "is there already" in c.run("berth", "backup", file, *conf, rc=1).stderr
    if os.geteuid() == 0:
        assert c.run("berth", "backup", "/tmp/berth-no-backup", *conf, rc=None, user="nobody").returncode != 0
        assert not os.path.exists("/tmp/berth-no-backup")
    later = [int(c.submit("-H", "--wrap", "true")) for _ in range(3)]
    assert "stop it first" in c.run("berth", "restore", file, *conf, rc=1).stderr
    stop_controller(c)
    said = c.out("berth", "restore", file, *conf)
    assert "lost: 3 jobs" in said and str(later[0]) in said and "are held" in said
    c.start()
    assert c.job_state(waits) == "PENDING" and "JobHeldAdmin" in c.out("scontrol", "show", "job", waits)
    assert int(c.submit("-H", "--wrap", "true")) > max(later)
    c.run("scontrol", "release", waits)
    assert "JobHeldAdmin" not in c.out("scontrol", "show", "job", waits)


def test_a_new_store_is_not_taken_by_an_agent_that_knows_another(cluster):
    """Somebody removed the directory of the store: the agent says so, and goes on when it is back, or given up."""
    c = cluster
    held = c.submit("-H", "--wrap", "true")
    begun = c.submit("-o", "/dev/null", "--wrap", "sleep 300")
    c.wait_state(begun, "RUNNING")
    stop_controller(c)
    shutil.move(store(c), c.work / "kept")
    words = [bin_dir() / "berthctld", "-f", c.state / "slurm.conf", "--state", store(c), "--emulate", "--foreground"]

    def serve(refused):
        log = c.work / "other.log"
        with open(log, "w") as out:
            process = subprocess.Popen(words, stdout=out, stderr=out, env=c.env)
        try:
            until(lambda: ("belongs to another store" if refused else "2 of 2 nodes registered") in log.read_text(),
                  what="the agent's registration")
            assert "belongs to another store" in log.read_text() or not refused
            assert [state.endswith("*") for state in c.out("sinfo", "-h", "-N", "-o", "%t").split()] == [refused] * 2
            return c.out("squeue", "-h", "-o", "%i")
        finally:
            process.terminate()
            process.wait(10)

    def accept_later():
        """When a loss is accepted starts are numbered by the time of day, and the later one counts."""
        began = time.time()
        until(lambda: time.time() > began + 3, what="a later second")
        controller(c, "--accept-loss")

    assert serve(refused=True) == ""
    shutil.move(store(c), c.work / "empty")
    shutil.move(c.work / "kept", store(c))
    assert {begun, held} <= set(serve(refused=False).split())
    stopped = store(c).rename(c.work / "kept")
    shutil.move(c.work / "empty", store(c))
    accept_later()
    assert serve(refused=False) == ""  # and what ran there is ended
    until(lambda: not any("sleep 300" in line for line in processes_naming(f"BERTH_STEP={begun}").values()), what="the end of the job")
    shutil.rmtree(store(c))
    stopped.rename(store(c))
    accept_later()
    c.start()
    assert c.job_state(held) == "PENDING"
