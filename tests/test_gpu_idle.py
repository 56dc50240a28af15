"""Jobs that do not use their GPUs are warned and ended: seen through the fake NVML library."""

import os

import pytest

from cluster import Cluster, until
from fake_nvml import FakeNvml
from test_hardware import RealCluster, own_conf

pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="slurm.conf names root")]


@pytest.fixture
def site(tmp_path):
    gpus = FakeNvml(tmp_path / "gpus.json", "l40s-pcie-4")
    cluster = RealCluster(gpus)
    own_conf(cluster, "AutoDetect=nvml\n", "gpu:l40s:4")
    text = cluster.conf.read_text().replace(" CPUs=1 ", f" CPUs={max(4, os.cpu_count())} ")
    cluster.conf.write_text(
        text + "SlurmdParameters=gpu_poll=20ms,config_overrides\nMinJobAge=100000\nKillWait=2\n"
        "PartitionName=spare Nodes=ALL GpuIdleTimeout=6s MaxGpuIdleTimeout=10\n")
    with cluster as c:
        until(lambda: "idle" in c.out("sinfo", "-h", "-o", "%T"), what="an idle node")
        yield c, gpus


def busy(gpus, index, percent):
    gpus.gpu(index)["busy_percent"] = percent
    gpus.write()


def check_warnings(lines, unit="GPU"):
    """Once or twice, as a look that comes late skips the first warning, the last one always; then the end."""
    *warnings, end = lines
    assert 1 <= len(warnings) <= 2, lines
    assert all(f" has not used its {unit} for " in line for line in lines), lines
    assert all("unless it does (--gpu-idle-timeout)" in line for line in warnings), lines
    assert end.endswith(" and is ended (--gpu-idle-timeout)"), lines


def idle_job(c, *words, seconds=4):
    """Has one GPU, does not use it and is ended for it: when that is over, as much time has passed."""
    return c.submit("-n1", "--mem=10", "--gpus=1", f"--gpu-idle-timeout={seconds}s", "-o", "/dev/null", *words,
                    "--wrap", "sleep 600")


def test_an_idle_job_is_warned_and_ended(site, tmp_path):
    c, gpus = site
    # Who is on a GPU does not matter, only whether it works.
    gpus.gpu(0)["processes"] = [{"pid": os.getpid(), "memory_mb": 3000}]
    gpus.write()
    output = tmp_path / "out"
    job = c.submit("-n1", "--mem=10", "--gpus=2", "--gpu-idle-timeout=6s", "-o", output, "--wrap",
                   "trap 'echo got TERM; exit 3' TERM; echo begun; while :; do sleep 0.1; done")
    assert c.field(job, "GpuIdleTimeout") == "00:00:06"
    assert c.wait_end(job) == "TIMEOUT"
    lines = output.read_text().splitlines()
    warned = [line for line in lines if line.startswith(f"berth: job {job} ")]
    check_warnings(warned, "2 GPUs")
    assert "; it is ended in 1 second" in warned[-2] and "begun" in lines
    assert any("CANCELLED AT" in line and "DUE TO GPU IDLE TIMEOUT ***" in line for line in lines)
    assert "got TERM" in lines
    assert "JobState=TIMEOUT Reason=GpuIdle " in c.out("scontrol", "show", "job", job)
    assert c.out("squeue", "-h", "-t", "all", "-j", job, "-o", "%T %r %R") == "TIMEOUT GpuIdle (GpuIdle)"
    assert c.out("sacct", "-n", "-X", "-P", "-j", job, "-o", "State,Reason") == "TIMEOUT|GpuIdle"


def test_one_busy_gpu_is_enough(site):
    c, gpus = site
    busy(gpus, 1, 30)
    job = c.submit("-n1", "--mem=10", "--gpus=2", "--gpu-idle-timeout=3s", "-o", "/dev/null", "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    other = idle_job(c)
    assert c.wait_end(other) == "TIMEOUT"
    assert c.job_state(job) == "RUNNING"
    busy(gpus, 1, 0)
    assert c.wait_end(job) == "TIMEOUT"


def test_a_suspended_jobs_clock_stands_still(site):
    c, _ = site
    job = c.submit("-n1", "--mem=10", "--gpus=1", "--gpu-idle-timeout=8s", "-o", "/dev/null", "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    c.run("scontrol", "suspend", job)
    assert c.wait_end(idle_job(c, seconds=9)) == "TIMEOUT"
    assert c.job_state(job) == "SUSPENDED"
    c.run("scontrol", "resume", job)
    assert c.wait_end(job) == "TIMEOUT"
    assert c.field(job, "Reason") == "GpuIdle"
    # It had its whole time, without that of the pause; a clock of whole seconds may be off by one.
    assert c.field(job, "RunTime") >= "00:00:07"


def test_a_new_controller_goes_on_counting(site, tmp_path):
    c, _ = site
    output = tmp_path / "out"
    job = c.submit("-n1", "--mem=10", "--gpus=1", "--gpu-idle-timeout=10s", "-o", output, "--wrap", "sleep 600")
    until(lambda: output.exists() and "has not used its GPU for" in output.read_text(), what="the first warning")
    c.restart_controller()
    assert c.field(job, "GpuIdleTimeout") == "00:00:10"
    assert c.wait_end(job) == "TIMEOUT"
    # No warning was given again.
    check_warnings([line for line in output.read_text().splitlines() if line.startswith("berth: ")])


def test_srun_and_salloc_are_told_at_their_terminal(site):
    c, _ = site
    run = c.run("srun", "-n1", "--mem=10", "--gpus=1", "--gpu-idle-timeout=0:04", "sleep", "600", rc=None)
    assert run.returncode != 0 and run.stdout == ""
    check_warnings([line for line in run.stderr.splitlines() if line.startswith("berth: job ")])
    assert "DUE TO GPU IDLE TIMEOUT ***" in run.stderr
    run = c.run("salloc", "-n1", "--mem=10", "--gpus=1", "--gpu-idle-timeout=4s", "sleep", "20", rc=None)
    assert "and is ended (--gpu-idle-timeout)" in run.stderr and "has been revoked" in run.stderr


def test_a_partition_has_a_default_and_a_bound(site):
    c, _ = site
    shown = c.out("scontrol", "show", "partition", "spare")
    assert "GpuIdleTimeout=00:00:06 MaxGpuIdleTimeout=00:10:00" in shown
    assert "GpuIdleTimeout" not in c.out("scontrol", "show", "partition", "main")
    job = c.submit("-p", "spare", "-n1", "--mem=10", "--gpus=1", "-o", "/dev/null", "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    assert c.field(job, "GpuIdleTimeout") == "00:00:06"
    refused = c.run("sbatch", "-p", "spare", "-n1", "--gpus=1", "--gpu-idle-timeout=0", "--wrap", "true", rc=1)
    assert "Requested time limit is invalid" in refused.stderr
    assert "berth: partition spare lets GPUs be idle for 10 minutes at most (MaxGpuIdleTimeout); asked for: no limit" \
        in refused.stderr
    assert c.wait_end(job) == "TIMEOUT"
    c.run("scontrol", "update", "partition=spare", "GpuIdleTimeout=30m", "MaxGpuIdleTimeout=UNLIMITED")
    assert "GpuIdleTimeout=00:30:00 MaxGpuIdleTimeout=UNLIMITED" in c.out("scontrol", "show", "partition", "spare")
    job = c.submit("-p", "spare", "-n1", "--mem=10", "--gpus=1", "--gpu-idle-timeout=0", "-o", "/dev/null",
                   "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    assert c.field(job, "GpuIdleTimeout") == ""
    bad = c.run("scontrol", "update", "partition=spare", "GpuIdleTimeout=soon", rc=1)
    assert "GpuIdleTimeout=soon: allowed are" in bad.stderr


def test_the_limit_of_a_job_can_be_changed(site):
    c, gpus = site
    for gpu in range(4):
        busy(gpus, gpu, 5)
    job = c.submit("-n1", "--mem=10", "--gpus=1", "-o", "/dev/null", "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    assert c.field(job, "GpuIdleTimeout") == ""
    c.run("scontrol", "update", f"jobid={job}", "GpuIdleTimeout=2h")
    assert c.field(job, "GpuIdleTimeout") == "02:00:00"
    assert "90s, 30m, 2h" in c.run("scontrol", "update", f"jobid={job}", "GpuIdleTimeout=x", rc=1).stderr
    c.run("scontrol", "update", f"jobid={job}", "GpuIdleTimeout=3s")
    for gpu in range(4):
        busy(gpus, gpu, 0)
    assert c.wait_end(job) == "TIMEOUT"


def test_what_is_not_watched_does_not_end_a_job(site):
    c, gpus = site
    busy(gpus, 0, 5)
    job = c.submit("-n1", "--mem=10", "--gpus=1", "--gpu-idle-timeout=3s", "-o", "/dev/null", "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    # The driver stops telling how much the GPU is used.
    del gpus.gpu(0)["busy_percent"]
    gpus.write()
    assert c.wait_end(idle_job(c, seconds=5)) == "TIMEOUT"
    assert c.job_state(job) == "RUNNING"
    c.run("scancel", job)


def test_where_it_means_nothing_it_is_said(site):
    c, _ = site
    refused = c.run("sbatch", "-n1", "--gpu-idle-timeout=30", "--wrap", "true", rc=1)
    assert "but none are asked for" in refused.stderr
    assert "Invalid --gpu-idle-timeout specification" in c.run("sbatch", "--gpus=1", "--gpu-idle-timeout=soon",
                                                               "--wrap", "true", rc=255).stderr
    step = c.run("salloc", "-n1", "--mem=10", "--gpus=1", "srun", "--gpu-idle-timeout=30", "true", rc=None)
    assert step.returncode != 0 and "--gpu-idle-timeout is of a whole job" in step.stderr
    explained = c.out("berth", "explain", "--conf", c.conf.parent, "--", "sbatch", "-n1", "--mem=10", "--gpus=1",
                      "--gpu-idle-timeout=30m", "--wrap", "true")
    assert "ended when its GPUs are idle for 30 minutes" in explained


def test_a_pretended_cluster_says_that_nobody_looks():
    with Cluster(emulate="1x2:a100") as c:
        run = c.run("sbatch", "-n1", "--gpus=1", "--gpu-idle-timeout=1s", "-o", "/dev/null", "--wrap", "sleep 3")
        assert "berth: --gpu-idle-timeout: the nodes are pretended" in run.stderr
        job = run.stdout.split()[-1]
        assert c.wait_end(job) == "COMPLETED"
