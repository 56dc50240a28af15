"""Toil's Slurm batch system: the jobs of a workflow, one that fails, one that is cancelled by others and by toil."""

import ast

import pytest

from cluster import ROOT, until

pytestmark = pytest.mark.live

WORKFLOWS = ROOT / "tests" / "clients" / "toil_workflows.py"


def words(cluster, name, since, *more):
    """Without --statePollingWait it asks every 36 s: SchedulerTimeSlice and a fifth."""
    return ["/usr/bin/python3", WORKFLOWS, name, cluster.work / f"store-{since}", "--batchSystem", "slurm",
            "--statePollingWait", "1", "--disableCaching", "--retryCount", "0", "--logLevel", "INFO",
            "--workDir", cluster.work, *more]


def jobs(cluster, since, fields):
    """sacct's rows of the workers that were submitted after job `since`."""
    rows = [row.split("|") for row in
            cluster.out("sacct", "-a", "-X", "-n", "-P", "-o", f"JobIDRaw,JobName,{fields}").splitlines()]
    return [row[2:] for row in rows if int(row[0]) > since and row[1].startswith("toil_job_")]


def last_job(cluster) -> int:
    """Where the next ones begin."""
    job = cluster.submit("-o", "/dev/null", "--wrap", "true")
    cluster.wait_state(job, "COMPLETED")
    return int(job)


def test_jobs_run_with_what_they_ask_for(cluster):
    since = last_job(cluster)
    done = cluster.run(*words(cluster, "sum", since), timeout=300, rc=None)
    assert done.returncode == 0, done.stderr + cluster.logs()
    result = ast.literal_eval(done.stdout.split("RESULT", 1)[1].strip())
    assert result["sum"] == 0 + 1 + 4
    assert {part["cpus"] for part in result["parts"]} == {"2"}
    assert {part["memory"] for part in result["parts"]} == {"512"}
    assert {part["node"] for part in result["parts"]} <= {f"node{n}" for n in range(1, 5)}
    # One that divides the work, three parts, the sum.
    assert sorted(jobs(cluster, since, "State,ExitCode,AllocCPUS,ReqMem")) == \
        [["COMPLETED", "0:0", "1", "256M"]] * 2 + [["COMPLETED", "0:0", "2", "512M"]] * 3


def test_a_job_that_fails_is_noticed(cluster):
    since = last_job(cluster)
    done = cluster.run(*words(cluster, "fail", since), timeout=300, rc=None)
    assert done.returncode != 0, done.stdout
    assert "this one is meant to fail" in done.stderr
    assert [state for [state] in jobs(cluster, since, "State")] == ["FAILED"]


def test_a_job_that_somebody_cancels_is_noticed(cluster):
    """Nobody tells toil but sacct."""
    since = last_job(cluster)
    leader = cluster.popen(*words(cluster, "sleep", since))

    def began():
        assert leader.poll() is None, "".join(leader.communicate())
        rows = jobs(cluster, since, "JobIDRaw")
        return rows and (cluster.work / f"began-{rows[0][0]}").exists() and rows[0][0]

    try:
        cluster.run("scancel", until(began, what="the start of the worker"))
        told = "".join(leader.communicate(timeout=120))
    finally:
        leader.kill()
    assert leader.returncode != 0, told
    assert [state.split()[0] for [state] in jobs(cluster, since, "State")] == ["CANCELLED"], told


def test_toil_cancels_a_job_that_runs_too_long(cluster):
    """It learns from squeue how long a job has been running."""
    since = last_job(cluster)
    done = cluster.run(*words(cluster, "sleep", since, "--maxJobDuration", "2", "--rescueJobsFrequency", "1"),
                       timeout=300, rc=None)
    assert done.returncode != 0, done.stderr
    assert [state.split()[0] for [state] in jobs(cluster, since, "State")] == ["CANCELLED"], done.stderr
    cluster.wait_idle()
