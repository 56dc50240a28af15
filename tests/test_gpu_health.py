"""GPUs that go bad are taken out one by one, and come back: seen through the fake NVML library.

BERTH_FLAPS: how often a GPU comes and goes in the last test (30; 1,000 in `make soak`)."""

import os
import pathlib
import signal
import subprocess
import time

import pytest

from cluster import until
from fake_nvml import FakeNvml
from test_fence import started_again
from test_hardware import RealCluster, own_conf

pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="slurm.conf names root")]

# Looking once a second, and a moment for the way to the controller on a busy machine.
SOON = 2.5


def make_site(tmp_path, parameters):
    gpus = FakeNvml(tmp_path / "gpus.json", "l40s-pcie-4")
    cluster = RealCluster(gpus)
    own_conf(cluster, "AutoDetect=nvml\n", "gpu:l40s:4")
    text = cluster.conf.read_text().replace(" CPUs=1 ", f" CPUs={os.cpu_count()} ")
    cluster.conf.write_text(text + f"SlurmdParameters={parameters}\nMinJobAge=100000\n")
    return cluster, gpus


@pytest.fixture
def site(tmp_path):
    cluster, gpus = make_site(tmp_path, "gpu_probation=3")
    with cluster as c:
        until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        yield c, gpus


def node(c):
    return c.out("scontrol", "-d", "show", "node")


def drained(c):
    """"gpu:l40s:1(IDX:2)", or "N/A"."""
    return node(c).partition("GresDrain=")[2].splitlines()[0]


def until_out(c, gpu, seconds=SOON):
    until(lambda: drained(c) == f"gpu:l40s:1(IDX:{gpu})", seconds=seconds, what=f"GPU {gpu} is out")


def until_all_in(c, seconds=SOON):
    until(lambda: drained(c) == "N/A", seconds=seconds, what="all GPUs are in service")


def given(c, *words):
    return c.out("srun", "-n1", *words, "printenv", "SLURM_STEP_GPUS")


def change(gpus, index, **values):
    gpus.gpu(index).update(values)
    gpus.write()


KINDS = {
    "missing": ({"missing": True}, {"missing": False}, "it does not answer"),
    "ecc": ({"ecc_uncorrected": 3}, {"ecc_uncorrected": 0}, "3 uncorrected ECC errors"),
    "rows_pending": ({"rows_pending": True}, {"rows_pending": False}, "waits to be remapped"),
    "rows_failed": ({"rows_failed": True}, {"rows_failed": False}, "could not be remapped"),
    "xid": (79, None, "Xid 79 at "),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_gpu_is_taken_out_and_comes_back(site, kind):
    c, gpus = site
    bad, well, why = KINDS[kind]
    if kind == "xid":
        gpus.xid(2, bad)
    else:
        change(gpus, 2, **bad)
    until_out(c, 2)
    # That GPU, not the node.
    words = node(c).partition("GPUsOut=GPU 2: ")[2].splitlines()[0]
    assert why in words
    assert c.out("sinfo", "-h", "-o", "%T") == "idle" and c.out("sinfo", "-h", "-R") == ""
    if kind == "xid":
        until_all_in(c, seconds=10)  # the probation
        assert given(c, "--gpus=4") == "0,1,2,3"
        return
    assert given(c, "--gpus=3") == "0,1,3"
    # All four do exist: the job is taken, waits, and says for what.
    job = c.submit("-n1", "--gpus=4", "-o", "/dev/null", "--wrap", "true")
    time.sleep(1)
    assert c.job_state(job) == "PENDING"
    assert "out of service" in c.out("scontrol", "explain", "job", job)
    change(gpus, 2, **well)
    until_all_in(c)
    assert c.wait_end(job) == "COMPLETED"


def test_an_error_of_a_program_is_not_the_gpus(site):
    c, gpus = site
    gpus.xid(1, 31)
    gpus.xid(1, 13)
    gpus.xid(3, 48)
    until_out(c, 3)
    assert "GPU 1" not in node(c)


def test_a_batch_job_is_told_and_goes_on(site, tmp_path):
    c, gpus = site
    output = tmp_path / "out"
    job = c.submit("-n1", "--gpus=2", "-o", output, "--wrap", "echo begun; sleep 600")
    until(lambda: output.exists() and "begun" in output.read_text(), what="the job runs")
    change(gpus, 0, ecc_uncorrected=1)
    until(lambda: "GPU 0 of node" in output.read_text(), seconds=SOON, what="the batch job is told")
    assert "is out of service: 1 uncorrected ECC error" in output.read_text()
    until(lambda: "uncorrected ECC error" in c.out("scontrol", "show", "job", job), what="it is in the job's record")
    assert c.job_state(job) == "RUNNING"
    assert "GPUTrouble=" in c.out("scontrol", "show", "job", job)
    assert "went out of service while the job had it" in c.out("berth", "efficiency", job)
    # It holds the GPU until its end; the GPU is not given to the next one.
    c.run("scancel", job)
    c.wait_end(job)
    assert drained(c) == "gpu:l40s:1(IDX:0)"
    assert given(c, "--gpus=2") == "1,2"


def test_a_step_is_told_at_its_srun(site):
    c, gpus = site
    step = c.popen("timeout", "60", "srun", "-n1", "--gpus=1", "sh", "-c", "echo up; sleep 5")
    assert step.stdout.readline() == "up\n"
    change(gpus, 0, missing=True)
    _, told = step.communicate(timeout=60)
    assert "GPU 0 of node" in told and "is out of service: it does not answer" in told
    assert step.returncode == 0  # it was not ended


def test_who_is_left_on_a_gpu_after_a_job_is_named(site):
    c, gpus = site
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        job = c.submit("-n1", "--gpus=1", "-o", "/dev/null", "--wrap", "sleep 600")
        c.wait_state(job, "RUNNING")
        change(gpus, 0, processes=[{"pid": stranger.pid, "memory_mb": 3000}], memory_used_mb=3000)
        time.sleep(2.5)  # the agent has seen it
        assert drained(c) == "N/A"  # whose it is cannot be known while the job has it
        c.run("scancel", job)
        c.wait_end(job)
        # From the first moment on: the next job has another one.
        assert given(c, "--gpus=1") == "1"
        assert f"GPU 0: pid {stranger.pid} (sleep of root) has 3000 MiB on it" in node(c)
        assert c.out("sinfo", "-h", "-o", "%T") == "idle"
        waits = c.submit("-n1", "--gpus=4", "-o", "/dev/null", "--wrap", "true")
        time.sleep(1)
        assert c.job_state(waits) == "PENDING"
    finally:
        stranger.kill()
        stranger.wait()
    change(gpus, 0, processes=[], memory_used_mb=0)
    assert c.wait_end(waits) == "COMPLETED"
    assert drained(c) == "N/A"


def test_a_new_controller_knows(site):
    c, gpus = site
    change(gpus, 1, rows_pending=True)
    until_out(c, 1)
    c.restart_controller()
    until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
    assert drained(c) == "gpu:l40s:1(IDX:1)"
    assert given(c, "--gpus=3") == "0,2,3"
    c.run("scontrol", "reconfigure")
    assert drained(c) == "gpu:l40s:1(IDX:1)"


def by_hand(c, gpu, state, *words, rc=0, **options):
    host = os.uname().nodename.split(".")[0]
    return c.run("scontrol", "update", f"gpu={host}:{gpu}", f"state={state}", *words, rc=rc, **options)


def test_a_gpu_is_taken_out_by_hand_and_stays_out(site):
    c, gpus = site
    job = c.submit("-n1", "--gpus=2", "-o", "/dev/null", "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    assert "must specify a reason" in by_hand(c, 1, "drain", rc=1).stderr
    by_hand(c, 1, "drain", "reason=the fan is broken")
    assert drained(c) == "gpu:l40s:1(IDX:1)"
    words = node(c).partition("GPUsOut=GPU 1: ")[2].splitlines()[0]
    assert words.startswith("the fan is broken [root@20")
    assert c.job_state(job) == "RUNNING" and "GPUTrouble" not in c.out("scontrol", "show", "job", job)
    # Beside the lines that programs read.
    told = c.run("sinfo", "-h", "-R")
    assert told.stdout == "" and f"GPU 1: {words}" in told.stderr and told.stderr.startswith("berth: ")
    c.run("scancel", job)
    c.wait_end(job)
    assert given(c, "--gpus=3") == "0,2,3"
    waits = c.submit("-n1", "--gpus=4", "-o", "/dev/null", "--wrap", "true")
    until(lambda: "the fan is broken" in c.out("scontrol", "explain", "job", waits), what="it says for what it waits")
    # Over restarts of both daemons, whatever the node tells.
    c.restart_controller()
    agent = c.pid("node")
    os.kill(agent, signal.SIGKILL)
    until(lambda: started_again(c, agent), what="a new agent")
    until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
    assert drained(c) == "gpu:l40s:1(IDX:1)"
    change(gpus, 1, ecc_uncorrected=1)
    until(lambda: "uncorrected ECC error" in node(c), what="the node tells more")
    assert "stays out of service: 1 uncorrected ECC error" in by_hand(c, 1, "resume").stderr
    assert "the fan is broken" not in node(c)
    refused = by_hand(c, 1, "resume", rc=1).stderr
    assert "Invalid GPU state specified" in refused and "1 uncorrected ECC error" in refused
    change(gpus, 1, ecc_uncorrected=0)
    assert c.wait_end(waits) == "COMPLETED"
    assert drained(c) == "N/A"
    assert "it is in service" in by_hand(c, 1, "resume", rc=1).stderr
    assert "Access/permission denied" in by_hand(c, 1, "drain", "reason=no", rc=1, user="nobody").stderr


def test_resume_ends_a_probation(tmp_path):
    cluster, gpus = make_site(tmp_path, "gpu_probation=86400")
    with cluster as c:
        until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        gpus.xid(2, 79)
        until_out(c, 2)
        by_hand(c, 2, "resume")
        until_all_in(c)
        assert given(c, "--gpus=4") == "0,1,2,3"


@pytest.mark.parametrize("how", ["silent", "gone", "named", "unknown"])
def test_a_gpu_that_is_missing_when_the_agent_starts(tmp_path, how):
    """Only that GPU is out: the library counts it, the agent remembers it, gres.conf names it, or the last is taken."""
    cluster, gpus = make_site(tmp_path, "gpu_probation=0")
    if how == "named":
        (cluster.state / "gres.conf").write_text("AutoDetect=nvml\nName=gpu Type=l40s File=/dev/nvidia[0-3]\n")
    all_four = list(gpus.state["gpus"])
    uuid = gpus.gpu(1)["uuid"]

    def go_away():
        if how == "silent":
            change(gpus, 1, missing=True)
        else:
            gpus.state["gpus"] = all_four[:1] + all_four[2:]
            gpus.write()

    if how == "unknown":
        go_away()  # before anybody saw it
    with cluster as c:
        until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        if how != "unknown":
            assert drained(c) == "N/A"
            job = c.submit("-n1", "--mem=10", "--gpus=1", "-o", "/dev/null", "--wrap", "sleep 600")
            c.wait_state(job, "RUNNING")
            # As after a reboot, but for the job.
            agent = c.pid("node")
            os.kill(agent, signal.SIGKILL)
            go_away()
            until(lambda: started_again(c, agent), what="a new agent")
        out = 3 if how == "unknown" else 1
        why = {"silent": "does not answer", "gone": uuid, "named": "File=/dev/nvidia3 (gres.conf:2) is not there",
               "unknown": "nothing tells which: the last is taken for it"}[how]
        until(lambda: why in node(c).partition(f"GPUsOut=GPU {out}: ")[2], what=f"GPU {out} is out: {why}")
        assert drained(c) == f"gpu:l40s:1(IDX:{out})"
        assert c.out("sinfo", "-h", "-o", "%T") in ("idle", "mixed") and c.out("sinfo", "-h", "-R") == ""
        assert " is missing: " in c.out("berthd", "-G", "-f", c.conf)
        if how != "unknown":
            assert c.job_state(job) == "RUNNING"  # on GPU 0
            assert given(c, "--mem=10", "--gpus=2") == "2,3"
            c.run("scancel", job)
            c.wait_end(job)
        waits = c.submit("-n1", "--gpus=4", "-o", "/dev/null", "--wrap", "true")
        until(lambda: "out of service" in c.out("scontrol", "explain", "job", waits), what="it says for what it waits")
        # Back by itself; where the library did not count it, at the next registration.
        gpus.state["gpus"] = all_four
        change(gpus, 1, missing=False)
        if how != "silent":
            c.restart_controller()
        assert c.wait_end(waits) == "COMPLETED"
        assert drained(c) == "N/A"
        assert given(c, "--gpus=4") == "0,1,2,3"


def held(c):
    """Descriptors and resident memory of both daemons."""
    out = {}
    for which in ("controller", "node"):
        proc = pathlib.Path(f"/proc/{c.pid(which)}")
        status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
        out[which] = len(list((proc / "fd").iterdir())), int(status["VmRSS"].split()[0])
    return out


def test_a_gpu_that_comes_and_goes_leaks_nothing_and_loses_no_job(tmp_path):
    times = int(os.environ.get("BERTH_FLAPS", "30"))
    cluster, gpus = make_site(tmp_path, "gpu_probation=0,gpu_poll=20ms")
    jobs = []
    with cluster as c:
        until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        before = None
        for i in range(times):
            gpu = i % 4
            change(gpus, gpu, missing=True)
            until(lambda: f"IDX:{gpu})" in drained(c), what=f"round {i}: GPU {gpu} is out")
            if i % 5 == 0:
                jobs.append(c.submit("-n1", f"--gpus={1 + i % 4}", "-o", "/dev/null", "--wrap", "srun true; sleep 0.2"))
            change(gpus, gpu, missing=False)
            until(lambda: drained(c) == "N/A", what=f"round {i}: GPU {gpu} is back")
            if before is None and i >= times // 5:
                c.wait_idle()
                before = held(c)
        for job in jobs:
            assert c.wait_end(job) == "COMPLETED"
        c.wait_idle()
        time.sleep(1)
        after = held(c)
        for which, (descriptors, memory) in after.items():
            assert descriptors <= before[which][0] + 2, (which, before, after)
            assert memory <= before[which][1] * 1.1 + 2048, (which, before, after)
        states = c.out("sacct", "-n", "-X", "-o", "State", "-P").split()
        assert len(states) >= len(jobs) and set(states) == {"COMPLETED"}
