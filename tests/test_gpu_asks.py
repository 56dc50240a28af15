"""What is asked of GPUs beyond their number: a part of one by MPS, one of several models, so much memory."""

import json
import os

import pytest

from cluster import Cluster, until
from fake_nvml import FakeNvml
from test_hardware import RealCluster, own_conf

pytestmark = pytest.mark.live

SLURM_CONF = """ClusterName=asks
SlurmctldHost=h
GresTypes=gpu,mps
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerNode=100
NodeName=mps1 CPUs=8 RealMemory=8000 Gres=gpu:v100:2,mps:200
NodeName=mps2 CPUs=8 RealMemory=8000 Gres=gpu:v100:1,mps:1300
NodeName=a1 CPUs=8 RealMemory=8000 Gres=gpu:a100_40gb:4
NodeName=h1 CPUs=8 RealMemory=8000 Gres=gpu:h100_80gb:4
PartitionName=mps Nodes=mps[1-2]
PartitionName=main Nodes=a1,h1 Default=YES
"""
GRES_CONF = """NodeName=mps1 Name=gpu Type=v100 File=/dev/nvidia[0-1]
NodeName=mps2 Name=gpu Type=v100 File=/dev/nvidia0
NodeName=mps2 Name=mps Count=1300 File=/dev/nvidia0
NodeName=a1 Name=gpu Type=a100_40gb File=/dev/nvidia[0-3]
NodeName=h1 Name=gpu Type=h100_80gb File=/dev/nvidia[0-3]
"""
SHOW = "echo $CUDA_VISIBLE_DEVICES/$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE/$SLURM_GPUS_ON_NODE"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    conf = tmp_path_factory.mktemp("conf")
    (conf / "slurm.conf").write_text(SLURM_CONF)
    (conf / "gres.conf").write_text(GRES_CONF)
    with Cluster(emulate=conf) as c:
        yield c


@pytest.fixture
def c(cluster):
    cluster.wait_idle()
    yield cluster
    cluster.run("scancel", "--me")
    cluster.wait_idle()


def held(c, *words):
    """A job that runs until the end of the test."""
    job = c.submit("-n1", "-o", "/dev/null", *words, "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    return job


def gpus_of(c, job):
    """The types and numbers of what it has: "gpu:a100_40gb:4(IDX:0-3)"."""
    return c.out("scontrol", "-d", "show", "job", job).partition(" GRES=")[2].split()[0]


# ---- MPS ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("node, ask, percent", [("mps1", 50, "50"), ("mps1", 100, "100"), ("mps2", 200, "15"), ("mps2", 1, "1")])
def test_mps_tells_its_part_of_the_gpu(c, node, ask, percent):
    got = c.out("srun", "-p", "mps", "-w", node, "-n1", f"--gres=mps:{ask}", "sh", "-c", SHOW)
    assert got == f"0/{percent}/1"


def test_who_has_no_mps_is_told_nothing_of_it(c):
    assert c.out("srun", "-p", "mps", "-w", "mps1", "-n1", "--gres=gpu:1", "sh", "-c", SHOW) == "0//1"
    assert c.out("srun", "-p", "mps", "-w", "mps1", "-n1", "sh", "-c", SHOW) == "//"


def test_mps_shares_one_gpu_of_a_node_and_leaves_the_others_whole(c):
    first = held(c, "-p", "mps", "-w", "mps1", "--gres=mps:60")
    second = held(c, "-p", "mps", "-w", "mps1", "--gres=mps:40")
    assert gpus_of(c, first) == gpus_of(c, second).replace("40", "60")
    # Neither more of that GPU, nor of another one: one is shared at a time.
    waits = c.submit("-p", "mps", "-w", "mps1", "-n1", "--gres=mps:30", "-o", "/dev/null", "--wrap", "true")
    both = c.submit("-p", "mps", "-w", "mps1", "-n1", "--gpus=2", "-o", "/dev/null", "--wrap", "true")
    assert c.out("srun", "-p", "mps", "-w", "mps1", "-n1", "--gpus=1", "printenv", "SLURM_STEP_GPUS") == "1"
    assert c.job_state(waits) == "PENDING" and c.job_state(both) == "PENDING"
    c.run("scancel", second)
    assert c.wait_end(waits) == "COMPLETED"
    assert c.job_state(both) == "PENDING"
    c.run("scancel", first)
    assert c.wait_end(both) == "COMPLETED"
    # More than one GPU has is never, which is said at once.
    never = c.run("sbatch", "-p", "mps", "-w", "mps1", "-n1", "--gres=mps:150", "--wrap", "true").stderr
    assert "must all come from one GPU" in never and "it never starts" in never


# ---- one of several models, so much memory --------------------------------------------------------
def test_one_of_several_models(c):
    ask = "--gpus=a100_40gb|h100_80gb:4"
    first = held(c, ask)
    assert gpus_of(c, first) == "gpu:a100_40gb:4(IDX:0-3)"
    second = held(c, ask)  # the first of the list that can be had now
    assert gpus_of(c, second) == "gpu:h100_80gb:4(IDX:0-3)"
    waits = c.submit("-n1", ask, "-o", "/dev/null", "--wrap", "true")
    until(lambda: "(Resources)" in c.out("squeue", "-h", "-j", waits, "-o", "%R"), what="it waits for GPUs")
    c.run("scancel", second)
    assert c.wait_end(waits) == "COMPLETED"
    # All of a job are of the same model: there is one node of each.
    c.run("scancel", first)
    both = c.run("sbatch", "-N2", "-n2", "--gpus=a100_40gb|h100_80gb:2", "--wrap", "true", rc=1).stderr
    assert "1 of the 2 nodes asked for can be used" in both
    wrong = c.run("sbatch", "-n1", "--gpus=b100|b200:1", "--wrap", "true", rc=1).stderr
    assert "sbatch: error: " in wrong and "berth: " in wrong and "b100" in wrong


def test_so_much_memory(c, tmp_path):
    assert gpus_of(c, held(c, "--gpus=1", "--gpu-mem-min=40G")) == "gpu:a100_40gb:1(IDX:0)"
    assert gpus_of(c, held(c, "--gpus=1", "--gpu-mem-min=60G")) == "gpu:h100_80gb:1(IDX:0)"
    never = c.run("sbatch", "-n1", "--gpus=1", "--gpu-mem-min=90G", "--wrap", "true", rc=1).stderr
    assert "no GPU of partition main has 90G of memory" in never and "80G" in never
    # Before anybody submits it, too.
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -n1 --gpus=1 --gpu-mem-min=60G\nsrun true\n")
    plan = json.loads(c.out("berth", "explain", "--json", "--conf", c.emulate, script))
    assert plan["steps"][0]["tasks"][0]["node"] == "h1"


@pytest.mark.skipif(os.geteuid() != 0, reason="slurm.conf names root")
def test_so_much_memory_as_the_node_has_told(tmp_path):
    cluster = RealCluster(FakeNvml(tmp_path / "gpus.json", "l40s-pcie-4"))
    own_conf(cluster, "AutoDetect=nvml\n", "gpu:l40s:4")
    with cluster as c:
        until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        # 46068 MiB, which its name does not say.
        assert c.out("srun", "-n1", "--gpus=2", "--gpu-mem-min=40G", "printenv", "CUDA_VISIBLE_DEVICES") == "0,1"
        c.wait_idle()
        never = c.run("srun", "-n1", "--gpus=1", "--gpu-mem-min=46G", "true", rc=1).stderr
        assert "no GPU of partition main has 46G of memory" in never
