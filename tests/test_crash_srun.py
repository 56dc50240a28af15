"""Wherever a daemon or a supervisor dies, the command of an srun runs at most once, and srun comes to an end."""

import contextlib
import os
import signal
import subprocess

import pytest

from cluster import Cluster, until

pytestmark = pytest.mark.live

NODE = ["node.job_recorded", "node.prolog_done", "node.before_spawn", "node.after_spawn", "node.before_order",
        "node.after_order", "node.step_ended", "node.job_gone"]
STEP = ["step.before_tasks", "step.after_tasks", "step.before_result", "step.after_result"]
CONTROLLER = ["before_commit", "after_commit", "before_submit_reply", "after_submit_reply", "before_begin_job",
              "after_begin_job", "before_end_job", "before_forget"]


@pytest.fixture(scope="module")
def cluster():
    with Cluster(emulate="2x2") as c:
        yield c


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def pid_of(c, which):
    try:
        pid = c.pid(which)
    except (AssertionError, OSError, ValueError):
        return None
    return pid if alive(pid) else None


def end(c, which):
    pid = pid_of(c, which)
    if pid is None:
        return
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), what=f"the end of the {which}")


def started(c, which, before=None):
    """`berth up` until there is another one: a daemon that was killed may hold its lock for a moment, and one that is to
    die may be dead again."""
    def there():
        c.up()
        now = pid_of(c, which)
        return now if now != before else None
    return until(there, what=f"another {which}")


@pytest.mark.parametrize("point", [*NODE, *STEP, *(f"{point}:{n}" for point in CONTROLLER for n in (1, 2, 3))])
def test_a_command_runs_at_most_once(cluster, point):
    c = cluster
    which = "node" if "." in point else "controller"
    end(c, which)
    c.env["BERTH_CRASH_AT"] = point
    c.up()
    del c.env["BERTH_CRASH_AT"]
    now = pid_of(c, which)
    ran = c.work / f"ran.{point}"
    died = now is None
    if died:
        now = started(c, which)
    srun = c.popen("srun", "-N2", "-n2", "sh", "-c", f"echo $SLURM_PROCID >>{ran}; sleep 0.1")
    while srun.poll() is None or (not died and "." in point and point not in STEP):
        if not alive(now):
            died = True
            now = started(c, which, now)
        with contextlib.suppress(subprocess.TimeoutExpired):
            srun.wait(0.05)
    out, err = srun.communicate()
    # What it starts would die at the same place.
    end(c, which)
    started(c, which)
    tasks = sorted(ran.read_text().split()) if ran.exists() else []
    assert tasks in ([], ["0"], ["1"], ["0", "1"]), (tasks, out, err)
    assert srun.returncode != 0 or tasks == ["0", "1"], (srun.returncode, tasks, out, err)
    c.wait_idle()
