"""PyTorch's own launchers and none, on a pretended cluster of four nodes: the loss is that of one process."""

import re
import shutil

import pytest

from cluster import ROOT, Cluster

PROGRAMS = ROOT / "tests/clients/programs"
SEEDS = ROOT / "examples/seeds"
PYTHON = "/usr/bin/python3"
# Debian's launcher of 1.13 fails under Python 3.11 unless it is told where output goes.
LAUNCHER = "-r 1 -t 1"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(emulate="4x4:a100") as c:
        shutil.copy(PROGRAMS / "train.py", c.work)
        yield c


@pytest.fixture(scope="module")
def loss(cluster):
    return re.search(r"^loss (\S+)$", cluster.out(PYTHON, "train.py", "alone"), re.M).group(1)


def batch(cluster, text, *options):
    script = cluster.work / "torch.sh"
    script.write_text(text if text.startswith("#!") else "#!/bin/bash\n" + text + "\n")
    job = cluster.submit(*options, "-o", "torch.%j.out", script.name)
    state = cluster.wait_end(job, seconds=240)
    return state, (cluster.work / f"torch.{job}.out").read_text()


def check(text, loss, size, per_node):
    found = re.findall(r"rank (\d+) of (\d+) local (\d+) on (\S+) port (\d+)", text)
    assert sorted(int(rank) for rank, *_ in found) == list(range(size)), text
    assert {int(of) for _, of, *_ in found} == {size}
    for rank, _, local, node, _ in found:
        assert node == f"node{int(rank) // per_node + 1}" and int(local) == int(rank) % per_node, text
    assert len({port for *_, port in found}) == 1
    assert re.findall(r"loss (\S+)", text) == [loss], text


def test_srun_python(cluster, loss):
    state, text = batch(cluster, f"srun {PYTHON} train.py", "-N4", "--ntasks-per-node=4", "--gpus-per-node=4")
    assert state == "COMPLETED", text
    check(text, loss, 16, 4)


def test_srun_torchrun(cluster, loss):
    state, text = batch(cluster, f"srun --ntasks-per-node=1 torchrun --nproc_per_node=4 {LAUNCHER} train.py", "-N4",
                        "--gpus-per-node=4")
    assert state == "COMPLETED", text
    check(text, loss, 16, 4)


def test_two_jobs_at_once_do_not_meet(cluster, loss):
    options = ("-N2", "--ntasks-per-node=2", "-o", "two.%j.out")
    script = cluster.work / "two.sh"
    script.write_text(f"#!/bin/bash\nsrun {PYTHON} train.py\n")
    jobs = [cluster.submit(*options, "-w", nodes, script.name) for nodes in ("node[1-2]", "node[3-4]")]
    ports = set()
    for job in jobs:
        assert cluster.wait_end(job, seconds=240) == "COMPLETED"
        text = (cluster.work / f"two.{job}.out").read_text()
        assert re.findall(r"loss (\S+)", text) == [loss]
        ports |= set(re.findall(r"port (\d+)", text))
    assert len(ports) == 2


@pytest.mark.parametrize("seed, launch, size, per_node", [
    ("002-1-one-gpu-a-node.sh", "srun ", 4, 1),
    ("002-2-four-gpus-a-node.sh", "srun ", 16, 4),
    ("002-3-sixteen-tasks.sh", "srun --ntasks=4 --ntasks-per-node=1 ", 16, 4),
])
def test_seeds_with_their_one_correction(cluster, loss, seed, launch, size, per_node):
    text = (SEEDS / seed).read_text()
    # This machine has neither that module nor that environment; the line that starts the training is as it was.
    text = re.sub(r"^(module load|source) .*\n", "", text, flags=re.M)
    line = re.search(r"^python -m torch\.distributed\.launch (--nproc_per_node=\d) train\.py$", text, re.M)
    assert line, text
    text = text.replace(line.group(0), f"{launch}{PYTHON} -m torch.distributed.launch {line.group(1)} {LAUNCHER} train.py")
    state, out = batch(cluster, text)
    assert state == "COMPLETED", out
    check(out, loss, size, per_node)


def test_what_the_user_has_set_stays(cluster):
    names = ("MASTER_ADDR", "MASTER_PORT", "RANK")
    code = f"import os; print(*[os.environ.get(n, '-') for n in {names}])"
    assert cluster.out("env", "MASTER_ADDR=here", "MASTER_PORT=1", "srun", "-n1", PYTHON, "-c", code).split() == ["here", "1", "0"]
    assert cluster.out("srun", "-n1", "--launcher=none", PYTHON, "-c", code).split() == ["-", "-", "-"]
    # A step in a step is another one.
    inner = f"srun --overlap -n2 {PYTHON} -c \"{code}\""
    run = cluster.run("srun", "-n2", "bash", "-c", f"[ $RANK = 1 ] || {inner}")
    assert sorted(line.split()[2] for line in run.stdout.splitlines()) == ["0", "1"]
    assert "ntasks-per-node" not in run.stderr, run.stderr


@pytest.mark.parametrize("launcher, expected", [
    ("torch", ["0,1,2,3"] * 4), ("jax", ["0,1,2,3"] * 4), ("mpi", ["0", "1", "2", "3"])])
def test_presets_choose_what_a_task_sees(cluster, launcher, expected):
    text = cluster.out("srun", "-N1", "-n4", "--gpus=4", f"--launcher={launcher}", "printenv", "CUDA_VISIBLE_DEVICES")
    assert sorted(text.split()) == expected


def test_presets_count_in_a_job_that_hands_on_a_binding(cluster):
    """--gpus-per-task of the job reaches srun as SLURM_TRES_BIND; --launcher says what this step wants."""
    _, text = batch(cluster, """#!/bin/bash
#SBATCH -N1 -n4 --gpus-per-task=1
see() { echo $* $(srun "$@" printenv CUDA_VISIBLE_DEVICES | sort); }
see -n4
for launcher in torch jax mpi none; do see --launcher=$launcher; done
SLURM_LAUNCHER=torch see -n4
srun --launcher=torch --gpu-bind=single:1 true 2>&1 || echo code $?
""")
    every = "0,1,2,3 0,1,2,3 0,1,2,3 0,1,2,3"
    assert text.splitlines() == [
        "-n4 0 1 2 3", f"--launcher=torch {every}", f"--launcher=jax {every}", "--launcher=mpi 0 1 2 3",
        "--launcher=none 0 1 2 3", f"-n4 {every}",
        "srun: error: --launcher=torch and --gpu-bind both say which GPUs a task sees",
        "berth: given: --launcher and --gpu-bind; drop one", "code 1"]


@pytest.mark.parametrize("step, told", [
    (["-n2"], "1"), (["-n2", "--launcher=none"], "1"), (["-n3"], "-"), (["-n4", "--ntasks-per-node=2"], "2")])
def test_tasks_per_node_where_all_have_as_many(cluster, step, told):
    code = "import os; print(os.environ.get('SLURM_NTASKS_PER_NODE', '-'))"
    assert set(cluster.out("srun", "-N2", *step, PYTHON, "-c", code).split()) == {told}


def test_tasks_per_node_of_the_job_and_of_the_step(cluster):
    _, text = batch(cluster, """#!/bin/bash
#SBATCH -N2 --ntasks-per-node=4
for step in -n8 "-N1 -n1" "-N2 --ntasks-per-node=2" "-N2 --ntasks-per-node=1 --launcher=none"; do
  echo $step: $(srun $step printenv SLURM_NTASKS_PER_NODE | sort -u)
done
""")
    # -n1 as recorded: what srun was not told stays the job's.
    assert text.splitlines() == [
        "-n8: 4", "-N1 -n1: 4", "-N2 --ntasks-per-node=2: 2", "-N2 --ntasks-per-node=1 --launcher=none: 1"]


@pytest.mark.parametrize("launcher", ("torch", "none"))
def test_bind_in_tasks_of_srun(cluster, launcher):
    text = cluster.out("srun", "-N1", "-n4", "--gpus=4", f"--launcher={launcher}", "berth", "bind", "printenv",
                       "CUDA_VISIBLE_DEVICES")
    assert sorted(text.split()) == ["0", "1", "2", "3"]


def test_bind_under_torchrun(cluster):
    worker = "echo worker $SLURMD_NODENAME $LOCAL_RANK $CUDA_VISIBLE_DEVICES"
    state, text = batch(cluster, f"srun --ntasks-per-node=1 torchrun --nproc_per_node=2 {LAUNCHER} --no_python berth bind "
                        f"bash -c '{worker}'", "-N2", "--gpus-per-node=4")
    assert state == "COMPLETED", text
    assert sorted(re.findall(r"worker (\S+) (\d) (\S+)", text)) == [
        (node, rank, gpus) for node in ("node1", "node2") for rank, gpus in (("0", "0,1"), ("1", "2,3"))]


def test_a_wrong_preset_is_refused(cluster):
    run = cluster.run("srun", "-n1", "--launcher=tensorflow", "true", rc=None)
    assert run.returncode != 0 and "none, torch, jax or mpi" in run.stderr
