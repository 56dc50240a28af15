"""What an administrator changes on a running cluster: nodes that come and go, slurm.conf read again, jobs made
smaller, started again, held; and what users are told about partitions they may not use."""

import pathlib
import re

import pytest

from cluster import Cluster, until

pytestmark = pytest.mark.live

SLURM_CONF = """\
ClusterName=admin
SlurmctldHost=localhost
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
KillWait=2
DefMemPerCPU=100
RequeueExit=42
RequeueExitHold=43
MinJobAge=10
LaunchParameters=use_interactive_step
KillOnBadExit=1
NodeName=n[1-4] CPUs=4 RealMemory=4000
PartitionName=all Nodes=ALL Default=YES MaxTime=60
PartitionName=root Nodes=n1 RootOnly=YES
PartitionName=group Nodes=n1 AllowGroups=berth-no-such-group
PartitionName=account Nodes=n1 AllowAccounts=physics
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conf")
    (folder / "slurm.conf").write_text(SLURM_CONF)
    with Cluster(emulate=folder) as c:
        yield c


def says(c, *words, code=0, user=None):
    run = c.run(*words, rc=code, user=user)
    return run.stdout + run.stderr


def node_state(c, name):
    run = c.run("scontrol", "-o", "show", "node", name, rc=None)
    found = re.search(r"State=(\S+)", run.stdout)
    return found.group(1) if found else run.stdout + run.stderr


def test_a_node_that_is_created_is_used_and_kept(cluster):
    c = cluster
    says(c, "scontrol", "create", "NodeName=x[1-2]", "CPUs=8", "RealMemory=8000", "State=CLOUD", "Features=new")
    until(lambda: "IDLE" in node_state(c, "x1"), what="x1 is there")
    assert "x[1-2]" in says(c, "scontrol", "show", "partition", "all")
    job = c.submit("-C", "new", "-N1", "--wrap", "sleep 300")
    c.wait_state(job, "RUNNING")
    busy = says(c, "squeue", "-h", "-o", "%N", "-j", job).strip()
    assert busy in ("x1", "x2")
    assert "busy" in says(c, "scontrol", "delete", f"NodeName={busy}", code=1)
    assert "Invalid node name" in says(c, "scontrol", "create", "NodeName=n1", "CPUs=4", code=1)
    assert "Invalid node name" in says(c, "scontrol", "delete", "NodeName=n1", code=1)
    c.restart_controller()
    until(lambda: "IDLE" in node_state(c, "x1") or "MIX" in node_state(c, "x1"), what="x1 is back")
    assert says(c, "squeue", "-h", "-o", "%N", "-j", job).strip() == busy
    says(c, "scancel", job)
    c.wait_state(job, "CANCELLED")
    until(lambda: c.run("scontrol", "delete", "NodeName=x[1-2]", rc=None).returncode == 0, what="they can go")
    assert "not found" in node_state(c, "x1")
    assert "x[1-2]" not in says(c, "scontrol", "show", "partition", "all")
    c.restart_controller()
    assert "not found" in node_state(c, "x1")


def test_a_changed_slurm_conf(cluster):
    c = cluster
    job = c.submit("-w", "n2", "--wrap", "sleep 300")
    c.wait_state(job, "RUNNING")
    conf = pathlib.Path(c.conf)
    good = conf.read_text()
    conf.write_text(good.replace("n[1-4]", "n[1-5]").replace("MaxTime=60", "MaxTime=120"))
    says(c, "scontrol", "reconfigure")
    until(lambda: "IDLE" in node_state(c, "n5"), what="n5 is there")
    assert "MaxTime=02:00:00" in says(c, "scontrol", "show", "partition", "all")
    conf.write_text(good + "NoSuchKey=1\n")
    assert "NoSuchKey" in says(c, "scontrol", "reconfigure", code=1)
    assert "IDLE" in node_state(c, "n5")
    assert "RUNNING" in says(c, "squeue", "-h", "-o", "%T", "-j", job)
    conf.write_text(good)
    says(c, "scontrol", "reconfigure")
    assert "not found" in node_state(c, "n5")
    assert "RUNNING" in says(c, "squeue", "-h", "-o", "%T", "-j", job)
    says(c, "scancel", job)
    c.wait_state(job, "CANCELLED")


def test_exit_codes_that_start_a_job_again(cluster):
    c = cluster
    again = c.submit("--wrap", "exit 42")
    held = c.submit("--wrap", "exit 43")
    shown = lambda job: c.run("squeue", "-h", "-o", "%T %r", "-j", job, rc=None).stdout.strip()
    until(lambda: shown(again) == "PENDING BeginTime", what="it starts again")
    until(lambda: shown(held).startswith("SPECIAL_EXIT"), what="it is held")
    assert "Restarts=1" in says(c, "scontrol", "show", "job", again)
    for job in (again, held):
        says(c, "scancel", job)
    job = c.submit("--wrap", "sleep 300")
    c.wait_state(job, "RUNNING")
    says(c, "scontrol", "requeuehold", "State=SpecialExit", job)
    until(lambda: shown(job).startswith("SPECIAL_EXIT"), what="it is held by hand")
    says(c, "scontrol", "release", job)
    until(lambda: not shown(job).startswith("SPECIAL_EXIT"), what="it is released")
    says(c, "scancel", job)


def test_a_running_job_gives_nodes_back(cluster):
    c = cluster
    job = c.submit("-N3", "--exclusive", "-w", "n[1-3]", "--wrap", "sleep 300")
    c.wait_state(job, "RUNNING")
    out = says(c, "scontrol", "update", f"JobId={job}", "NumNodes=2")
    assert f". ./slurm_job_{job}_resize.sh" in out
    script = (c.work / f"slurm_job_{job}_resize.sh").read_text()
    assert 'export SLURM_JOB_NODELIST="n[1-2]"' in script
    until(lambda: node_state(c, "n3") == "IDLE", what="n3 is free")
    assert says(c, "squeue", "-h", "-o", "%N %D", "-j", job).split() == ["n[1-2]", "2"]
    says(c, "scontrol", "update", f"JobId={job}", "NumNodes=4", code=1)
    says(c, "scancel", job)
    c.wait_state(job, "CANCELLED")
    until(lambda: node_state(c, "n1") == "IDLE", what="n1 is free")


def test_a_script_is_there_after_its_job_has_left_memory(cluster):
    c = cluster
    job = c.submit("--wrap", "echo long ago")
    c.wait_state(job, "COMPLETED")
    until(lambda: c.run("scontrol", "show", "job", job, rc=None).returncode != 0, what="memory forgets it")
    assert "echo long ago" in says(c, "scontrol", "write", "batch_script", job, "-")


def test_partitions_are_for_whom_they_are_for(cluster):
    c = cluster
    refused = says(c, "sbatch", "-p", "account", "--wrap", "true", code=1)
    assert "Invalid account or account/partition combination specified" in refused
    job = c.submit("-p", "account", "-A", "physics", "--wrap", "true")
    c.wait_state(job, "COMPLETED")


def test_an_interactive_step(cluster):
    c = cluster
    c.env["SHELL"] = "/bin/sh"
    run = c.run("salloc", "-Q", "-N1", "-w", "n2", rc=None, input="echo on $SLURMD_NODENAME in $SLURM_JOB_ID; exit 3\n")
    assert "on n2 in " in run.stdout.replace("\r", ""), run.stdout + run.stderr
    assert run.returncode == 3


def test_srun_heeds_what_slurm_conf_and_its_caller_say(cluster):
    c = cluster
    failed = c.run("srun", "-n2", "sh", "-c", "test $SLURM_PROCID = 0 && exit 5; sleep 300", rc=None)
    assert failed.returncode != 0 and "TASK FAILURE" in failed.stderr, failed.stderr
    kept = c.run("srun", "-E", "-n1", "printenv", "SLURM_NPROCS", env={"SLURM_NPROCS": "7"})
    assert kept.stdout == "7\n"
    assert "not supported" in says(c, "srun", "--wait-for-children", "true", code=1)


def test_planned_starts_are_shown(cluster):
    c = cluster
    first = c.submit("-w", "n[1-3]", "-N3", "--exclusive", "-t", "30", "--wrap", "sleep 300")
    c.wait_state(first, "RUNNING")
    second = c.submit("-N4", "--exclusive", "-t", "30", "--wrap", "sleep 1")
    third = c.submit("-N2", "--exclusive", "-t", "30", "--wrap", "sleep 1")
    planned = lambda job: c.run("squeue", "-h", "--start", "-o", "%S %Y", "-j", job, rc=None).stdout.split()
    until(lambda: "N/A" not in planned(second), what="the first one that waits is planned")
    assert planned(second)[1] == "n[1-4]"

    def third_planned():
        c.run("scontrol", "update", f"JobId={first}", "TimeLimit=29")  # makes the scheduler look again
        return "N/A" not in planned(third)

    until(third_planned, what="the next one is planned")
    assert node_state(c, "n4") == "IDLE+PLANNED"
    assert says(c, "sinfo", "-h", "-n", "n4", "-p", "all", "-o", "%t").strip() == "plnd"
    says(c, "scancel", "--me")
    c.wait_idle()
