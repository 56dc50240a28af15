"""MPI_Comm_spawn by PMI-1 and PMI-2: a step gets another one of its job, and is answerable for it."""

import json
import os

import pytest

from cluster import ROOT, Cluster, until

pytestmark = pytest.mark.live

PROGRAM = ROOT / "tests/programs/pmi_spawn.py"
PYTHON = "/usr/bin/python3"
CONF = """\
ClusterName=spawn
SlurmctldHost=localhost
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=2
LaunchParameters=failure_grace=2
TreeWidth=2
NodeName=n[1-4] CPUs=2 RealMemory=4000
PartitionName=all Nodes=ALL Default=YES
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spawn")
    (folder / "slurm.conf").write_text(CONF)
    with Cluster(emulate=folder) as c:
        yield c


def children(version, tasks, *words, **info):
    return {"argv": [PYTHON, str(PROGRAM), "child", str(version), *words], "tasks": tasks, "info": info}


def parent(version, *programs, **more):
    return [PYTHON, PROGRAM, "parent", version, json.dumps({"programs": programs, **more})]


def told(text):
    """The answer to the one who asked, and what the new ranks say, by rank."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return lines[0]["answer"], {line["rank"]: line for line in lines[1:]}


def gone(pids):
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


@pytest.mark.parametrize("version", (1, 2))
@pytest.mark.parametrize("where", ("its own job", "a job around it"))
def test_a_task_starts_others(cluster, version, where):
    command = ["srun", "-N4", "-n4", *parent(version, children(version, 3, "two words", "a=b;c"), given={"more": "x y"})]
    if version == 1:
        command = ["srun", "-N4", "-n4", *parent(version, children(version, 3, "two words", "a=b;c"), given={"more": "xy"})]
    if where == "a job around it":
        command = ["salloc", "-Q", "-N4", *command]
    run = cluster.run(*command)
    answer, ranks = told(run.stdout)
    assert answer["rc"] == "0", run.stderr
    assert sorted(ranks) == [0, 1, 2]
    for rank in ranks.values():
        assert rank["size"] == 3 and rank["appnum"] == 0
        assert rank["spawned"] == "1"
        assert rank["words"] == ["two words", "a=b;c"]
        assert rank["more"] == ("xy" if version == 1 else "x y")
        assert rank["step"] == "1" and rank["job"] == ranks[0]["job"]
        if version == 2:
            assert rank["spawner"] == f"{rank['job']}.0"
            assert answer["jobid"] == f"{rank['job']}.1"
    assert len({rank["node"] for rank in ranks.values()}) == 3
    # It is in the books as any other step.
    job = ranks[0]["job"]
    until(lambda: f"{job}.1|COMPLETED" in cluster.out("sacct", "-n", "-P", "-j", job, "-o", "JobID,State"), what="its record")


@pytest.mark.parametrize("version", (1, 2))
def test_several_programs_have_numbers_and_directories(cluster, version):
    elsewhere = cluster.work / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    programs = (children(version, 1, "a", soft="1", never_heard_of="it"), children(version, 2, "b", wdir=str(elsewhere)))
    run = cluster.run("srun", "-N2", "-n2", *parent(version, *programs))
    answer, ranks = told(run.stdout)
    assert answer["rc"] == "0", run.stderr
    assert [(ranks[r]["appnum"], ranks[r]["words"]) for r in range(3)] == [(0, ["a"]), (1, ["b"]), (1, ["b"])]
    assert [ranks[r]["cwd"] for r in range(3)] == [str(cluster.work), str(elsewhere), str(elsewhere)]


def test_where_it_says(cluster):
    run = cluster.run("srun", "-N4", "-n4", *parent(2, children(2, 2, host="n3")))
    _, ranks = told(run.stdout)
    assert {rank["node"] for rank in ranks.values()} == {"n3"}, run.stderr


def test_what_cannot_be_is_said_and_the_rest_goes_on(cluster):
    run = cluster.run("srun", "-N2", "-n2", *parent(1, children(1, 2, host="n9")))
    answer, ranks = told(run.stdout)
    assert answer["rc"] == "-1" and not ranks
    assert "n9" in run.stderr, run.stderr
    run = cluster.run("srun", "-N2", "-n2", *parent(2, children(2, 1, host="n1"), children(2, 1, host="n2")))
    answer, _ = told(run.stdout)
    assert answer["rc"] == "1" and "different hosts" in answer["errmsg"], answer
    assert "different hosts" in run.stderr, run.stderr


def test_a_program_that_is_not_there(cluster):
    run = cluster.run("srun", "-N1", "-n1", *parent(2, {"argv": ["/no/such/program"], "tasks": 1}), rc=None, timeout=30)
    assert "/no/such/program" in run.stderr, run.stderr
    assert run.returncode != 0


def test_a_spawned_rank_that_fails_ends_the_step_that_asked(cluster):
    run = cluster.run("srun", "-N2", "-n2", *parent(2, children(2, 1, "fail"), stay=True), rc=7, timeout=40)
    assert ".1, which a task of StepId=" in run.stderr, run.stderr


@pytest.mark.parametrize("how", ("scancel", "SIGTERM", "SIGKILL"))
def test_the_end_of_the_spawner_is_theirs_too(cluster, how):
    srun = cluster.popen("srun", "-N2", "-n2", *parent(2, children(2, 2, "stay"), stay=True))
    lines = [json.loads(srun.stdout.readline()) for _ in range(3)]
    assert lines[0]["answer"]["rc"] == "0"
    pids = [line["pid"] for line in lines[1:]]
    assert not gone(pids)
    if how == "scancel":
        # Only the one step: the other one ends because this one does.
        cluster.run("scancel", f"{lines[1]['job']}.0")
    else:
        srun.send_signal(15 if how == "SIGTERM" else 9)
    srun.communicate(timeout=60)
    assert srun.returncode != 0
    until(lambda: gone(pids), what="the end of the spawned ranks")
    cluster.wait_state(lines[1]["job"], "FAILED", "CANCELLED", "COMPLETED")


def test_the_variable_that_is_between_sruns_is_refused_elsewhere(cluster):
    run = cluster.run("srun", "-n1", "true", env={"BERTH_SPAWN": "77,78"}, rc=1)
    assert "BERTH_SPAWN=77,78" in run.stderr and "unset it" in run.stderr, run.stderr
