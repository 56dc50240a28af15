"""Several users of root's cluster: who may do what, and whose files are written."""

import os
import pathlib
import pwd
import stat

import pytest

from cluster import Cluster


pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]
# Users that Debian always has.
ALICE, BOB = "games", "news"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(emulate="2x2:a100") as c:
        yield c


def test_jobs_run_as_their_user(cluster):
    for user in (ALICE, BOB):
        assert cluster.out("srun", "-n1", "id", "-un", user=user) == user
        assert cluster.out("srun", "-n1", "id", "-Gn", user=user).split()[0] == user
    job = cluster.submit("-o", f"{cluster.work}/by-alice.%j", "--wrap", "id -un; umask", user=ALICE)
    cluster.wait_state(job, "COMPLETED")
    path = cluster.work / f"by-alice.{job}"
    assert path.read_text().split()[0] == ALICE
    assert path.stat().st_uid == pwd.getpwnam(ALICE).pw_uid


def test_others_jobs_are_not_ones_own(cluster):
    job = cluster.submit("-o", "/dev/null", "--wrap", "sleep 300", user=ALICE)
    cluster.wait_state(job, "RUNNING")
    for words in (["scancel", job], ["scontrol", "hold", job], ["scontrol", "update", f"jobid={job}", "comment=x"],
                  ["scontrol", "requeue", job], ["scontrol", "suspend", job]):
        done = cluster.run(*words, user=BOB, rc=None)
        assert done.returncode != 0, words
        assert "denied" in (done.stdout + done.stderr).lower(), done
    assert cluster.job_state(job) == "RUNNING"
    done = cluster.run("srun", f"--jobid={job}", "--overlap", "-n1", "true", user=BOB, rc=None)
    assert done.returncode != 0
    done = cluster.run("scontrol", "write", "batch_script", job, "-", user=BOB, rc=None)
    assert "sleep 300" not in done.stdout
    cluster.run("scancel", job, user=ALICE)
    cluster.wait_state(job, "CANCELLED")


def test_nodes_are_the_administrators(cluster):
    for words in (["update", "nodename=node1", "state=drain", "reason=x"], ["reconfigure"], ["shutdown"],
                  ["update", "partitionname=main", "state=down"]):
        done = cluster.run("scontrol", *words, user=BOB, rc=None)
        assert done.returncode != 0, words
    assert cluster.out("sinfo", "-h", "-o", "%D %t") == "2 idle"


def test_output_is_opened_as_the_user(cluster):
    """A link to a file of root's gains nothing."""
    secret = pathlib.Path(cluster.own) / "secret"
    secret.write_text("untouched\n")
    secret.chmod(0o600)
    link = cluster.work / "link.out"
    link.symlink_to(secret)
    job = cluster.submit("-o", link, "--wrap", "echo gained", user=BOB)
    cluster.wait_end(job)
    assert secret.read_text() == "untouched\n"


def test_files_of_the_cluster_are_closed(cluster):
    for path in [cluster.state / "state", *(cluster.state / "state").iterdir()]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE((cluster.state / "slurm.conf").stat().st_mode) & 0o022 == 0


def test_a_user_cannot_end_the_cluster(cluster):
    done = cluster.run("berth", "down", "--state", cluster.state, user=BOB, rc=None)
    assert done.returncode != 0
    assert cluster.out("sinfo", "-h", "-o", "%D") == "2"
