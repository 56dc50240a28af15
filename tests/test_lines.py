"""What users read of the ends of steps and jobs, in the words of the recordings and of placement-steps.md."""

import re
import signal

import pytest

from cluster import ROOT, Cluster, until

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def cluster():
    with Cluster(emulate=ROOT / "tests/conf/corpus") as c:
        yield c


def lines(text: str, job="J") -> list[str]:
    """Sorted, without berth's own lines; ids and times hidden."""
    text = re.sub(r"(StepId=|STEP |JOB )\d{3,}", rf"\g<1>{job}", text)
    text = re.sub(r"CANCELLED AT \S+", "CANCELLED", text)
    return sorted(line for line in text.splitlines() if not line.startswith("berth: "))


def test_a_bad_exit_ends_the_step_with_k(cluster):
    run = cluster.run("srun", "-n3", "--mem=1G", "-w", "cpu1", "-K", "sh", "-c",
                      "[ $SLURM_PROCID = 1 ] && { sleep 1; exit 3; }; sleep 50", rc=143)
    assert lines(run.stderr) == [
        "slurmstepd: error: *** STEP J.0 ON cpu1 CANCELLED DUE TO TASK FAILURE ***",
        "srun: Force Terminated StepId=J.0",
        "srun: Terminating StepId=J.0",
        "srun: error: cpu1: task 1: Exited with exit code 3",
        "srun: error: cpu1: tasks 0,2: Terminated",
    ]


def test_tasks_that_stay_too_long_after_the_first(cluster):
    run = cluster.run("srun", "-n2", "--mem=1G", "-w", "cpu1", "-W1", "sh", "-c",
                      "[ $SLURM_PROCID = 1 ] || sleep 50", rc=137)
    assert lines(run.stderr) == [
        "slurmstepd: error: *** STEP J.0 ON cpu1 CANCELLED DUE to SIGNAL Killed ***",
        "srun: First task exited 1s ago",
        "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.",
        "srun: StepId=J.0 task 0: running",
        "srun: StepId=J.0 task 1: exited",
        "srun: Terminating StepId=J.0",
        "srun: error: cpu1: task 0: Killed",
    ]


def test_a_cancelled_job_tells_how_its_step_ended(cluster):
    job = cluster.submit("--mem=1G", "-n2", "-o", "cancelled.out", "--wrap", "srun sh -c 'echo up; sleep 100'")
    out = cluster.work / "cancelled.out"
    until(lambda: out.exists() and out.read_text().count("up") == 2, what="both tasks")
    cluster.run("scancel", job)
    assert cluster.wait_end(job) == "CANCELLED"
    text = {line for line in lines(out.read_text()) if line not in ("up", "Terminated")}
    sure = {
        "slurmstepd: error: *** JOB J ON gpu1 CANCELLED DUE to SIGNAL Terminated ***",
        "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.",
        "srun: error: gpu1: tasks 0-1: Terminated",
    }
    # These depend on who is first: srun with its own signal, or the supervisor of the step.
    perhaps = {
        "slurmstepd: error: *** STEP J.0 ON gpu1 CANCELLED DUE to SIGNAL Terminated ***",
        "srun: forcing job termination",
        "srun: got SIGCONT",
    }
    assert sure <= text
    assert text - sure <= perhaps


def test_a_killed_srun_leaves_its_waiting_job_for_a_while(cluster):
    srun = cluster.popen("srun", "-N9", "-J", "ninenodes", "true")
    waiting = until(lambda: cluster.out("squeue", "-h", "-n", "ninenodes", "-o", "%i %r"), what="the job")
    srun.send_signal(signal.SIGKILL)
    srun.communicate()
    job = waiting.split()[0]
    assert cluster.job_state(job) == "PENDING"
    assert cluster.wait_end(job) == "CANCELLED"


def test_a_list_of_variables_leaves_out_path(cluster):
    run = cluster.run("srun", "--mem=1G", "--export=FOO=1", "sh", "-c", "true", rc=2)
    assert "execve(): sh: No such file or directory" in run.stderr
    assert "berth: --export=FOO=1 leaves the tasks without PATH" in run.stderr
    assert cluster.out("srun", "--mem=1G", "--export=FOO=1", "/bin/sh", "-c", "echo $FOO") == "1"


def test_programs_of_a_file(cluster):
    (cluster.work / "programs").write_text("0,2 echo %t %o\n* echo %t %o\n")
    text = cluster.out("srun", "--mem=1G", "-n5", "--multi-prog", "programs")
    assert sorted(text.splitlines()) == ["0 0", "1 1", "2 1", "3 3", "4 4"]


def test_components_share_the_program_that_stands_last(cluster):
    assert cluster.out("salloc", "-Q", "--mem=1G", "-n1", ":", "--mem=1G", "-n2", "sh", "-c",
                       "echo $SLURM_HET_SIZE") == "2"
    job = cluster.submit("-o", "both.out", "-n1", "--mem=1G", ":", "-n2", "--mem=1G", "--wrap",
                         "echo $SLURM_HET_SIZE")
    assert cluster.wait_end(job) == "COMPLETED"
    assert (cluster.work / "both.out").read_text() == "2\n"


@pytest.mark.parametrize("words, last", [
    (["--gres=gpu:9"], "allocation failure: Requested node configuration is not available"),
    (["-N20"], "allocation failure: Requested partition configuration not available now"),
])
def test_what_test_only_refuses(cluster, words, last):
    run = cluster.run("sbatch", "--test-only", *words, "--wrap", "true", rc=1)
    assert [line for line in run.stderr.splitlines() if not line.startswith("berth: ")][-1] == last


def test_ports_that_cannot_be_had(cluster):
    run = cluster.run("srun", "-n1", "--mem=1G", "-w", "cpu1", "--resv-ports=20000", "true", rc=1)
    assert "--resv-ports=20000: steps have the 10000 ports 20000-29999" in run.stderr, run.stderr
    assert "ask for at most 10000" in run.stderr, run.stderr
    # All of them are not free while another step has one of them.
    job = cluster.submit("--mem=1G", "-n1", "-w", "cpu1", "-o", "/dev/null", "--wrap", "srun sleep 100")
    until(lambda: cluster.out("squeue", "-h", "-s", "-j", job), what="the step")
    run = cluster.run("srun", "-n1", "--mem=1G", "-w", "cpu1", "--resv-ports=10000", "true", rc=1)
    assert "no 10000 in a row are free now" in run.stderr, run.stderr
    cluster.run("scancel", job)
    assert cluster.out("srun", "-n1", "--mem=1G", "-w", "cpu1", "--resv-ports=3", "printenv", "SLURM_STEP_RESV_PORTS")
