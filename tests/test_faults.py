"""Faults of one machine: a slow disk, one that fails, a power cut, daemons that are stopped for a while, prologs and epilogs that
hang."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time

import pytest

from cluster import Cluster, until

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts, and prologs of root"),
]

# What the controller's syncs do is said by two files: how many milliseconds they take, and whether they fail.
SYNCS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
static int synced(const char* name, int fd) {
  int ms = 0;
  FILE* file = fopen(FOLDER "/slow", "r");
  if (file) { if (fscanf(file, "%d", &ms) != 1) ms = 0; fclose(file); }
  usleep(ms * 1000);
  if (access(FOLDER "/fails", F_OK) == 0) { errno = EIO; return -1; }
  return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}
int fsync(int fd) { return synced("fsync", fd); }
int fdatasync(int fd) { return synced("fdatasync", fd); }
"""


@pytest.fixture(scope="module")
def syncs():
    """A cluster whose controller's syncs can be made slow, or made to fail."""
    with Cluster(emulate="2x0") as c:
        folder = pathlib.Path(c.own)
        (folder / "syncs.c").write_text(SYNCS)
        subprocess.run(["gcc-12", "-shared", "-fPIC", f'-DFOLDER="{folder}"', "-o", folder / "syncs.so", folder / "syncs.c", "-ldl"],
                       check=True)
        os.kill(c.pid("controller"), signal.SIGKILL)
        # Only the controller: everything else is static, or started by the agent that runs already.
        c.run("berth", "up", "--state", c.state, "--emulate", "2x0", env={"LD_PRELOAD": str(folder / "syncs.so")})
        assert "syncs.so" in pathlib.Path(f"/proc/{c.pid('controller')}/maps").read_text()
        c.slow, c.fails = folder / "slow", folder / "fails"
        yield c


def test_a_slow_disk_slows_down_what_has_to_be_stored_and_nothing_else(syncs):
    syncs.slow.write_text("700")
    stop = threading.Event()
    try:
        before = time.monotonic()
        syncs.submit("-H", "-o", "/dev/null", "--wrap", "true")
        assert time.monotonic() - before >= 0.7  # it did wait for the disk
        submitting = threading.Thread(target=lambda: [syncs.submit("-H", "-o", "/dev/null", "--wrap", "true")
                                                      for _ in range(100) if not stop.is_set()])
        submitting.start()
        took = []
        for _ in range(20):
            began = time.monotonic()
            syncs.run("sinfo")
            syncs.run("squeue")
            took.append(time.monotonic() - began)
        assert sorted(took)[len(took) // 2] < 0.6, took  # a question waits for no sync
        assert syncs.out("sinfo", "-h", "-o", "%D %T") == "2 idle"
    finally:
        stop.set()
        submitting.join()
        syncs.slow.unlink()
        syncs.run("scancel", "-u", "root")


def test_after_a_sync_that_failed_nothing_is_acknowledged_until_one_succeeds(syncs):
    running = syncs.submit("-o", "/dev/null", "--wrap", "sleep 2")
    syncs.wait_state(running, "RUNNING")
    syncs.fails.touch()
    try:
        for _ in range(3):
            refused = syncs.run("sbatch", "-H", "-J", "refused", "-o", "/dev/null", "--wrap", "true", rc=None)
            assert refused.returncode != 0 and not refused.stdout, refused
        assert "refused" not in syncs.out("squeue", "-h", "-o", "%j")
        syncs.run("sinfo")
    finally:
        syncs.fails.unlink()
    accepted = until(lambda: syncs.run("sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap", "true", rc=None).stdout.strip(),
                     what="a submission after the disk works again")
    assert syncs.wait_end(running) == "COMPLETED"
    os.kill(syncs.pid("controller"), signal.SIGKILL)
    syncs.start()
    assert syncs.job_state(accepted) == "PENDING" and "refused" not in syncs.out("squeue", "-h", "-o", "%j")
    syncs.run("scancel", accepted)


# ---- a power cut ---------------------------------------------------------------------------------

EXT4_IOC_SHUTDOWN, NO_LOG_FLUSH = 0x8004587D, 2


@pytest.fixture
def ext4():
    """A file system that can lose its power: what was not synced is gone."""
    if not shutil.which("mkfs.ext4"):
        pytest.skip("needs mkfs.ext4")
    place = pathlib.Path(tempfile.mkdtemp(prefix="berth-power-"))
    image = place.with_suffix(".img")
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)

    def mount():
        return subprocess.run(["mount", "-o", "loop", image, place]).returncode == 0
    if not mount():
        pytest.skip("needs to mount a file")
    place.chmod(0o755)
    yield place, mount
    subprocess.run(["umount", "-l", place], check=False)
    place.rmdir()
    image.unlink()


def test_a_power_cut_loses_nothing_that_was_acknowledged(ext4):
    place, mount = ext4
    with Cluster(emulate="2x0") as c:
        c.down()
        shutil.copytree(c.state / "state", place / "state")
        shutil.rmtree(c.state / "state")
        (c.state / "state").symlink_to(place / "state")
        os.chmod(place / "state", 0o700)
        subprocess.run(["sync", "-f", place], check=True)  # the copy is ours to sync
        acknowledged = []
        for _ in range(3):
            c.start()
            acknowledged += [c.submit("-H", "-o", "/dev/null", "--wrap", "true") for _ in range(20)]
            pids = [c.pid("controller"), c.pid("node")]
            folder = os.open(place, os.O_RDONLY)
            try:
                fcntl.ioctl(folder, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
            except OSError as error:
                pytest.skip(f"this kernel does not shut down a file system: {error}")
            finally:
                os.close(folder)
            refused = c.run("sbatch", "-H", "-o", "/dev/null", "--wrap", "true", rc=None, timeout=90)
            assert refused.returncode != 0, refused
            # The agent has a mount namespace, in which the file system would live on.
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                until(lambda: not os.path.exists(f"/proc/{pid}/cwd"), what="the end of both daemons")
            until(lambda: subprocess.run(["umount", place], capture_output=True).returncode == 0, what="no power")
            until(lambda: str(place.with_suffix(".img")) not in subprocess.run(["losetup", "-a"], capture_output=True, text=True).stdout,
                  what="the end of the file system")
            assert mount()
        c.start()
        assert len(set(acknowledged)) == 60
        assert set(acknowledged) <= set(c.out("squeue", "-h", "-o", "%i").split())
        assert int(c.submit("-H", "--wrap", "true")) > max(map(int, acknowledged))


# ---- who is stopped and goes on -------------------------------------------------------------------

def test_a_controller_that_stood_still_does_each_thing_once():
    with Cluster(emulate="2x0") as c:
        ran = c.work / "ran"
        running = c.submit("-o", "/dev/null", "--wrap", "sleep 1")
        c.wait_state(running, "RUNNING")
        controller = c.pid("controller")
        os.kill(controller, signal.SIGSTOP)
        try:
            waiting = [c.popen("sbatch", "-o", "/dev/null", "--wrap", f"echo $SLURM_JOB_ID >>{ran}") for _ in range(5)]
            time.sleep(3)  # the fault itself: it stands still for so long
            assert all(w.poll() is None for w in waiting)
        finally:
            os.kill(controller, signal.SIGCONT)
        ids = sorted(w.communicate(timeout=60)[0].split()[-1] for w in waiting)
        assert len(set(ids)) == 5
        assert c.wait_end(running) == "COMPLETED"
        for job in ids:
            assert c.wait_end(job) == "COMPLETED"
        assert sorted(ran.read_text().split()) == ids


def test_an_agent_that_stood_still_does_each_thing_once():
    with Cluster(emulate="2x0") as c:
        ran = c.work / "ran"
        running = c.submit("-o", "/dev/null", "--wrap", f"sleep 1; echo over >>{c.work}/over")
        c.wait_state(running, "RUNNING")
        agent = c.pid("node")
        os.kill(agent, signal.SIGSTOP)
        try:
            ids = [c.submit("-o", "/dev/null", "--wrap", f"echo $SLURM_JOB_ID >>{ran}") for _ in range(5)]
            until(lambda: (c.work / "over").exists(), what="the end of a script without its agent")
            time.sleep(2)  # the fault itself
        finally:
            os.kill(agent, signal.SIGCONT)
        for job in [running, *ids]:
            assert c.wait_end(job) == "COMPLETED"
        assert sorted(ran.read_text().split()) == sorted(ids)
        assert (c.work / "over").read_text() == "over\n"


# ---- prologs and epilogs --------------------------------------------------------------------------

CONF = """\
ClusterName=prologs
SlurmctldHost=localhost
SelectType=select/cons_tres
GresTypes=gpu
ReturnToService=2
PrologEpilogTimeout=2
Prolog={dir}/prolog
Epilog={dir}/epilog
NodeName=n[1-2] CPUs=4 RealMemory=1000 Gres=gpu:1
PartitionName=main Nodes=ALL Default=YES
"""


@pytest.fixture
def prologs(tmp_path):
    """A cluster whose prolog and epilog do on a node what the file NAME.NODE says."""
    for name in ("prolog", "epilog"):
        (tmp_path / name).write_text(f"#!/bin/sh\nstatus=0\n[ ! -e {tmp_path}/{name}.$SLURMD_NODENAME ] || . {tmp_path}/{name}.$SLURMD_NODENAME\n"
                                     f"exit $status\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "slurm.conf").write_text(CONF.format(dir=tmp_path))
    (tmp_path / "gres.conf").write_text("NodeName=n[1-2] Name=gpu Count=1\n")
    with Cluster(emulate=tmp_path) as c:
        c.scripts = tmp_path
        yield c


@pytest.mark.parametrize("how", ["sleep 300 & wait", "status=3", "kill -9 $$", "kill -STOP $$"], ids=["hangs", "fails", "is killed", "is stopped"])
def test_a_prolog_that_does_not_do_its_work_costs_its_node_and_not_the_job(prologs, how):
    c = prologs
    (c.scripts / "prolog.n1").write_text(how + "\n")
    ran = c.work / "ran"
    job = c.submit("-w", "n1", "-o", "/dev/null", "--requeue", "--wrap", f"echo ran >>{ran}")
    until(lambda: "drain" in c.out("sinfo", "-h", "-n", "n1", "-o", "%T"), what="a drained node")
    reason = c.out("sinfo", "-h", "-n", "n1", "-o", "%E")
    assert "rolog" in reason, reason
    until(lambda: c.job_state(job) == "PENDING", what="the job back in the queue")
    assert not ran.exists()
    c.run("scontrol", "release", job, rc=None)
    (c.scripts / "prolog.n1").unlink()
    c.run("scontrol", "update", "nodename=n1", "state=resume")
    assert c.wait_end(job) == "COMPLETED"
    assert ran.read_text() == "ran\n"


def test_a_gpu_is_not_handed_on_before_the_epilog_is_over(prologs):
    c = prologs
    go = c.work / "go"
    (c.scripts / "epilog.n1").write_text(f"while [ ! -e {go} ]; do sleep 0.05; done\ndate +%s.%N >{c.work}/epilog.$SLURM_JOB_ID\n")
    first = c.submit("-w", "n1", "--gres=gpu:1", "-o", "/dev/null", "--wrap", "true")
    until(lambda: c.out("squeue", "-h", "-j", first, "-o", "%t") == "CG", what="the epilog")
    second = c.submit("-w", "n1", "--gres=gpu:1", "-o", "/dev/null", "--wrap", f"date +%s.%N >{c.work}/second")
    assert c.job_state(second) == "PENDING"
    go.touch()
    assert c.wait_end(second) == "COMPLETED"
    assert float((c.work / f"epilog.{first}").read_text()) < float((c.work / "second").read_text())


@pytest.mark.parametrize("how", ["sleep 300 & wait", "status=3"], ids=["hangs", "fails"])
def test_an_epilog_that_does_not_do_its_work_drains_its_node(prologs, how):
    c = prologs
    (c.scripts / "epilog.n1").write_text(how + "\n")
    job = c.submit("-w", "n1", "--gres=gpu:1", "-o", "/dev/null", "--wrap", "true")
    assert c.wait_end(job) == "COMPLETED"
    until(lambda: "drain" in c.out("sinfo", "-h", "-n", "n1", "-o", "%T"), what="a drained node")
    assert "pilog" in c.out("sinfo", "-h", "-n", "n1", "-o", "%E")
    next_one = c.submit("-w", "n1", "--gres=gpu:1", "-o", "/dev/null", "--wrap", "true")
    until(lambda: c.job_state(next_one) == "PENDING" and c.field(next_one, "Reason") not in ("", "None"), what="a reason")
    c.run("scancel", next_one)
