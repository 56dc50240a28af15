"""Priorities on a running cluster: what they are made of (sprio), how they change, what puts a job first, what the
controller counts (sdiag), and what jobs have waited for (sacct -o PendingReasons)."""

import json
import re

import pytest

from cluster import Cluster, until

pytestmark = pytest.mark.live

COMMON = """\
ClusterName=prio
SlurmctldHost=localhost
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
NodeName=n[1-4] CPUs=4 RealMemory=4000 Gres=gpu:4
PartitionName=low Nodes=ALL Default=YES PriorityJobFactor=1
PartitionName=high Nodes=ALL PriorityJobFactor=4
"""
WEIGHTS = """\
PriorityType=priority/multifactor
PriorityWeightAge=36000
PriorityMaxAge=00:10:00
PriorityCalcPeriod=00:00:02
PriorityWeightPartition=4000
PriorityWeightJobSize=1600
PriorityWeightTRES=GRES/gpu=1600
SlurmctldParameters=enable_user_top
"""


def cluster_of(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("conf")
    (folder / "slurm.conf").write_text(text)
    (folder / "gres.conf").write_text("NodeName=n[1-4] Name=gpu File=/dev/nvidia[0-3]\n")
    return Cluster(emulate=folder)


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    with cluster_of(tmp_path_factory, COMMON + WEIGHTS) as c:
        yield c


@pytest.fixture
def full(weighted):
    """All nodes are taken, so that what is submitted waits."""
    c = weighted
    blocker = c.submit("-N4", "--exclusive", "--wrap", "sleep 600")
    c.wait_state(blocker, "RUNNING")
    yield c
    c.run("scancel", *c.run("squeue", "-h", "-o", "%A").stdout.split())
    until(lambda: not c.run("squeue", "-h").stdout.strip(), what="the queue is empty")


def sprio(c, *words, code=0):
    run = c.run("sprio", *words, rc=code)
    return run.stdout + run.stderr


def order(c):
    """Jobs that wait, in the order of the queue."""
    rows = [line.split() for line in c.run("squeue", "-h", "-t", "PD", "-o", "%Q %V %A").stdout.splitlines()]
    return [job for _, _, job in sorted(rows, key=lambda row: (-int(row[0]), row[1], int(row[2])))]


def test_factors_and_their_sum(full):
    c = full
    job = c.submit("-p", "high", "-N2", "-n8", "--gpus=4", "--nice=100", "--wrap", "true")
    # 2 of 4 nodes and 8 of 16 CPUs; 4 of 16 GPUs; the best partition.
    row = sprio(c, "-h", "-j", job, "-o", "%i|%r|%J|%P|%T|%N|%S|%Q|%F|%B").strip()
    assert row == f"{job}|high|800|4000|gres/gpu=400|100|0|0|0|0"
    age, priority = sprio(c, "-h", "-j", job, "-o", "%A %Y").split()
    assert abs(int(priority) - (int(age) + 800 + 4000 + 400 - 100)) <= 1
    assert sprio(c, "-h", "-j", job, "-o", "%j %p %t").split() == ["0.5000000", "1.0000000", "gres/gpu=0.2500000"]
    assert c.run("squeue", "-h", "-j", job, "-o", "%Q").stdout.strip() != "0"
    low = c.submit("--wrap", "true")
    assert sprio(c, "-h", "-j", low, "-o", "%P").strip() == "1000"
    held = c.submit("-H", "--wrap", "true")
    assert held not in sprio(c, "-h", "-o", "%i").split()
    assert "Unable to find jobs" in sprio(c, "-j", held, code=1)
    both = c.submit("-p", "low,high", "--wrap", "true")
    assert sprio(c, "-h", "-j", both, "-o", "%r %P").split() == ["low", "1000", "high", "4000"]
    assert sprio(c, "-h", "-p", "high", "-o", "%i").split() == [job, both]
    assert order(c) == [job, both, low, held]


def test_columns_follow_the_weights(full):
    c = full
    c.submit("--wrap", "true")
    header = sprio(c).splitlines()[0]
    assert header.split() == ["JOBID", "PARTITION", "PRIORITY", "SITE", "AGE", "JOBSIZE", "PARTITION", "TRES"]
    assert sprio(c, "-w", "-h").split() == ["Weights", "1", "36000", "1600", "4000", "gres/gpu=1600"]
    assert "FAIRSHARE" in sprio(c, "-l") and "NICE" in sprio(c, "-l")
    assert "no federation" in sprio(c, "--federation", code=1)
    assert "Usage: sprio" in sprio(c, "--help")


def test_age_grows_and_stops_while_held(full):
    c = full
    old = c.submit("--wrap", "true")
    waiting = c.submit("--dependency=afterany:" + old, "--wrap", "true")

    def priority(job):
        return int(c.run("squeue", "-h", "-j", job, "-o", "%Q").stdout)

    first = priority(old)
    grown = until(lambda: priority(old) > first + 100 and priority(old), what="age counts")
    assert priority(waiting) < grown - 100
    c.run("scontrol", "hold", old)
    assert priority(old) == 0
    c.run("scontrol", "update", f"JobId={waiting}", "Priority=12345")
    assert priority(waiting) == 12345
    c.run("scontrol", "release", old)
    assert priority(old) >= grown - 60  # what it had waited before is not lost


def test_top_and_nice(full):
    c = full
    jobs = [c.submit("--wrap", "true") for _ in range(4)]
    assert order(c) == jobs
    c.run("scontrol", "top", f"{jobs[3]},{jobs[1]}")
    assert order(c) == [jobs[3], jobs[1], jobs[0], jobs[2]]
    c.run("scontrol", "update", f"JobId={jobs[3]}", "Nice=50000")
    assert order(c) == [jobs[1], jobs[0], jobs[2], jobs[3]]


def test_a_better_one_starts_first(weighted):
    c = weighted
    blocker = c.submit("-N4", "--exclusive", "--wrap", "sleep 600")
    c.wait_state(blocker, "RUNNING")
    low = c.submit("-N4", "--exclusive", "--wrap", "true")
    high = c.submit("-N4", "--exclusive", "-p", "high", "--wrap", "true")
    assert order(c) == [high, low]
    until(lambda: "00:00:01" in c.run("sacct", "-n", "-X", "-P", "-j", low, "-o", "PendingReasons").stdout,
          what="a second of waiting")
    c.run("scancel", blocker)
    for job in (low, high):
        c.wait_state(job, "COMPLETED")
    start = {j: c.run("scontrol", "show", "job", j).stdout for j in (low, high)}
    when = {j: re.search(r"StartTime=(\S+)", text).group(1) for j, text in start.items()}
    assert when[high] <= when[low]
    # What it waited for is kept with the job.
    text = c.run("sacct", "-n", "-X", "-P", "-j", low, "-o", "PendingReasons").stdout.strip()
    assert re.fullmatch(r"(\w+:\d\d:\d\d:\d\d)(,\w+:\d\d:\d\d:\d\d)*", text), text
    assert text.startswith(("Priority:", "Resources:"))


def test_sdiag_counts(weighted):
    c = weighted
    c.run("sdiag", "-r")
    job = c.submit("--wrap", "true")
    c.wait_state(job, "COMPLETED")
    c.run("squeue")
    text = c.run("sdiag").stdout

    def figure(name):
        return int(re.search(re.escape(name) + r"\s*(\d+)", text).group(1))

    assert figure("Jobs submitted:") == 1
    assert figure("Jobs started:") == 1
    assert figure("Total cycles:") >= 1
    assert figure("Max cycle:") >= figure("Mean cycle:")
    # Questions that the state thread never sees are counted too.
    assert re.search(r"\tListJobs +\( +30\) count:\d+ +ave_time:\d+ +total_time:\d+", text), text
    assert re.search(r"\tSubmitJob +\( +10\) count:1 ", text), text
    figures = json.loads(c.run("sdiag", "--json").stdout)["statistics"]
    assert figures["jobs_submitted"] == 1
    assert {r["message_type"] for r in figures["rpcs_by_message_type"]} >= {"SubmitJob", "ListJobs"}


def test_configuration_is_shown(weighted):
    text = weighted.run("scontrol", "show", "config").stdout
    for line in ("PriorityType            = priority/multifactor", "PriorityMaxAge          = 00:10:00",
                 "PriorityCalcPeriod      = 00:00:02", "PriorityWeightAge       = 36000"):
        assert line in text


def test_first_come_first_served(tmp_path_factory):
    with cluster_of(tmp_path_factory, COMMON + "PriorityType=priority/basic\n") as c:
        blocker = c.submit("-N4", "--exclusive", "--wrap", "sleep 600")
        c.wait_state(blocker, "RUNNING")
        jobs = [c.submit("-p", p, "--wrap", "true") for p in ("low", "high", "low")]
        assert order(c) == jobs
        text = sprio(c, code=1)
        assert "You are not running a supported priority plugin" in text and "priority/basic" in text
        # Without a restart: who waits keeps its place.
        conf = c.conf.read_text()
        c.conf.write_text(conf.replace("priority/basic", "priority/multifactor") + "PriorityWeightPartition=1000\n")
        c.run("scontrol", "reconfigure")
        assert order(c) == [jobs[1], jobs[0], jobs[2]]
