"""Keeping GPUs whole: live, and bench-openb, which measures it (docs/packing.md)."""

import csv
import subprocess

import pytest
from cluster import Cluster, bin_dir, clean_environment

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
    f"n{i},32000,131072,4,V100\n" for i in range(3)) + "t,64000,131072,2,T4\n"
PODS = ("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
        "a,4000,1024,1,1000,\nb,4000,1024,1,460,T4|V100\nc,16000,8192,0,0,\nd,28000,4096,4,1000,V100\n")


def bench(folder, nodes=NODES, pods=PODS, more=("--seeds", "42-43")):
    (folder / "nodes.csv").write_text(nodes)
    (folder / "pods.csv").write_text(pods)
    return subprocess.run([bin_dir() / "bench-openb", "--nodes", "nodes.csv", "--pods", "pods.csv", *more],
                          cwd=folder, env=clean_environment(), text=True, capture_output=True, timeout=60)


def test_bench_prints_a_line_for_each_percent(tmp_path):
    run = bench(tmp_path)
    assert run.returncode == 0 and run.stderr == ""
    rows = list(csv.DictReader(run.stdout.splitlines()))
    assert list(rows[0]) == ["seed", "arrived_percent", "allocated_percent"]
    assert [(r["seed"], r["arrived_percent"]) for r in rows] == [
        (seed, str(percent)) for seed in ("42", "43") for percent in range(1, 131)]
    assert all(0 <= float(r["allocated_percent"]) <= 100 for r in rows)
    assert bench(tmp_path).stdout == run.stdout
    means = bench(tmp_path, more=("--seeds", "42-43", "--summary")).stdout.splitlines()
    at_100 = [float(r["allocated_percent"]) for r in rows if r["arrived_percent"] == "100"]
    assert f"100,{sum(at_100) / 2:.2f}" in means


@pytest.mark.parametrize(("change", "rc", "says"), [
    ({"pods": PODS.replace("num_gpu", "gpus")}, 1, 'pods.csv: no column "num_gpu" in its first line'),
    ({"pods": PODS.replace("460", "half")}, 1, 'pods.csv:3: gpu_milli: "half" is not a whole number'),
    ({"nodes": ""}, 1, "nodes.csv: cannot be read, or is empty"),
    ({"more": ("--seeds", "9-1")}, 2, "--seeds 9-1: a seed or a range such as 42-51 is expected"),
    ({"more": ("--policy", "luck")}, 2, "--policy luck: keep-whole, best-fit or fgd is expected"),
    ({"more": ("--fast",)}, 2, "--fast: unknown option"),
])
def test_bench_says_what_is_wrong(tmp_path, change, rc, says):
    run = bench(tmp_path, **change)
    assert run.returncode == rc and run.stdout == ""
    assert run.stderr.splitlines()[0] == f"bench-openb: error: {says}"


@pytest.mark.live
def test_small_jobs_gather_on_a_live_cluster():
    """`berth up` keeps GPUs whole: small jobs go where GPUs are taken already, large ones still start."""
    with Cluster(emulate="gpu[1-3]:cpus=16:mem=64G:gpus=a100x4") as c:
        assert "BERTH_KEEP_GPUS_WHOLE" in c.out("scontrol", "show", "config")
        held = ("-o", "/dev/null", "--wrap", "sleep 300")

        def starts(*options):
            job = c.submit(*options, *held)
            c.wait_state(job, "RUNNING")
            return c.field(job, "NodeList")

        assert starts("-w", "gpu2", "--gpus=1") == "gpu2"
        assert starts("--gpus=1") == "gpu2"
        assert starts("-N1", "--gpus=4") == "gpu1"
        assert starts("--gpus=1") == "gpu2"
        assert starts("-N1", "--gpus=4") == "gpu3"
