"""Preemption on a running cluster: who gives way to whom, what the victims and the one that takes their place see,
grace, requeue, suspension, and what the commands show of it."""

import pytest

from cluster import Cluster, until

pytestmark = pytest.mark.live

CONF = """\
ClusterName=prey
SlurmctldHost=localhost
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
KillWait=2
NodeName=n[1-2] CPUs=4 RealMemory=4000 Gres=gpu:4
PreemptType=preempt/partition_prio
PreemptMode={mode}
{more}
PartitionName=low Nodes=ALL Default=YES PriorityTier=1
PartitionName=grace Nodes=ALL PriorityTier=2 GraceTime=600
PartitionName=short Nodes=ALL PriorityTier=2 GraceTime=3 PreemptMode=CANCEL
PartitionName=safe Nodes=ALL PriorityTier=2 PreemptMode=OFF
PartitionName=high Nodes=ALL PriorityTier=10
"""


def cluster_of(tmp_path_factory, mode, more=""):
    folder = tmp_path_factory.mktemp("conf")
    (folder / "slurm.conf").write_text(CONF.format(mode=mode, more=more))
    (folder / "gres.conf").write_text("NodeName=n[1-2] Name=gpu File=/dev/nvidia[0-3]\n")
    return Cluster(emulate=folder)


@pytest.fixture(scope="module")
def requeue(tmp_path_factory):
    with cluster_of(tmp_path_factory, "REQUEUE", "PreemptParameters=send_user_signal") as c:
        yield c


@pytest.fixture(scope="module")
def suspend(tmp_path_factory):
    with cluster_of(tmp_path_factory, "SUSPEND,GANG") as c:
        yield c


@pytest.fixture(autouse=True)
def tidy(request):
    yield
    for name in ("requeue", "suspend"):
        if name in request.fixturenames:
            c = request.getfixturevalue(name)
            ids = c.out("squeue", "-h", "-o", "%A").split()
            if ids:
                c.run("scancel", *ids)
            c.wait_idle()


def running(c, *words):
    job = c.submit(*words)
    c.wait_state(job, "RUNNING")
    return job


def explain(c, job):
    return c.out("scontrol", "explain", "job", job)


def test_requeued_and_cancelled_ones_give_way(requeue):
    c = requeue
    again = running(c, "-p", "low", "-w", "n1", "--gpus=4", "-o", "again-%j.out", "--wrap", "sleep 600")
    never = running(c, "-p", "low", "-w", "n2", "--gpus=4", "--no-requeue", "-o", "never-%j.out", "--wrap", "sleep 600")
    urgent = running(c, "-p", "high", "-N2", "--gpus-per-node=4", "--wrap", "sleep 600")
    assert c.job_state(never) == "PREEMPTED"
    assert c.job_state(again) == "PENDING"
    assert c.field(again, "Reason") == "BeginTime"
    assert c.field(again, "Restarts") == "1"
    assert f"it gave way to job {urgent}" in explain(c, again)
    assert f"it gave way to job {urgent}" in explain(c, never)
    for name, job in (("again", again), ("never", never)):
        text = until(lambda: (c.work / f"{name}-{job}.out").read_text(), what="the line of the end")
        assert f"*** JOB {job} ON " in text and "DUE TO PREEMPTION ***" in text
    rows = c.out("sacct", "-n", "-P", "-X", "-D", "-o", "State", "-j", again).splitlines()
    assert rows == ["PREEMPTED", "PENDING"]
    assert c.out("sacct", "-n", "-P", "-X", "-o", "State", "-j", never) == "PREEMPTED"
    assert c.out("squeue", "-h", "-t", "all", "-o", "%T", "-j", never) == "PREEMPTED"
    # It starts again where and when there is room.
    c.run("scancel", urgent)
    c.run("scontrol", "update", f"JobId={again}", "StartTime=now")
    c.wait_state(again, "RUNNING")


def test_only_as_many_as_needed(requeue):
    c = requeue
    victims = [running(c, "-p", "low", "-w", "n1", "--gpus=1", "--wrap", "sleep 600") for _ in range(4)]
    other = running(c, "-p", "low", "-w", "n2", "--gpus=4", "--wrap", "sleep 600")
    running(c, "-p", "high", "--gpus=1", "--wrap", "sleep 600")
    states = [c.job_state(job) for job in victims]
    assert sorted(states) == ["PENDING", "RUNNING", "RUNNING", "RUNNING"]
    assert c.job_state(other) == "RUNNING"


def test_who_does_not_give_way_is_named(requeue):
    c = requeue
    safe = running(c, "-p", "safe", "-w", "n1", "--gpus=4", "--wrap", "sleep 600")
    peer = running(c, "-p", "high", "-w", "n2", "--gpus=4", "--wrap", "sleep 600")
    waits = c.submit("-p", "high", "--gpus=1", "--wrap", "true")
    until(lambda: c.field(waits, "Reason") == "Resources", what="it waits")
    text = explain(c, waits)
    assert f"job {safe} does not give way: PreemptMode=OFF" in text
    assert f"job {peer} does not give way: PriorityTier is not lower" in text
    assert c.job_state(safe) == c.job_state(peer) == "RUNNING"


def test_grace_is_announced_and_heeded(requeue):
    c = requeue
    # --signal comes at once (send_user_signal), and the job ends in its own time.
    (c.work / "grace.sh").write_text(
        "#!/bin/bash\nsrun bash -c 'trap \"echo warned; exit 0\" USR1; echo ready; while :; do sleep 0.1; done'\n")
    victim = running(c, "-p", "grace", "-w", "n1", "--gpus=4", "--signal=USR1@10", "-o", "grace.out", "grace.sh")
    until(lambda: (c.work / "grace.out").exists() and "ready" in (c.work / "grace.out").read_text(), what="its task")
    urgent = c.submit("-p", "high", "-w", "n1", "--gpus=4", "--wrap", "sleep 600")
    c.wait_state(urgent, "RUNNING")
    assert "warned" in (c.work / "grace.out").read_text()
    assert c.job_state(victim) == "COMPLETED"


def test_the_end_of_grace(requeue):
    c = requeue
    victim = running(c, "-p", "grace", "-w", "n1", "--gpus=4", "--wrap", "trap '' TERM; sleep 600 & wait; sleep 600")
    urgent = c.submit("-p", "high", "-w", "n1", "--gpus=4", "--wrap", "sleep 600")
    until(lambda: c.field(victim, "PreemptTime") not in ("", "None"), what="it is told")
    assert c.job_state(victim) == "RUNNING"
    assert f"it gives way to job {urgent} and ends in 00:" in explain(c, victim)
    assert f"job {victim} gives way to it" in explain(c, urgent)
    assert c.field(urgent, "StartTime") == c.field(victim, "EndTime")
    # Nobody else gets the place meanwhile.
    between = c.submit("-p", "low", "-w", "n1", "--gpus=1", "--wrap", "true")
    until(lambda: c.field(between, "Reason") in ("Priority", "Resources"), what="it waits")
    c.run("scancel", victim)
    c.wait_state(urgent, "RUNNING")
    assert c.job_state(between) == "PENDING"
    short = running(c, "-p", "short", "-w", "n2", "--gpus=4", "--wrap", "trap '' TERM; while :; do sleep 1; done")
    running(c, "-p", "high", "-w", "n2", "--gpus=4", "--wrap", "sleep 600")
    assert c.job_state(short) == "PREEMPTED"


def test_partitions_and_config_show_it(requeue):
    c = requeue
    grace = c.out("scontrol", "show", "partition", "grace")
    assert "GraceTime=600" in grace and "PreemptMode=REQUEUE" in grace
    assert c.out("sinfo", "-h", "-p", "safe", "-o", "%M") == "OFF"
    config = c.out("scontrol", "show", "config")
    assert any(line.split() == ["PreemptType", "=", "preempt/partition_prio"] for line in config.splitlines())
    c.run("scontrol", "update", "PartitionName=safe", "PreemptMode=CANCEL")
    assert c.out("sinfo", "-h", "-p", "safe", "-o", "%M") == "CANCEL"
    c.run("scontrol", "update", "PartitionName=safe", "PreemptMode=OFF")
    bad = c.run("scontrol", "update", "PartitionName=safe", "PreemptMode=NEVER", rc=1)
    assert "PreemptMode" in bad.stderr
    bad = c.run("scontrol", "update", "PartitionName=safe", "PreemptMode=SUSPEND", rc=1)
    assert "needs GANG" in bad.stderr


def test_suspended_ones_go_on(suspend):
    c = suspend
    victim = running(c, "-p", "low", "-w", "n1", "-n4", "--mem=100", "--wrap", "sleep 600")
    urgent = running(c, "-p", "high", "-w", "n1", "-n2", "--mem=100", "--wrap", "sleep 600")
    assert c.job_state(victim) == "SUSPENDED"
    assert f"job {urgent} has its CPUs" in explain(c, victim)
    said = c.run("scontrol", "resume", victim, rc=1)
    assert "presently disabled" in said.stderr
    c.run("scancel", urgent)
    c.wait_state(victim, "RUNNING")
    # GPUs are not lent.
    gpu = running(c, "-p", "low", "-w", "n2", "--gpus=4", "--wrap", "sleep 600")
    waits = c.submit("-p", "high", "-w", "n2", "--gpus=1", "--wrap", "true")
    until(lambda: c.field(waits, "Reason") == "Resources", what="it waits")
    assert c.job_state(gpu) == "RUNNING"


def test_a_restart_of_the_controller_forgets_nothing(suspend):
    c = suspend
    victim = running(c, "-p", "low", "-w", "n1", "-n4", "--mem=100", "--wrap", "sleep 600")
    urgent = running(c, "-p", "high", "-w", "n1", "-n4", "--mem=100", "--wrap", "sleep 600")
    assert c.job_state(victim) == "SUSPENDED"
    c.run("scontrol", "reconfigure")
    c.run("scontrol", "shutdown", "slurmctld", rc=None)
    until(lambda: c.up().returncode == 0, what="the controller is back")
    assert c.job_state(victim) == "SUSPENDED"
    assert c.job_state(urgent) == "RUNNING"
    c.run("scancel", urgent)
    c.wait_state(victim, "RUNNING")


def test_preempt_qos_is_refused(tmp_path):
    (tmp_path / "slurm.conf").write_text(CONF.format(mode="CANCEL", more="").replace("partition_prio", "qos"))
    (tmp_path / "gres.conf").write_text("NodeName=n[1-2] Name=gpu File=/dev/nvidia[0-3]\n")
    with Cluster(emulate="1x1:a100") as c:
        done = c.run("berthctld", "-D", "-f", tmp_path / "slurm.conf", rc=None)
        assert done.returncode != 0
        assert "PreemptType=preempt/qos: there are no QOS yet" in done.stderr + done.stdout
