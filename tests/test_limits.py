"""Limits of partitions: each is honoured and named, at submission (EnforcePartLimits=ALL) or while the job waits (NO).

Defaults of partitions (DefCpuPerGPU and its like) and cores that are kept for GPU jobs are here too."""

import dataclasses
import pwd

import pytest

from cluster import Cluster, until

pytestmark = pytest.mark.live

USER = "nobody"

CONF = """\
ClusterName=limits
SlurmctldHost=localhost
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=10
EnforcePartLimits={enforce}
NodeName=n[1-3] Sockets=2 CoresPerSocket=4 RealMemory=4000 Gres=gpu:2
NodeName=g1 Sockets=1 CoresPerSocket=4 RealMemory=4000 Gres=gpu:1 RestrictedCoresPerGPU=3
PartitionName=all Nodes=n[1-3] Default=YES
PartitionName=brief Nodes=n[1-3] MaxTime=10 DefaultTime=3
PartitionName=narrow Nodes=n[1-3] MaxNodes=1
PartitionName=wide Nodes=n[1-3] MinNodes=2
PartitionName=lean Nodes=n[1-3] MaxMemPerNode=1000
PartitionName=cpus Nodes=n[1-3] MaxCPUsPerNode=2
PartitionName=sockets Nodes=n[1-3] MaxCPUsPerSocket=1
PartitionName=percpu Nodes=n[1-3] MaxMemPerCPU=100
PartitionName=pergpu Nodes=n[1-3] DefCpuPerGPU=2 DefMemPerGPU=500
PartitionName=kept Nodes=g1
PartitionName=rooted Nodes=n[1-3] RootOnly=YES
PartitionName=grouped Nodes=n[1-3] AllowGroups=root
PartitionName=accounts Nodes=n[1-3] AllowAccounts=physics
PartitionName=noaccount Nodes=n[1-3] DenyAccounts=biology
PartitionName=qos Nodes=n[1-3] AllowQos=high
PartitionName=noqos Nodes=n[1-3] DenyQos=low
"""


@dataclasses.dataclass
class Limit:
    partition: str
    words: tuple
    reason: str  # of the job that waits under NO; "" = refused all the same
    error: str  # Slurm's words when it is refused
    named: str  # in berth's line at submission, and in scontrol explain job
    user: str = ""


LIMITS = [
    Limit("brief", ("-t", "20"), "PartitionTimeLimit", "Requested time limit is invalid",
          "is above the 00:10:00 of partition brief"),
    Limit("narrow", ("-N2",), "PartitionNodeLimit", "Requested partition configuration not available now",
          "2 nodes asked, partition narrow allows 1 a job"),
    Limit("wide", ("-N1",), "PartitionNodeLimit", "Requested partition configuration not available now",
          "at most 1 nodes asked, partition wide wants 2 or more"),
    Limit("lean", ("--mem=2000",), "MaxMemPerLimit", "Memory required by task is not available",
          "MaxMemPerNode=1000 in partition lean"),
    Limit("all", ("-N4",), "PartitionNodeLimit", "Requested partition configuration not available now",
          "4 nodes asked, partition all has 3"),
    Limit("cpus", ("-N1", "-c4"), "", "Requested node configuration is not available", "(MaxCPUsPerNode=2)"),
    Limit("sockets", ("-N1", "-c4"), "", "Requested node configuration is not available", "(MaxCPUsPerSocket=1)"),
    Limit("kept", ("-c2",), "", "Requested node configuration is not available",
          "(3 of 4 cores are kept for GPU jobs)"),
    Limit("rooted", (), "", "Access/permission denied", "partition rooted is not open to you", USER),
    Limit("grouped", (), "", "User's group not permitted to use this partition", "see AllowGroups", USER),
    Limit("accounts", ("-A", "chemistry"), "", "Invalid account or account/partition combination specified",
          'partition accounts is not open to account "chemistry"'),
    Limit("noaccount", ("-A", "biology"), "", "Invalid account or account/partition combination specified",
          'partition noaccount is not open to account "biology"'),
    Limit("qos", ("--qos=low",), "", "Invalid qos specification", 'partition qos is not open to QOS "low"'),
    Limit("noqos", ("--qos=low",), "", "Invalid qos specification", 'partition noqos is not open to QOS "low"'),
]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory):
    started = {}
    for enforce in ("NO", "ALL"):
        folder = tmp_path_factory.mktemp(enforce)
        (folder / "slurm.conf").write_text(CONF.format(enforce=enforce))
        (folder / "gres.conf").write_text("NodeName=n[1-3] Name=gpu File=/dev/nvidia[0-1]\n"
                                          "NodeName=g1 Name=gpu File=/dev/nvidia0\n")
        started[enforce] = Cluster(emulate=folder).__enter__()
    yield started
    for c in started.values():
        c.__exit__(None, None, None)


def try_to_submit(c, limit):
    return c.run("sbatch", "--parsable", "-p", limit.partition, *limit.words, "-o", "/dev/null", "--wrap", "true",
                 rc=None, user=limit.user or None)


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.partition)
def test_refused_with_the_limit_named(clusters, limit):
    if limit.user:
        pwd.getpwnam(limit.user)
    done = try_to_submit(clusters["ALL"], limit)
    assert done.returncode == 1, done.stdout
    assert limit.error in done.stderr
    assert limit.named in done.stderr


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.partition)
def test_accepted_where_limits_are_not_enforced(clusters, limit):
    c = clusters["NO"]
    done = try_to_submit(c, limit)
    if not limit.reason:
        assert done.returncode == 1 and limit.error in done.stderr and limit.named in done.stderr
        return
    assert done.returncode == 0, done.stderr
    job = done.stdout.strip()
    until(lambda: c.field(job, "Reason") == limit.reason, what=f"{limit.reason}; it is {c.field(job, 'Reason')}")
    assert limit.named in c.out("scontrol", "explain", "job", job)
    c.run("scancel", job)


@pytest.mark.parametrize("limit", [l for l in LIMITS if l.user or l.words[:1] in (("-A",), ("--qos=low",))],
                         ids=lambda limit: limit.partition)
def test_a_job_is_not_moved_where_it_could_not_be_submitted(clusters, limit):
    c = clusters["ALL"]
    job = c.submit("-H", *limit.words, "-o", "/dev/null", "--wrap", "true", user=USER)
    done = c.run("scontrol", "update", f"jobid={job}", f"partition={limit.partition}", rc=None, user=USER)
    assert done.returncode != 0 and limit.error in done.stderr and limit.named in done.stderr
    assert c.field(job, "Partition") == "all"
    c.run("scancel", job)


def test_an_administrators_hold_is_his(clusters):
    c = clusters["ALL"]
    job = c.submit("-H", "-o", "/dev/null", "--wrap", "true", user=USER)
    c.run("scontrol", "hold", job)
    for words in (["hold", job], ["uhold", job], ["requeuehold", job], ["update", f"jobid={job}", "priority=0"],
                  ["update", f"jobid={job}", "priority=1"], ["release", job]):
        c.run("scontrol", *words, rc=None, user=USER)
        assert c.field(job, "Reason") == "JobHeldAdmin" and c.field(job, "Priority") == "0", words
    c.run("scontrol", "release", job)
    assert c.wait_end(job) == "COMPLETED"


def test_nobody_raises_his_own_priority(clusters):
    c = clusters["ALL"]
    for words, told in ((["--nice=-1000000"], "Nice value must be non-negative, value ignored"),
                        (["--priority=4000000000"], "Only operators and administrators can set a priority")):
        for command in ("sbatch", "salloc", "srun"):
            name = f"{command}{words[0]}"
            tail = ["-o", "/dev/null", "--wrap", "true"] if command == "sbatch" else ["true"]
            done = c.run(command, *words, "-J", name, *tail, rc=None, user=USER)
            assert done.returncode == 0 and done.stderr.count(told) == 1, done.stderr
            line = c.out("squeue", "-h", "-t", "all", "-n", name, "-o", "%y %Q").split()
            assert line[0] == "0" and int(line[1]) < 1000000, line
    done = c.run("sbatch", "--parsable", "-H", "--nice=-1000", "-o", "/dev/null", "--wrap", "true")
    job = done.stdout.strip()
    assert done.stderr == "" and c.field(job, "Nice") == "-1000"
    c.run("scancel", job)
    job = c.submit("-H", "--nice=5", "-o", "/dev/null", "--wrap", "true", user=USER)
    for key in ("nice=-5000", "nice=0", "priority=4000000000"):
        done = c.run("scontrol", "update", f"jobid={job}", key, rc=None, user=USER)
        assert done.returncode != 0 and "denied" in done.stderr.lower(), done
    assert c.field(job, "Nice") == "5"
    c.run("scancel", job)


TOO_LONG = "Pathname of a file, directory or other parameter too long"


def test_what_is_too_large_is_refused_by_name(clusters, tmp_path):
    c = clusters["ALL"]
    script = tmp_path / "script"
    for size, told in ((5 << 20, ("Batch script is too big", "5242880", "4194304")), (9 << 20, ("longer than 8 MiB",)),
                       (54 << 20, ("longer than 8 MiB",))):
        script.write_text("#!/bin/sh\n")
        with open(script, "a") as file:
            file.write("#" * (size - file.tell() - 1) + "\n")
        done = c.run("sbatch", script, rc=None)
        assert done.returncode != 0 and "Submitted" not in done.stdout
        assert any(word in done.stderr for word in (*told, TOO_LONG)), done.stderr
    for words, name in ((["-J", "x" * 1025], "--job-name: 1025 bytes, at most 1024"),
                        (["--comment", "x" * 100000], "--comment: 100000 bytes, at most 1024"),
                        (["-w", "n" + "1" * 70000], "--nodelist: 70001 bytes, at most 65536")):
        done = c.run("sbatch", "-o", "/dev/null", *words, "--wrap", "true", rc=None, user=USER)
        assert done.returncode != 0 and TOO_LONG in done.stderr and name in done.stderr, done.stderr
    job = c.submit("-H", "-o", "/dev/null", "--wrap", "true", user=USER)
    for key in ("JobName", "Comment", "Account", "WorkDir"):
        done = c.run("scontrol", "update", f"jobid={job}", f"{key}={'x' * 5000}", rc=None, user=USER)
        assert done.returncode != 0 and TOO_LONG in done.stderr, (key, done.stderr)
    c.run("scancel", job)


def test_the_largest_script_is_a_key(clusters, tmp_path):
    c = clusters["NO"]
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n" + "#" * 3000 + "\n")
    assert c.run("sbatch", "-H", script).returncode == 0
    conf = c.conf.read_text()
    c.conf.write_text(conf + "SchedulerParameters=max_script_size=2000\n")
    c.run("scontrol", "reconfigure")
    done = c.run("sbatch", "-H", script, rc=None)
    assert done.returncode != 0 and TOO_LONG in done.stderr and "at most 2000" in done.stderr, done.stderr
    c.conf.write_text(conf)
    c.run("scontrol", "reconfigure")


def test_a_lifted_limit_lets_the_job_start(clusters):
    c = clusters["NO"]
    job = c.submit("-p", "brief", "-t", "20", "-o", "/dev/null", "--wrap", "true")
    until(lambda: c.field(job, "Reason") == "PartitionTimeLimit", what="PartitionTimeLimit")
    c.run("scontrol", "update", "PartitionName=brief", "MaxTime=30")
    assert c.wait_end(job) == "COMPLETED"
    c.run("scontrol", "update", "PartitionName=brief", "MaxTime=10")


@pytest.mark.parametrize("partition, words, key, value", [
    ("percpu", ("-n1", "--mem-per-cpu=300"), "NumCPUs", "3"),
    ("pergpu", ("-n1", "--gpus=2"), "NumCPUs", "4"),
    ("pergpu", ("-n1", "--gpus=2"), "AllocTRES", "mem=1000M"),
    ("brief", (), "TimeLimit", "00:03:00"),
    ("wide", (), "NumNodes", "2"),
    ("kept", ("-c4", "--gpus=1"), "NumCPUs", "4"),
    ("kept", ("-c1",), "NumCPUs", "1"),
    ("sockets", ("-N1", "-n1", "-c2"), "NumCPUs", "2"),
    ("accounts", ("-A", "physics"), "Partition", "accounts"),
    ("qos", ("--qos=high",), "Partition", "qos"),
])
def test_what_a_job_gets(clusters, partition, words, key, value):
    c = clusters["ALL"]
    job = c.submit("-p", partition, *words, "-o", "/dev/null", "--wrap", "true")
    c.wait_state(job, "RUNNING", "COMPLETED")
    assert value in c.field(job, key)


@pytest.mark.parametrize("partition, most", [("cpus", 2), ("sockets", 2)])
def test_the_jobs_of_a_partition_have_no_more_together(clusters, partition, most):
    c = clusters["ALL"]
    jobs = [c.submit("-p", partition, "-w", "n1", "-n1", "-o", "/dev/null", "--wrap", "sleep 100")
            for _ in range(most + 1)]
    for job in jobs[:most]:
        c.wait_state(job, "RUNNING")
    until(lambda: c.field(jobs[-1], "Reason") == "Resources", what="Resources")
    assert "MaxCPUsPer" in c.out("scontrol", "explain", "job", jobs[-1])
    elsewhere = c.submit("-p", "all", "-w", "n1", "-n1", "-o", "/dev/null", "--wrap", "true")
    assert c.wait_end(elsewhere) == "COMPLETED"
    # The limit is known after a restart, and its place is planned at an end.
    c.restart_controller()
    assert c.field(jobs[-1], "JobState") == "PENDING"
    c.run("scancel", jobs[0])
    c.wait_state(jobs[-1], "RUNNING")
    c.run("scancel", *jobs)


def test_kept_cores_are_shown(clusters):
    assert "RestrictedCoresPerGPU=3(0-2)" in clusters["NO"].out("scontrol", "show", "node", "g1")
    shown = clusters["NO"].out("scontrol", "show", "partition", "sockets")
    assert "MaxCPUsPerSocket=1" in shown
