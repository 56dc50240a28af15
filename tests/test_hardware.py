"""GPUs that are found: by the fake NVML library in place of NVIDIA's, through the real programs."""

import json
import os
import re
import shutil
import subprocess
import time

import pytest

from cluster import ROOT, Cluster, bin_dir, clean_environment, until
from fake_nvml import TOPOLOGIES, FakeNvml, read_lines

NAMES = sorted(path.stem for path in TOPOLOGIES.glob("*.topology"))


def run(*words, env=None, rc=0):
    done = subprocess.run([bin_dir() / words[0], *map(str, words[1:])], env=env or clean_environment(), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == rc, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


@pytest.fixture
def fake(tmp_path):
    return lambda name: FakeNvml(tmp_path / "gpus.json", name)


# ---- berth-nvml ---------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_list_tells_what_the_library_knows(fake, name):
    gpus = fake(name)
    told = run("berth-nvml", "list", env=clean_environment(**gpus.env)).stdout
    lines = [line for line in gpus.text.splitlines() if not line.startswith(("#", "cpus "))]
    assert told.splitlines() == lines


def test_list_with_an_older_driver(fake):
    gpus = fake("a6000-4-4-two-sockets")
    before = run("berth-nvml", "list", env=clean_environment(**gpus.env)).stdout
    gpus.state["missing_functions"] = [
        "nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetPciInfo_v3",
        "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetMigMode", "nvmlDeviceGetNvLinkRemotePciInfo_v2",
        "nvmlDeviceGetNvLinkRemoteDeviceType"]
    gpus.write()
    assert run("berth-nvml", "list", env=clean_environment(**gpus.env)).stdout == before
    # What the driver does not tell is left out.
    gpus.state["missing_functions"] += ["nvmlDeviceGetUUID", "nvmlDeviceGetTopologyCommonAncestor"]
    gpus.write()
    told = list(read_lines(run("berth-nvml", "list", env=clean_environment(**gpus.env)).stdout))
    assert "way" not in [what for what, _ in told]
    assert all("uuid" not in of for what, of in told if what == "gpu")


def test_a_library_that_cannot_be_used_is_named(fake, tmp_path):
    env = clean_environment(BERTH_NVML_LIBRARY="/nonexistent/libnvidia-ml.so.1")
    assert "cannot load /nonexistent/libnvidia-ml.so.1" in run("berth-nvml", "list", env=env, rc=1).stderr
    gpus = fake("l40s-pcie-4")
    env = clean_environment(**gpus.env | {"BERTH_FAKE_NVML": str(tmp_path / "none.json")})
    assert "the driver is not loaded" in run("berth-nvml", "list", env=env, rc=1).stderr
    assert "10ms to 3600s" in run("berth-nvml", "watch", "--every", "1ms", rc=1).stderr
    assert run("berth-nvml", "look", rc=2).stderr.startswith("Usage:")


class Watch:
    """berth-nvml watch, and its rounds as they come: [(what, {key: value})]."""

    def __init__(self, gpus, every="50ms"):
        self.process = subprocess.Popen([bin_dir() / "berth-nvml", "watch", "--every", every], text=True,
                                        env=clean_environment(**gpus.env), stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "berth-nvml version=1\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def line(self):
        return next(read_lines(self.process.stdout.readline()))

    def round(self):
        out = []
        while not out or out[-1][0] != "end":
            out.append(self.line())
        return out

    def until(self, seen, seconds=10):
        """Rounds until one has a line for which seen(what, of); that line."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for what, of in self.round():
                if seen(what, of):
                    return of
        raise AssertionError("it did not come")


def test_watch_tells_how_gpus_fare(fake):
    gpus = fake("h100-nvswitch-8")
    with Watch(gpus) as watch:
        first = watch.round()
        assert [what for what, _ in first] == ["sample"] * 8 + ["end"]
        assert first[0][1] == {"gpu": "0", "busy_percent": "0", "memory_used_mb": "0", "power_mw": "60000",
                               "celsius": "30", "ecc_corrected": "0", "ecc_uncorrected": "0", "rows_remapped": "0",
                               "rows_pending": "0", "rows_failed": "0"}
        gpus.gpu(2).update(busy_percent=97, memory_used_mb=5000, power_mw=650000, ecc_uncorrected=3, rows_pending=True,
                           processes=[{"pid": 4711, "memory_mb": 4000}, {"pid": 4712}, {"pid": 5, "draws": True}])
        del gpus.gpu(3)["power_mw"]
        gpus.write()
        busy = watch.until(lambda what, of: what == "sample" and of.get("busy_percent") == "97")
        assert (busy["gpu"], busy["memory_used_mb"], busy["ecc_uncorrected"], busy["rows_pending"]) == \
            ("2", "5000", "3", "1")
        lines = watch.round()
        assert [of for what, of in lines if what == "process"] == [
            {"gpu": "2", "pid": "4711", "memory_mb": "4000"}, {"gpu": "2", "pid": "4712"}, {"gpu": "2", "pid": "5"}]
        assert "power_mw" not in [of for what, of in lines if what == "sample"][3]


def test_watch_tells_of_lost_gpus_and_of_their_return(fake):
    gpus = fake("l40s-pcie-4")
    with Watch(gpus) as watch:
        for _ in range(20):
            gpus.gpu(1)["missing"] = True
            gpus.write()
            assert watch.until(lambda what, of: what == "lost")["index"] == "1"
            gpus.gpu(1)["missing"] = False
            gpus.write()
            watch.until(lambda what, of: what == "sample" and of["gpu"] == "1")


def test_xid_comes_at_once(fake):
    gpus = fake("l40s-pcie-4")
    gpus.xid(0, 31)  # before anybody listened: not told
    with Watch(gpus, every="30s") as watch:
        watch.round()
        begun = time.monotonic()
        gpus.xid(2, 79)
        assert watch.line() == ("xid", {"gpu": "2", "code": "79"})
        assert time.monotonic() - begun < 1
        gpus.xid(0, 48)
        assert watch.line() == ("xid", {"gpu": "0", "code": "48"})


def test_watch_ends_when_nobody_reads(fake):
    gpus = fake("l40s-pcie-4")
    process = subprocess.Popen([bin_dir() / "berth-nvml", "watch", "--every", "20ms"], stdout=subprocess.PIPE,
                               env=clean_environment(**gpus.env))
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=20) == 0


# ---- berth hardware, berthd -C and -G -------------------------------------------------------
def test_picture_of_a_topology_file():
    text = run("berth", "hardware", "--from", TOPOLOGIES / "h100-nvswitch-8.topology").stdout
    assert "2 sockets, 112 cores, 224 CPUs" in text and "socket 1: cores 56-111" in text
    assert re.search(r"^ +0 +- +NV18", text, re.M)
    again = run("berth", "hardware", "--record", "--from", TOPOLOGIES / "a100-mig-2.topology").stdout
    assert again == "".join(line + "\n" for line in (TOPOLOGIES / "a100-mig-2.topology").read_text().splitlines()
                            if not line.startswith("#"))


def test_hardware_of_this_machine(fake, tmp_path):
    env = clean_environment(**fake("l40s-pcie-4").env)
    shown = json.loads(run("berth", "hardware", "--json", env=env).stdout)
    assert [gpu["files"] for gpu in shown["gpus"]] == [[f"/dev/nvidia{i}"] for i in (2, 3, 0, 1)]
    assert shown["sockets"] * shown["cores_per_socket"] * shown["threads_per_core"] >= 1
    bad = tmp_path / "bad.topology"
    bad.write_text("berth-nvml version=1\ngpu index=0\nend\n")
    assert "bad.topology: line 2" in run("berth", "hardware", "--from", bad, rc=1).stderr
    assert "not understood" in run("berth", "hardware", "--form", bad, rc=1).stderr


def test_berthd_prints_lines_for_slurm_conf(fake):
    env = clean_environment(**fake("a100-mig-2").env)
    text = run("berthd", "-C", env=env).stdout
    assert re.search(r"^NodeName=\S+ CPUs=\d+ Boards=1 SocketsPerBoard=\d+ CoresPerSocket=\d+ ThreadsPerCore=\d+ "
                     r"RealMemory=\d+ Gres=gpu:a100_3g.20gb:1,gpu:a100_2g.10gb:1,gpu:a100_1g.5gb:1,gpu:a100:1$",
                     text, re.M)
    assert re.search(r"^UpTime=\d+-\d\d:\d\d:\d\d$", text, re.M)
    gres = run("berthd", "-G", "-f", ROOT / "tests/hardware/empty.conf", env=env).stdout.splitlines()
    assert gres[0].startswith("Gres Name=gpu Type=a100_3g.20gb Count=1 Index=0 File=/dev/nvidia0")
    assert "UniqueId=MIG-" in gres[0] and "Links=-1,0,0,0" in gres[0] and "ENV_NVML" in gres[0]


def test_without_a_library_nothing_is_started(tmp_path):
    """No driver, no helper: also not when it would be there."""
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("this machine has NVIDIA's driver")
    for name in ("berth", "berthd"):
        os.symlink(bin_dir() / name, tmp_path / name)
    trace = shutil.which("strace")
    if trace is None:
        shown = json.loads(run("berth", "hardware", "--json").stdout)
        assert shown["driver"] == "" and not any("NVIDIA" in note for note in shown["notes"])
        return
    done = subprocess.run([trace, "-f", "-e", "trace=execve", bin_dir() / "berth", "hardware"], text=True,
                          env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert "berth-nvml" not in done.stderr


# ---- a cluster ------------------------------------------------------------------------------
class RealCluster(Cluster):
    """This machine, with the GPUs of a topology."""

    def __init__(self, gpus, **options):
        super().__init__(**options)
        self.env |= gpus.env


@pytest.mark.live
def test_up_finds_gpus(fake):
    gpus = fake("h100-nvswitch-8")
    with RealCluster(gpus) as c:
        assert "8 h100" in c.up_text
        node = c.out("scontrol", "-o", "show", "node")
        assert re.search(r" Gres=gpu:h100:8\b", node), node
        conf = (c.state / "gres.conf").read_text()
        assert "Type=h100 File=/dev/nvidia7" in conf and "Links=18,18,18,18,18,18,18,-1" in conf
        assert c.out("srun", "-n1", "--gpus=h100:3", "printenv", "CUDA_VISIBLE_DEVICES") == "0,1,2"
        assert "did you mean 'h100'? (have h100:8)" in c.run("srun", "-n1", "--gpus=a100:1", "true", rc=1).stderr
        assert "idle" in c.out("sinfo", "-h", "-o", "%T")


@pytest.mark.live
def test_parts_of_gpus_are_gpus(fake):
    gpus = fake("a100-mig-2")
    with RealCluster(gpus) as c:
        node = c.out("scontrol", "-o", "show", "node")
        assert "Gres=gpu:a100_3g.20gb:1" in node and "gpu:a100_1g.5gb:1" in node
        shown = c.out("srun", "-n1", "--gpus=a100_2g.10gb:1", "printenv", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES")
        # CUDA counts no parts: they are found by name, and beside them whole GPUs as well.
        assert shown.split() == ["1", gpus.gpu(0)["mig"][1]["uuid"]]
        assert c.out("srun", "-n1", "--gpus=a100:1", "printenv", "CUDA_VISIBLE_DEVICES") == gpus.gpu(1)["uuid"]


GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK")


@pytest.mark.live
@pytest.mark.skipif(os.geteuid() != 0, reason="slurm.conf names root")
@pytest.mark.parametrize("gres_conf, told", [
    ("AutoDetect=nvml\n", ["0,1", "-", "-", "-"]),
    ("AutoDetect=full\n", ["0,1", "-", "-", "-"]),
    ("AutoDetect=off\nName=gpu File=/dev/null\nName=gpu File=/dev/zero\n", ["0,1", "0,1", "0,1", "0,1"]),
    ("AutoDetect=nvml\nName=gpu File=/dev/nvidia[0-3] Flags=opencl_env,amd_gpu_env\n", ["-", "0,1", "0,1", "-"]),
    ("AutoDetect=nvml\nName=gpu File=/dev/nvidia[0-3] Flags=no_gpu_env\n", ["-", "-", "-", "-"]),
    ("AutoDetect=nvml\nName=gpu File=/dev/nvidia[0-3] Flags=env_uuid\n", ["uuid", "-", "-", "-"]),
])
def test_flags_say_which_variables_tell_jobs_of_gpus(fake, tmp_path, gres_conf, told):
    gpus = fake("l40s-pcie-4")
    cluster = RealCluster(gpus)
    own_conf(cluster, gres_conf, "gpu:2" if "off" in gres_conf else "gpu:4")
    prolog = tmp_path / "prolog"
    shell = " ".join('${%s:--}' % name for name in GPU_VARIABLES)
    prolog.write_text(f"#!/bin/sh\necho {shell} > {tmp_path}/seen\n")
    prolog.chmod(0o755)
    with open(cluster.conf, "a") as conf:
        conf.write(f"Prolog={prolog}\n")
    # The lines of gres.conf count by minor numbers.
    uuids = ",".join(gpu["uuid"] for minor in (0, 1) for gpu in gpus.state["gpus"] if gpu["minor"] == minor)
    told = [uuids if one == "uuid" else one for one in told]
    with cluster as c:
        until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        assert c.out("srun", "-n1", "--gpus=2", "sh", "-c", f"echo {shell}").split() == told
        assert (tmp_path / "seen").read_text().split() == told
        assert c.out("srun", "-n1", "--gpus=2", "printenv", "SLURM_STEP_GPUS") == "0,1"


@pytest.mark.live
@pytest.mark.skipif(os.geteuid() != 0, reason="slurm.conf names root")
def test_parts_have_names_for_mpirun_and_prologs_too(fake, tmp_path):
    gpus = fake("a100-mig-2")
    parts = [part["uuid"] for part in gpus.gpu(0)["mig"]]
    cluster = RealCluster(gpus)
    own_conf(cluster, "AutoDetect=nvml\n", "gpu:a100_3g.20gb:1,gpu:a100_2g.10gb:1,gpu:a100_1g.5gb:1,gpu:a100:1")
    for name in ("prolog", "epilog"):
        seen = tmp_path / f"{name}.seen"
        (tmp_path / name).write_text(f"#!/bin/sh\necho $SLURM_JOB_GPUS $CUDA_VISIBLE_DEVICES > {seen}\n")
        (tmp_path / name).chmod(0o755)
    with open(cluster.conf, "a") as conf:
        conf.write(f"Prolog={tmp_path}/prolog\nEpilog={tmp_path}/epilog\n")
    with cluster as c:
        until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        ranks = ("for r in 0 1; do OMPI_COMM_WORLD_LOCAL_RANK=$r OMPI_COMM_WORLD_LOCAL_SIZE=2 "
                 "berth bind printenv CUDA_VISIBLE_DEVICES; done")
        asks = "--gres=gpu:a100_3g.20gb:1,gpu:a100_2g.10gb:1"
        assert c.out("srun", "-n1", asks, "sh", "-c", ranks).split() == parts[:2]
        assert (tmp_path / "prolog.seen").read_text().split() == ["0,1", ",".join(parts[:2])]
        until(lambda: (tmp_path / "epilog.seen").exists(), what="the epilog has run")
        until(lambda: (tmp_path / "epilog.seen").read_text().split() == ["0,1", ",".join(parts[:2])], what="its names")


def own_conf(cluster, gres_conf, gres):
    """The configuration of somebody who wrote it himself."""
    host = os.uname().nodename.split(".")[0]
    cluster.state.mkdir(parents=True)
    cluster.conf.write_text(
        f"ClusterName=own\nSlurmctldHost={host}\nSlurmUser=root\nGresTypes=gpu\nReturnToService=2\n"
        f"NodeName={host} CPUs=1 RealMemory=100 Gres={gres}\nPartitionName=main Nodes=ALL Default=YES\n")
    (cluster.state / "gres.conf").write_text(gres_conf)


@pytest.mark.live
@pytest.mark.skipif(os.geteuid() != 0, reason="slurm.conf names root")
def test_autodetect_fills_in_what_gres_conf_leaves_open(fake):
    cluster = RealCluster(fake("h100-nvswitch-8"))
    own_conf(cluster, "AutoDetect=nvml\n", "gpu:h100:8")
    with cluster as c:
        assert until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        # The controller learns what is near from the node: the first four GPUs sit at the only socket there is.
        until(lambda: "Gres=gpu:h100:8(S:0)" in c.out("scontrol", "-o", "show", "node"), what="near sockets")
        gres = c.out("berthd", "-G", "-f", c.conf).splitlines()
        assert len(gres) == 8 and "File=/dev/nvidia3" in gres[3] and "Links=18,18,18,-1" in gres[3]


@pytest.mark.live
@pytest.mark.skipif(os.geteuid() != 0, reason="slurm.conf names root")
def test_disagreement_is_told_with_file_and_line(fake):
    cluster = RealCluster(fake("l40s-pcie-4"))
    own_conf(cluster, "AutoDetect=nvml\nName=gpu Type=l40s File=/dev/nvidia[0-2]\n# the odd one\n"
                      "Name=gpu Type=a100 File=/dev/nvidia3\n", "gpu:l40s:3,gpu:a100:1")
    said = "gres.conf:4: Type=a100, but /dev/nvidia3 is an NVIDIA L40S (l40s)"
    with cluster as c:
        until(lambda: said in c.out("scontrol", "show", "node"), what="the reason")
        assert "inval" in c.out("sinfo", "-h", "-o", "%T")
        assert said in (c.state / "log/node.log").read_text()
        assert f"# {said}" in c.out("berthd", "-G", "-f", c.conf)
        # Told, not acted upon, where gres.conf is to be believed.
        (c.state / "gres.conf").write_text("AutoDetect=off\nName=gpu File=/dev/null\n")
        assert "# slurm.conf:6: Gres=gpu:l40s:3, but the machine has gpu:1" in c.out("berthd", "-G", "-f", c.conf)
