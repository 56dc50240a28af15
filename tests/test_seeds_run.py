"""Every script of examples/seeds, end to end on a live cluster with the configuration of the recordings.

The programs they name are replaced by one that writes what it sees. What must come out is the table of
examples/seeds/README.md, which is what a real Slurm was recorded to do."""

import json
import os
import pathlib
import re
import tempfile

import pytest

from cluster import ROOT, Cluster, until

pytestmark = pytest.mark.live
SEEDS = ROOT / "examples/seeds"
NAMES = ("nvidia-smi", "python", "mpirun", "some-gpu-application")
# Writes what it sees; then waits until TOGETHER programs of the job are there, to show that they run side by
# side, and for the file "go". `ended` is how many had ended when it began.
PROGRAM = """#!/usr/bin/python3
import json, os, pathlib, sys, time
here = pathlib.Path(os.environ["SEEN"])
key = "{}.{}.{}".format(os.environ["SLURM_JOB_ID"], os.environ.get("SLURM_STEP_ID", "batch"),
                        os.environ.get("SLURM_PROCID", "0"))
seen = {name: os.environ.get(name) for name in
        ("SLURM_STEP_ID", "SLURM_PROCID", "SLURM_LOCALID", "SLURMD_NODENAME", "CUDA_VISIBLE_DEVICES",
         "BERTH_TASK_CPUS", "SLURM_CPUS_PER_TASK", "SLURM_MEM_PER_CPU")}
seen["program"] = pathlib.Path(sys.argv[0]).name
seen["arguments"] = sys.argv[1:]
seen["ended"] = len(list(here.glob("*.ended")))
draft = here / (key + ".draft")
draft.write_text(json.dumps(seen))
draft.rename(here / (key + ".seen"))
end = time.monotonic() + 60
while len(list(here.glob("*.seen"))) < int(os.environ["TOGETHER"]) or not (here / "go").exists():
    if time.monotonic() > end:
        sys.exit("the others did not start")
    time.sleep(0.05)
(here / (key + ".ended")).write_text("")
"""


@pytest.fixture(scope="module")
def cluster():
    with Cluster(emulate=ROOT / "tests/conf/corpus") as c:
        yield c


class Ran:
    def __init__(self, cluster, folder, job):
        self.state = cluster.wait_end(job)
        self.exit_code = cluster.field(job, "ExitCode")
        self.gpus = re.search(r"JOB_GRES=gpu\S*:(\d+)", cluster.out("scontrol", "-d", "show", "job", job))
        self.gpus = int(self.gpus.group(1)) if self.gpus else 0
        self.cpus = cluster.field(job, "NumCPUs")
        self.tasks = [json.loads(path.read_text()) for path in sorted((folder / "seen").glob("*.seen"))]
        self.text = "".join(path.read_text(errors="replace") for path in sorted(folder.glob("*"))
                            if path.is_file() and path.suffix in (".out", ".err"))

    def by_node(self, name="CUDA_VISIBLE_DEVICES"):
        nodes = {}
        for task in self.tasks:
            nodes.setdefault(task["SLURMD_NODENAME"], []).append(task[name])
        return {node: sorted(values) for node, values in nodes.items()}


def prepare(cluster, name):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=name.split("[")[0] + "-", dir=cluster.work))
    folder.chmod(0o755)
    (folder / "bin").mkdir()
    (folder / "seen").mkdir()
    for program in NAMES:
        (folder / "bin" / program).write_text(PROGRAM)
        (folder / "bin" / program).chmod(0o755)
    return folder


def submit(cluster, folder, script, together=1, rc=0, go=True):
    if go:
        (folder / "seen/go").write_text("")
    env = {"PATH": f"{folder / 'bin'}:{cluster.env['PATH']}", "SEEN": str(folder / "seen"),
           "TOGETHER": str(together)}
    return cluster.run("sbatch", "--parsable", script, env=env, cwd=folder, rc=rc)


def run(cluster, request, script, together=1) -> Ran:
    folder = prepare(cluster, request.node.name)
    done = submit(cluster, folder, script, together)
    ran = Ran(cluster, folder, done.stdout.strip())
    for path in folder.glob("slurm-*.out"):
        ran.text += path.read_text(errors="replace")
    return ran


def test_every_script_has_a_test():
    here = pathlib.Path(__file__).read_text()
    for script in SEEDS.glob("*.sh"):
        assert script.name in here, f"{script.name} is not run"


def test_gres_with_srun_fails(cluster, request):
    ran = run(cluster, request, SEEDS / "000-1-gres-srun.sh")
    assert (ran.state, ran.exit_code) == ("FAILED", "1:0")
    assert "More processors requested than permitted" in ran.text
    assert ran.gpus == 8
    assert ran.tasks == []


def test_gpus_per_task_gives_each_its_own(cluster, request):
    ran = run(cluster, request, SEEDS / "000-2-gpus-per-task.sh", together=4)
    assert ran.state == "COMPLETED", ran.text
    assert ran.by_node() == {"gpu1": ["0", "1"], "gpu2": ["0", "1"]}
    assert sorted(t["SLURM_PROCID"] for t in ran.tasks) == ["0", "1", "2", "3"]
    assert len({(t["SLURMD_NODENAME"], t["BERTH_TASK_CPUS"]) for t in ran.tasks}) == 4


@pytest.mark.parametrize(
    ("script", "devices"),
    [("000-3-gres-mpirun.sh", "0,1,2,3"), ("000-4-gpus-per-task-mpirun.sh", None), ("001-2-two-nodes.sh", "0,1,2,3")],
)
def test_a_launcher_sees_what_the_batch_script_sees(cluster, request, script, devices):
    """mpirun starts on the first node, once, with the GPUs of that node, or none with --gpus-per-task."""
    ran = run(cluster, request, SEEDS / script)
    assert ran.state == "COMPLETED", ran.text
    assert [t["program"] for t in ran.tasks] == ["mpirun"]
    if devices is not None:
        assert ran.by_node() == {"gpu1": [devices]}
    assert ran.tasks[0]["SLURMD_NODENAME"] == "gpu1"
    assert ran.tasks[0]["arguments"][:2] == ["-np", "4"]


def test_one_gpu_without_a_step(cluster, request):
    ran = run(cluster, request, SEEDS / "001-1-one-gpu.sh")
    assert ran.state == "COMPLETED", ran.text
    assert ran.by_node() == {"gpu1": ["0"]}


def test_a_misspelled_type_is_refused(cluster, request):
    folder = prepare(cluster, request.node.name)
    done = submit(cluster, folder, SEEDS / "001-3-gpu-type.sh", rc=None)
    assert done.returncode == 1
    assert "Invalid Trackable RESource (TRES) specification" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("script", "cpus", "gpus", "devices"),
    [
        ("002-1-one-gpu-a-node.sh", "4", 4, "0"),
        ("002-2-four-gpus-a-node.sh", "16", 16, "0,1,2,3"),
        ("002-3-sixteen-tasks.sh", "16", 16, "0,1,2,3"),
    ],
)
def test_a_launcher_line_runs_on_the_first_node_only(cluster, request, script, cpus, gpus, devices):
    ran = run(cluster, request, SEEDS / script)
    assert ran.state == "COMPLETED", ran.text
    assert ran.by_node() == {"gpu1": [devices]}
    assert ran.cpus == cpus
    assert ran.gpus == gpus


def test_one_program_inherits_the_jobs_options(cluster, request):
    ran = run(cluster, request, SEEDS / "003-1-one-program.sh")
    assert ran.state == "COMPLETED", ran.text
    (task,) = ran.tasks
    assert task["SLURM_CPUS_PER_TASK"] == "4"
    assert task["SLURM_MEM_PER_CPU"] == "1443"
    assert bin(int(task["BERTH_TASK_CPUS"], 16)).count("1") == 4
    assert len(task["CUDA_VISIBLE_DEVICES"].split(",")) == 1


@pytest.mark.parametrize("script", ["003-2-four-programs.sh", "003-3-short-form.sh"])
def test_four_steps_side_by_side(cluster, request, script):
    """Each program waits for the other three: it could not end if they ran one after another."""
    ran = run(cluster, request, SEEDS / script, together=4)
    assert ran.state == "COMPLETED", ran.text
    assert ran.by_node() == {"gpu1": ["0", "1", "2", "3"]}
    masks = [int(t["BERTH_TASK_CPUS"], 16) for t in ran.tasks]
    assert [bin(mask).count("1") for mask in masks] == [4, 4, 4, 4]
    taken = 0
    for mask in masks:
        assert taken & mask == 0, "two steps share a CPU"
        taken |= mask


def test_a_fifth_step_waits(cluster, request):
    folder = prepare(cluster, request.node.name)
    script = folder / "five.sh"
    script.write_text((SEEDS / "003-3-short-form.sh").read_text().replace("1 2 3 4;", "1 2 3 4 5;"))
    job = submit(cluster, folder, script, together=4, go=False).stdout.strip()
    output = folder / f"slurm-{job}.out"

    def fifth_waits():
        return output.exists() and "berth: waiting for: 1 GPU on gpu1" in output.read_text()
    until(fifth_waits, what="a step that waits")
    until(lambda: len(list((folder / "seen").glob("*.seen"))) == 4, what="four steps")
    (folder / "seen/go").write_text("")
    ran = Ran(cluster, folder, job)
    text = output.read_text()
    assert ran.state == "COMPLETED", text
    assert len(ran.tasks) == 5
    assert len([t for t in ran.tasks if t["ended"] > 0]) == 1, ran.tasks
    assert sorted({t["CUDA_VISIBLE_DEVICES"] for t in ran.tasks}) == ["0", "1", "2", "3"]
    assert f"srun: Step created for StepId={job}.4" in text
