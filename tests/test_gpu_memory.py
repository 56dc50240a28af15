"""--gpu-mem: parts of GPUs' memory are given out, watched through the fake NVML library, and kept to if so configured."""

import json
import os
import subprocess

import pytest

from cluster import Cluster, until
from fake_nvml import FakeNvml
from test_hardware import RealCluster, own_conf

pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="slurm.conf names root")]


def make_site(tmp_path, parameters, gres="gpu:l40s:4"):
    gpus = FakeNvml(tmp_path / "gpus.json", "l40s-pcie-4")
    cluster = RealCluster(gpus)
    own_conf(cluster, "AutoDetect=nvml\n", gres)
    text = cluster.conf.read_text().replace(" CPUs=1 ", " CPUs=8 ")
    types = "gpu,gpumem,shard"
    text = "\n".join(f"GresTypes={types}" if line.startswith("GresTypes=") else line for line in text.splitlines())
    cluster.conf.write_text(f"{text}\nSlurmdParameters=config_overrides,gpu_poll=50ms{parameters}\n"
                            "JobAcctGatherFrequency=task=1\nDefMemPerCPU=1\nAccountingStorageTRES=gres/gpumem\n")
    return cluster, gpus


@pytest.fixture
def site(tmp_path):
    cluster, gpus = make_site(tmp_path, "")
    with cluster as c:
        until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        yield c, gpus


def start(c, tmp_path, name, *words):
    """A batch job that waits; its id, the pid of a process of its own, and where its output goes."""
    pid, out = tmp_path / f"{name}.pid", tmp_path / f"{name}.out"
    job = c.submit("-n1", "-o", str(out), *words, "--wrap", f"sleep 600 & echo $! > {pid}.new; mv {pid}.new {pid}; wait")
    until(pid.exists, what=f"{name} runs")
    return job, int(pid.read_text()), out


def put_on(gpus, index, *processes):
    gpus.gpu(index)["processes"] = [{"pid": pid, "memory_mb": mb} for pid, mb in processes]
    gpus.write()


def test_parts_of_a_gpu_are_counted(site, tmp_path):
    c, gpus = site
    one, _, _ = start(c, tmp_path, "one", "--gpu-mem=20G")
    two, _, _ = start(c, tmp_path, "two", "--gpu-mem=24G")
    three, _, _ = start(c, tmp_path, "three", "--gpu-mem=24G")
    shown = c.out("scontrol", "-d", "show", "job", one)
    assert "TresPerNode=gres/gpumem:20480" in shown and "gres/gpumem=20G" in shown
    assert "GRES=gpumem:l40s:20480(" in shown
    used = c.out("scontrol", "-d", "show", "node").partition("GresUsed=")[2].split()[0]
    assert used.startswith("gpu:l40s:0(IDX:N/A),gpumem:l40s:69632(45056/"), used
    first, second, third = (c.out("scontrol", "-d", "show", "job", job).partition("GRES=")[2] for job in (one, two, three))
    assert "(20480/" in first and "(24576/" in second and ",24576/" in third
    assert "GpuMemory" not in c.out("sinfo", "-h", "-o", "%G") and "gpumem" not in c.out("sinfo", "-h", "-o", "%G")
    # Two of four GPUs are free of parts.
    assert c.out("srun", "-n1", "--gpus=2", "printenv", "SLURM_STEP_GPUS") == "2,3"
    waiting = c.submit("-n1", "--gpus=3", "-o", "/dev/null", "--wrap", "true")
    c.run("scancel", two, one, three)
    for job in (one, two, three, waiting):
        c.wait_end(job)
    assert c.out("srun", "-n1", "--gpu-mem=1G", "sh", "-c", "echo $BERTH_GPU_MEM $CUDA_VISIBLE_DEVICES") == "1024 0"
    # A step may have less than its job.
    assert c.out("salloc", "-Q", "-n1", "--gpu-mem=8G", "srun", "--gpu-mem=2G", "printenv", "BERTH_GPU_MEM") == "2048"
    assert "has 100G of memory (have 4 with " in c.run("srun", "-n1", "--gpu-mem=100G", "true", rc=1).stderr
    assert "--gpu-mem=10G" in c.run("srun", "-n1", "--gres=gpumem:10", "true", rc=None).stderr


def test_jobs_keep_their_part_over_a_restart_of_the_controller(site, tmp_path):
    c, gpus = site
    one, pid, _ = start(c, tmp_path, "one", "--gpu-mem=40G")
    c.restart_controller()
    until(lambda: c.out("sinfo", "-h", "-o", "%T") in ("mixed", "allocated"), what="the node is back")
    assert c.out("squeue", "-h", "-j", one, "-o", "%T") == "RUNNING"
    assert c.out("srun", "-n1", "--gpu-mem=20G", "printenv", "CUDA_VISIBLE_DEVICES") == "1"
    c.run("scancel", one)
    c.wait_end(one)


def test_a_controller_starts_without_what_its_jobs_had(site, tmp_path):
    """gpumem is taken out of slurm.conf while a job has some: the job ends, not the controller."""
    c, _ = site
    job, pid, _ = start(c, tmp_path, "one", "--gpu-mem=20G")
    c.conf.write_text(c.conf.read_text().replace("gpu,gpumem,shard", "gpu,shard").replace(
        "AccountingStorageTRES=gres/gpumem\n", ""))
    c.restart_controller()
    assert c.wait_end(job) == "NODE_FAIL"
    until(lambda: not os.path.exists(f"/proc/{pid}"), what="its process is gone")
    assert c.out("srun", "-n1", "--gpus=1", "printenv", "SLURM_STEP_GPUS") == "0"
    assert "is not given out here" in c.run("srun", "-n1", "--gpu-mem=1G", "true", rc=1).stderr


def test_a_node_that_registers_again_is_as_good_as_before(tmp_path):
    """What it told of its GPUs' memory is no configuration that it has to meet."""
    with RealCluster(FakeNvml(tmp_path / "gpus.json", "l40s-pcie-4")) as c:
        assert c.out("srun", "-n1", "--gpu-mem=20G", "printenv", "BERTH_GPU_MEM") == "20480"
        c.restart_agent()
        assert c.out("srun", "-n1", "--gpu-mem=20G", "printenv", "BERTH_GPU_MEM") == "20480"
        assert "INVALID" not in c.out("scontrol", "show", "node")


def test_who_has_too_much_is_named_to_all_on_the_gpu(site, tmp_path):
    c, gpus = site
    greedy, hog, own = start(c, tmp_path, "greedy", "--gpu-mem=10G")
    victim, modest, other = start(c, tmp_path, "victim", "--gpu-mem=20G")
    alone, _, nobody = start(c, tmp_path, "alone", "--gpus=1")
    put_on(gpus, 0, (hog, 10000), (modest, 20000))
    until(lambda: use_of(c, greedy)["memory_now_mb"] == 10000, what="its own memory is told")
    assert use_of(c, greedy)["memory_given_mb"] == 10240 and use_of(c, victim)["memory_now_mb"] == 20000
    assert own.read_text() == "" == other.read_text()
    put_on(gpus, 0, (hog, 12288), (modest, 20000))
    until(lambda: "this job has 12288 MiB of its memory" in own.read_text(), what="it is told")
    assert f"step {greedy}.batch, pid {hog}, sleep" in own.read_text() and "10240 MiB were asked for" in own.read_text()
    until(lambda: f"job {greedy} of root has 12288 MiB" in other.read_text(), what="the other one, too")
    until(lambda: use_of(c, greedy)["memory_most_mb"] == 12288, what="it is kept")
    assert "memory 12.0G of 10.0G given (120 %)" in c.out("berth", "efficiency", greedy)
    assert nobody.read_text() == "" and own.read_text().count("\n") == 1
    # Who comes later hears of it as well, and nobody twice.
    late, _, third = start(c, tmp_path, "late", "--gpu-mem=1G")
    until(lambda: f"job {greedy} of root has 12288 MiB" in third.read_text(), what="the late one is told")
    assert own.read_text().count("\n") == 1 == other.read_text().count("\n")
    for job in greedy, victim, alone, late:
        assert c.out("squeue", "-h", "-j", job, "-o", "%T") == "RUNNING"


def test_a_variable_makes_no_process_part_of_a_step(tmp_path):
    """Without cgroup v2 the mark in the environment counts, but only of processes of the step's user."""
    cluster, gpus = make_site(tmp_path, ",gpu_mem=kill")
    with cluster as c:
        until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        job, own, out = start(c, tmp_path, "job", "--gpu-mem=10G")
        with open(f"/proc/{own}/environ") as environ:
            mark = dict(line.partition("=")[::2] for line in environ.read().split("\0"))["BERTH_STEP"]
        with subprocess.Popen(["/bin/sleep", "600"], env={"BERTH_STEP": mark}, user="nobody") as impostor:
            put_on(gpus, 0, (own, 1000), (impostor.pid, 12288))
            until(lambda: use_of(c, job)["memory_now_mb"] == 1000, what="its own memory is told")
            assert c.job_state(job) == "RUNNING" and out.read_text() == ""
            impostor.kill()
        c.run("scancel", job)


def use_of(c, job):
    return (json.loads(c.out("berth", "efficiency", "--json", job))["jobs"][0]["gpus"] or [{"memory_now_mb": None}])[0]


def test_who_has_too_much_is_ended_where_that_is_configured(tmp_path):
    cluster, gpus = make_site(tmp_path, ",gpu_mem=kill")
    with cluster as c:
        until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        greedy, hog, own = start(c, tmp_path, "greedy", "--gpu-mem=10G")
        victim, modest, other = start(c, tmp_path, "victim", "--gpu-mem=20G")
        put_on(gpus, 0, (hog, 12288), (modest, 20480))
        c.wait_end(greedy)
        assert c.out("sacct", "-n", "-X", "-P", "-j", greedy, "-o", "State") == "OUT_OF_MEMORY"
        assert "DUE TO GPU MEMORY" in own.read_text() and "10240 MiB were asked for" in own.read_text()
        put_on(gpus, 0, (modest, 20480))
        assert c.out("squeue", "-h", "-j", victim, "-o", "%T") == "RUNNING"
        # A step of srun that has too much does not take its job along.
        pid = tmp_path / "step.pid"
        step = c.submit("-n1", "--gpu-mem=4G", "-o", str(tmp_path / "step.out"), "--wrap",
                        f"srun sh -c 'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600'; echo srun said $?")
        until(pid.exists, what="the step runs")
        put_on(gpus, 0, (modest, 20480), (int(pid.read_text()), 5000))
        c.wait_end(step)
        assert "srun said 1" in (tmp_path / "step.out").read_text()
        assert c.out("sacct", "-n", "-P", "-j", f"{step}.0", "-o", "State") == "OUT_OF_MEMORY"
        put_on(gpus, 0)


def test_every_step_that_has_too_much_is_ended(tmp_path):
    cluster, gpus = make_site(tmp_path, ",gpu_mem=kill")
    with cluster as c:
        until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        pids = [tmp_path / f"step{i}.pid" for i in range(3)]
        steps = " & ".join(f"srun -n1 --exact --overlap sh -c 'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600'"
                           for pid in pids)
        job = c.submit("-n3", "--gpu-mem=4G", "-o", str(tmp_path / "out"), "--wrap", f"{steps} & wait; sleep 600")
        for pid in pids:
            until(pid.exists, what="the step runs")
        numbers = [int(pid.read_text()) for pid in pids]
        put_on(gpus, 0, *zip(numbers, (6000, 5000, 1000)))

        def states():
            return sorted(c.out("sacct", "-n", "-P", "-j", job, "-o", "State").splitlines()[2:])

        until(lambda: states() == ["OUT_OF_MEMORY", "OUT_OF_MEMORY", "RUNNING"], what="two of three are ended")
        assert os.path.exists(f"/proc/{numbers[2]}")
        c.run("scancel", job)


def test_shards_are_watched_but_bind_nobody(tmp_path):
    cluster, gpus = make_site(tmp_path, ",gpu_mem=kill", "gpu:l40s:4,shard:16")
    with cluster as c:
        until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        greedy, hog, own = start(c, tmp_path, "greedy", "--gres=shard:1")
        put_on(gpus, 0, (hog, 30000))
        until(lambda: use_of(c, greedy)["memory_now_mb"] == 30000, what="its memory is told")
        assert own.read_text() == "", "nobody else is there"
        victim, _, other = start(c, tmp_path, "victim", "--gres=shard:1")
        until(lambda: f"job {greedy} of root has 30000 MiB" in other.read_text(), what="the neighbour is told")
        assert "its shards stand for 1" in own.read_text()
        assert c.out("squeue", "-h", "-j", greedy, "-o", "%T") == "RUNNING"


def test_a_pretended_cluster_gives_out_what_its_types_say():
    with Cluster("2x2:a100_80gb") as c:
        job = c.submit("-n1", "--gpu-mem=50G", "-o", "/dev/null", "--wrap", "sleep 600")
        c.wait_state(job, "RUNNING")
        assert c.out("srun", "-n1", "--gpu-mem=30G", "printenv", "SLURM_STEP_GPUS") == "0"
        assert c.out("srun", "-n1", "--gpu-mem=31G", "printenv", "SLURM_STEP_GPUS") == "1"
        explained = c.out("berth", "explain", "--emulate", "2x2:a100_80gb", "--", "srun", "-n1", "--gpu-mem=30G", "true")
        assert "30G of a GPU's memory" in explained and "(30G of its memory)" in explained
    with Cluster("1x2:a100") as c:
        refused = c.run("srun", "-n1", "--gpu-mem=30G", "true", rc=1).stderr
        assert "Invalid generic resource" in refused and "GresTypes=gpu,gpumem" in refused
