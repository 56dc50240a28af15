"""What jobs make of their GPUs: seen through the fake NVML library, told by berth efficiency."""

import json
import os
import signal

import pytest

from cluster import until
from fake_nvml import FakeNvml
from test_hardware import RealCluster, own_conf

pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="slurm.conf names root")]


@pytest.fixture
def site(tmp_path):
    gpus = FakeNvml(tmp_path / "gpus.json", "l40s-pcie-4")
    cluster = RealCluster(gpus)
    own_conf(cluster, "AutoDetect=nvml\n", "gpu:l40s:4")
    with open(cluster.conf, "a") as conf:
        conf.write("JobAcctGatherFrequency=task=1\n")
    with cluster as c:
        until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        yield c, gpus


def children_of(pid, name):
    """Processes of that name whose parent it is."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat") as stat:
                words = stat.read().rpartition(")")
        except (OSError, ValueError):
            continue
        if words[2].split()[1:2] == [str(pid)] and words[0].partition("(")[2] == name:
            found.append(int(entry))
    return found


def gpus_of(c, job):
    return json.loads(c.out("berth", "efficiency", "--json", job))["jobs"][0]["gpus"]


def test_use_of_gpus_is_seen_while_the_job_runs_and_after(site):
    c, fake = site
    job = c.submit("-n1", "--gpus=2", "-o", "/dev/null", "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    until(lambda: len(gpus_of(c, job)) == 2, what="two GPUs are watched")
    assert all(gpu["busy_percent"] == 0 for gpu in gpus_of(c, job))
    fake.gpu(0).update(busy_percent=80, memory_used_mb=30000, power_mw=300000,
                       processes=[{"pid": 4711, "memory_mb": 15000}, {"pid": 4712, "memory_mb": 15000}])
    # Somebody else's: not the job's.
    fake.gpu(3).update(busy_percent=100, memory_used_mb=40000)
    fake.write()
    until(lambda: gpus_of(c, job)[0]["busy_percent_now"] == 80, what="GPU 0 is busy")
    until(lambda: gpus_of(c, job)[0]["rounds"] >= 12, what="a dozen looks")
    first, second = gpus_of(c, job)
    assert first["memory_now_mb"] == 30000 and first["processes_now"] == 2 and first["type"] == "l40s"
    assert 0 < first["busy_percent"] <= 80 and first["energy_joules"] > 300
    assert second["busy_percent"] == 0 and second["idle_seconds"] >= 10
    columns = c.out("squeue", "-h", "-j", job, "-O", "GpuBusy:.8,GpuMemory:.10,GpuIdle:.12").split()
    assert columns[0].endswith("%") and columns[1] == "30000M" and columns[2].startswith("00:00:")
    power, energy = c.out("squeue", "-h", "-j", job, "--noconvert", "-O", "GpuPower:.8,GpuEnergy:.12").split()
    assert power == "360W" and int(energy) > 300
    text = c.out("berth", "efficiency", job)
    assert "2 processes use GPU 0" in text and "GPU 1 is idle" in text and "--gpus-per-task=1" in text
    fake.gpu(0).update(busy_percent=0, memory_used_mb=1000, processes=[])
    fake.write()
    until(lambda: gpus_of(c, job)[0]["busy_percent_now"] == 0, what="GPU 0 is idle")
    c.run("scancel", job)
    c.wait_end(job)
    after = gpus_of(c, job)
    assert len(after) == 2 and after[0]["memory_most_mb"] == 30000 and after[0]["busy_percent_most"] == 80
    assert after[0]["rounds"] >= first["rounds"] and "busy_percent_now" not in after[0]
    row = c.out("sacct", "-n", "-X", "-P", "-j", job, "--noconvert", "-o", "GpuMemory,GpuEnergy,GpuIdle").split("|")
    assert row[0] == "30000M" and int(row[1]) >= int(energy) and row[2].startswith("00:00:"), row
    # Of its script, too: it held the same GPUs, from its first to its last second.
    joules = c.out("sacct", "-n", "-P", "-j", f"{job}.batch", "-o", "ConsumedEnergyRaw,TRESUsageInTot").split("|")
    assert 300 < int(joules[0]) <= int(row[1]) + 800, (joules, row)
    assert f",energy={joules[0]}," in joules[1], joules
    # It is in the store, too.
    c.restart_controller()
    assert gpus_of(c, job) == after


def test_tasks_that_crowd_on_one_gpu_are_told_so(site):
    c, fake = site
    pids = c.state / "pids"
    heard = c.state / "heard"
    with open(heard, "w") as stderr:
        run = c.popen("srun", "-n2", "--overcommit", "--gpus=3", "sh", "-c", f"echo $$ >> {pids}; exec sleep 600", stderr=stderr)
    found = until(lambda: pids.exists() and len(pids.read_text().split()) == 2 and pids.read_text().split(), what="two tasks")
    fake.gpu(0).update(busy_percent=90, processes=[{"pid": int(pid), "memory_mb": 1000} for pid in found])
    fake.write()
    until(lambda: "idle: --gpus-per-task=1" in heard.read_text(), what="the hint")
    assert heard.read_text().startswith("berth: tasks 0-1 on ") and "use GPU 0, GPUs 1-2 are idle" in heard.read_text()
    run.terminate()
    run.wait()


def test_a_job_without_gpus_has_none_to_show(site):
    c, _ = site
    job = c.submit("-n1", "-o", "/dev/null", "--wrap", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done")
    c.wait_end(job)
    shown = json.loads(c.out("berth", "efficiency", "--json", job))["jobs"][0]
    assert shown["gpus"] == [] and shown["hints"] == [] and shown["cpu_milliseconds"] > 0
    assert "no such job" in c.run("berth", "efficiency", "4000000", rc=1).stderr
    assert "is no job" in c.run("berth", "efficiency", "me", rc=1).stderr


def test_the_helper_goes_with_the_agent(site):
    c, _ = site
    agent = c.pid("node")
    helpers = until(lambda: children_of(agent, "berth-nvml"), what="the helper runs")
    c.run("scancel", "--me", rc=None)
    os.kill(agent, signal.SIGTERM)
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in helpers), what="it has ended with the agent")
