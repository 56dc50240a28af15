"""A full disk: nothing is promised that is not stored, running jobs go on, and it recovers by itself."""

import os
import pathlib
import subprocess
import tempfile

import pytest

from cluster import Cluster, until

pytestmark = pytest.mark.live


def can_mount() -> bool:
    if os.geteuid() != 0:
        return False
    place = tempfile.mkdtemp(prefix="berth-mount-")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True)
    if done.returncode == 0:
        subprocess.run(["umount", place], check=True)
    os.rmdir(place)
    return done.returncode == 0


@pytest.fixture()
def small_disk():
    if not can_mount():
        pytest.skip("needs to mount a tmpfs")
    place = pathlib.Path(tempfile.mkdtemp(prefix="berth-disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=755", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=False)
        os.rmdir(place)


def fill(place: pathlib.Path) -> pathlib.Path:
    file = place / "filler"
    with open(file, "wb", buffering=0) as out:
        block = b"x" * (1 << 20)
        while block:
            try:
                out.write(block)
            except OSError:
                block = block[:len(block) // 2]
    return file


def test_full_disk(small_disk):
    # Only the store is on the small disk: output of jobs and the agent's records are elsewhere.
    with Cluster(emulate="2x0") as c:
        assert c.down().returncode == 0
        store = c.state / "state"
        (small_disk / "state").mkdir(mode=0o700)
        for path in store.iterdir():
            subprocess.run(["cp", "-a", path, small_disk / "state"], check=True)
        subprocess.run(["rm", "-rf", store], check=True)
        store.symlink_to(small_disk / "state")
        c.start()
        goes_on = c.work / "go"
        running = c.submit("-o", "/dev/null", "--wrap", f"until [ -e {goes_on} ]; do sleep 0.1; done")
        held = c.submit("-H", "--wrap", "true")
        c.wait_state(running, "RUNNING")
        filler = fill(small_disk)

        accepted = []
        refusals = []
        # What is already allocated on the disk may take a few small writes; big ones show it soon.
        script = c.work / "big.sh"
        script.write_text("#!/bin/bash\n#SBATCH -H -o /dev/null\n" + "# padding\n" * 20000)

        def refused():
            done = c.run("sbatch", "--parsable", script, rc=None)
            if done.returncode == 0:
                accepted.append(done.stdout.strip())
                return False
            refusals.append(done)
            return True
        until(refused, what="a refusal")
        assert refusals[0].stdout == ""
        assert refusals[0].stderr.strip() != ""
        # Reading goes on, and so does the job.
        assert c.job_state(running) == "RUNNING"
        done = c.run("scontrol", "update", f"jobid={held}", "comment=" + "y" * 100000, rc=None)
        assert done.returncode != 0 or c.field(held, "Comment").startswith("y")
        goes_on.write_text("")

        filler.unlink()
        after = until(lambda: c.run("sbatch", "--parsable", "-H", "--wrap", "true", rc=None).stdout.strip(),
                      what="recovery")
        c.wait_state(running, "COMPLETED")
        # What was promised is there after a restart too.
        assert c.down().returncode == 0
        c.start()
        known = c.out("sacct", "-n", "-X", "-P", "-o", "jobid").split()
        for job in [running, held, after, *accepted]:
            assert job in known, f"job {job} was promised and is gone"
