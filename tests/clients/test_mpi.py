"""Open MPI and MPICH as Debian ships them, on a pretended cluster of four nodes: by mpirun and by srun itself."""

import json
import re
import shutil
import subprocess
import uuid

import pytest

from cluster import ROOT, Cluster, processes_naming, until

PROGRAMS = ROOT / "tests/clients/programs"
PYTHON = "/usr/bin/python3"
FLAVOURS = ("openmpi", "mpich")
LINE = re.compile(r"^rank (\d+) of (\d+) on (\S+) sum (\d+)(?: token (\d+))? gpus (\S+)(?: cpus (\S+))?$", re.M)


@pytest.fixture(scope="module")
def cluster():
    with Cluster(emulate="4x4:a100") as c:
        for flavour in FLAVOURS:
            subprocess.run([f"mpicc.{flavour}", "-O1", PROGRAMS / "ring.c", "-o", c.work / f"ring.{flavour}"], check=True)
        for name in ("allreduce.py", "train.py"):
            shutil.copy(PROGRAMS / name, c.work)
        yield c


def mpirun(flavour):
    # As root Open MPI wants to be told that this is meant.
    return "mpirun.openmpi --allow-run-as-root" if flavour == "openmpi" else "mpiexec.mpich"


def ranks(text):
    """{rank: (node, gpus, cpus)}, after a look at the sums."""
    found = {}
    for rank, size, node, total, token, gpus, cpus in LINE.findall(text):
        size = int(size)
        assert int(total) in (size * (size - 1) // 2, size * (size + 1) // 2), text
        if token and size > 1:
            assert int(token) == (int(rank) if int(rank) else size - 1), text
        assert int(rank) not in found, f"rank {rank} twice:\n{text}"
        found[int(rank)] = (node, gpus, cpus)
    return found


WHOLE = ("-N4", "--ntasks-per-node=4", "--gpus-per-node=4")


def batch(cluster, *lines, options=WHOLE):
    script = cluster.work / "mpi.sh"
    script.write_text("#!/bin/bash\n" + "\n".join(lines) + "\n")
    job = cluster.submit(*options, "-o", "mpi.%j.out", script.name)
    state = cluster.wait_end(job)
    text = (cluster.work / f"mpi.{job}.out").read_text()
    return state, text, job


FOUR_BY_FOUR = {rank: f"node{rank // 4 + 1}" for rank in range(16)}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_mpirun_fills_the_allocation(cluster, flavour):
    state, text, job = batch(cluster, f"{mpirun(flavour)} -np 16 ./ring.{flavour}")
    assert state == "COMPLETED", text
    assert {rank: node for rank, (node, _, _) in ranks(text).items()} == FOUR_BY_FOUR
    # The daemons' step holds nothing.
    assert f"{job}.0|" in cluster.out("sacct", "-nP", "-j", str(job), "-o", "JobID,AllocTRES").splitlines()


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_whole_step_runs_beside_mpirun(cluster, flavour):
    """The ranks wait until a step of the job's full size has run."""
    wait = "while [ ! -e beside.$SLURM_JOB_ID ]; do sleep 0.05; done; echo rank done"
    state, text, job = batch(cluster, f"{mpirun(flavour)} -np 16 bash -c '{wait}' &",
                             "until squeue -hs -j $SLURM_JOB_ID -o %i | grep -qx $SLURM_JOB_ID.0; do sleep 0.05; done",
                             "srun -N4 -n16 --gpus-per-task=1 printenv CUDA_VISIBLE_DEVICES && touch beside.$SLURM_JOB_ID",
                             "wait")
    assert state == "COMPLETED", text
    assert text.count("rank done") == 16
    assert sorted(line for line in text.split() if line.isdigit()) == sorted("0123" * 4)
    steps = dict(line.split("|") for line in cluster.out(
        "sacct", "-nP", "-j", str(job), "-o", "JobID,AllocTRES").splitlines())
    assert steps[f"{job}.0"] == ""
    assert "cpu=16" in steps[f"{job}.1"] and "gres/gpu=16" in steps[f"{job}.1"], steps


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_mpirun_inside_salloc(cluster, flavour):
    run = cluster.run("salloc", "-N2", "--ntasks-per-node=2", "--gpus-per-node=2", "bash", "-c",
                      f"{mpirun(flavour)} berth bind ./ring.{flavour}", timeout=120)
    assert {rank: (node, gpus) for rank, (node, gpus, _) in ranks(run.stdout).items()} == {
        0: ("node1", "0"), 1: ("node1", "1"), 2: ("node2", "0"), 3: ("node2", "1")}, run.stdout + run.stderr


@pytest.mark.parametrize("flavour, hosts", [("openmpi", "-H node2:2"), ("mpich", "-hosts node2 -n 2")])
def test_mpirun_on_some_nodes_of_the_job(cluster, flavour, hosts):
    state, text, _ = batch(cluster, f"{mpirun(flavour)} {hosts} ./ring.{flavour}")
    assert state == "COMPLETED", text
    assert {rank: node for rank, (node, _, _) in ranks(text).items()} == {0: "node2", 1: "node2"}


def test_the_daemons_of_prrte(cluster):
    """Its argument list, word by word, without PRRTE itself, which Debian 12 does not have."""
    prrte = ("srun --external-launcher --ntasks-per-node=1 {} --mpi=none --cpu-bind=none --jobid=$SLURM_JOB_ID "
             "--nodes=2 --nodelist=node2,node4 --ntasks=2")
    say = """bash -c 'echo "$SLURMD_NODENAME $SLURM_NODEID $SLURM_NTASKS $*"' prted --prtemca uri '"1;tcp://[::1]:2"'"""
    state, text, _ = batch(cluster, prrte.format("--no-kill --kill-on-bad-exit=0") + " " + say,
                           prrte.format("--kill-on-bad-exit") + " " + say)
    assert state == "COMPLETED", text
    assert sorted(text.splitlines()) == sorted(
        [f'{node} {number} 2 --prtemca uri "1;tcp://[::1]:2"' for number, node in enumerate(("node2", "node4"))] * 2)


def test_daemons_that_cannot_be_placed_are_refused(cluster):
    _, text, job = batch(cluster, "srun --external-launcher -w node4 true 2>&1; echo code $?",
                         "srun --external-launcher -n9 true 2>&1; echo code $?", options=("-w", "node[1-3]", "-N3", "-n9"))
    said = f"srun: error: Unable to create step for job {job}: "
    assert said + "Requested node configuration is not available" in text
    assert "node4 is not a node of this job" in text
    assert said + "Task count specification invalid" in text
    assert "9 tasks on 3 nodes were asked for" in text
    assert text.count("code 1") == 2, text


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_mpirun_uses_the_number_of_tasks(cluster, flavour):
    state, text, _ = batch(cluster, f"{mpirun(flavour)} ./ring.{flavour}", options=("-N2", "--ntasks-per-node=3"))
    assert state == "COMPLETED", text
    assert {rank: node for rank, (node, _, _) in ranks(text).items()} == {
        rank: f"node{rank // 3 + 1}" for rank in range(6)}


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("mpi", ("", "by name"))
def test_srun_alone(cluster, flavour, mpi):
    words = {"openmpi": ["--mpi=pmix"], "mpich": ["--mpi=pmi2"]}[flavour] if mpi else []
    run = cluster.run("srun", *words, "-N4", "--ntasks-per-node=4", f"./ring.{flavour}")
    assert run.returncode == 0, run.stderr
    assert {rank: node for rank, (node, _, _) in ranks(run.stdout).items()} == FOUR_BY_FOUR


def test_without_mpi_every_rank_is_alone(cluster):
    run = cluster.run("srun", "--mpi=none", "-n2", "./ring.mpich")
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("rank 0 of 1 ") == 2


@pytest.mark.parametrize("how", ("srun", "mpirun"))
def test_mpi4py(cluster, how):
    line = f"srun {PYTHON} allreduce.py" if how == "srun" else f"{mpirun('openmpi')} -np 16 {PYTHON} allreduce.py"
    state, text, _ = batch(cluster, line)
    assert state == "COMPLETED", text
    assert {rank: node for rank, (node, _, _) in ranks(text).items()} == FOUR_BY_FOUR


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_layouts_other_than_blocks(cluster, flavour):
    run = cluster.run("srun", "-N4", "-n16", "--ntasks-per-node=4", "-m", "cyclic", f"./ring.{flavour}")
    assert run.returncode == 0, run.stderr
    assert {rank: node for rank, (node, _, _) in ranks(run.stdout).items()} == {
        rank: f"node{rank % 4 + 1}" for rank in range(16)}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_bind_gives_each_rank_what_srun_would(cluster, flavour):
    state, text, _ = batch(cluster, f"{mpirun(flavour)} -np 16 berth bind ./ring.{flavour}",
                           f"echo SRUN; srun --gpus-per-task=1 ./ring.{flavour}")
    assert state == "COMPLETED", text
    bound, by_srun = (ranks(part) for part in text.split("SRUN\n"))
    assert len(bound) == 16 and bound == by_srun
    for node in set(FOUR_BY_FOUR.values()):
        assert sorted(gpus for at, gpus, _ in bound.values() if at == node) == ["0", "1", "2", "3"]


def foretold(cluster, line, options):
    """What `berth explain` says of a script with this line, as ranks() reads it of the ranks themselves."""
    script = cluster.work / "foretold.sh"
    script.write_text(f"#!/bin/bash\n#SBATCH {' '.join(options)}\n{line}\n")
    plan = json.loads(cluster.run("berth", "explain", "--conf", str(cluster.state), "--json", str(script), rc=None).stdout)
    assert not {"B104", "B106", "B107", "B412"} & {each["code"] for each in plan["warnings"]}, plan["warnings"]
    tasks = plan["steps"][0]["tasks"]
    assert all(task["bound"] for task in tasks)
    return {task["rank"]: (task["node"], task["cuda_visible_devices"], task["cpu_mask"]) for task in tasks}


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("options, line", [
    (WHOLE, "-np 16 berth bind"),
    (("-N4", "--ntasks-per-node=4", "--gpus-per-task=1"), "-np 16 berth bind"),
    (("-N2", "--ntasks-per-node=2", "--gpus-per-node=4"), "-np 4 berth bind"),
    (("-N2", "--ntasks-per-node=2", "--gpus-per-node=4"), "-np 4 berth bind --gpus-per-rank 1 --"),
    (("-N1", "-n6", "--gpus=3"), "berth bind"),
], ids=("a GPU each", "by task", "two each", "one each of two", "shared"))
def test_bind_gives_each_rank_what_explain_says(cluster, flavour, options, line):
    cluster.wait_idle()  # explain supposes that nobody else is there
    line = f"{mpirun(flavour)} {line} ./ring.{flavour}"
    state, text, _ = batch(cluster, line, options=options)
    assert state == "COMPLETED", text
    assert ranks(text) == foretold(cluster, line, options)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_bind_on_nodes_whose_gpus_differ(cluster, flavour):
    """The job has other GPUs on its second node than on its first."""
    cluster.wait_idle()  # GPUs that an earlier job is still leaving would change who gets which
    blocker = cluster.submit("-w", "node1", "--gpus=2", "-o", "none", "--wrap", "sleep 120")
    cluster.wait_state(blocker, "RUNNING")
    try:
        state, text, _ = batch(
            cluster, f"{mpirun(flavour)} -np 4 berth bind ./ring.{flavour}",
            options=("-w", "node[1-2]", "-N2", "--ntasks-per-node=2", "--gpus-per-node=2"))
        assert state == "COMPLETED", text
        seen = {}
        for node, gpus, _ in ranks(text).values():
            seen.setdefault(node, set()).update(gpus.split(","))
        assert seen["node1"] == {"2", "3"}, text
        assert seen["node2"] == {"0", "1"}, text
    finally:
        cluster.run("scancel", str(blocker))


def test_bind_says_what_is_wrong(cluster):
    run = cluster.run("berth", "bind", "true", rc=None)
    assert run.returncode == 1 and "not a process of a job" in run.stderr
    _, text, _ = batch(cluster, "berth bind true 2>&1", options=("-n1", "--gpus=1"))
    assert "does not know its rank" in text
    state, text, _ = batch(cluster, f"{mpirun('mpich')} -np 4 berth bind --gpus-per-rank 2 ./ring.mpich 2>&1",
                           options=("-N1", "-n4", "--gpus=4"))
    assert "4 ranks on this node with 2 GPUs each are 8 GPUs, but the job has 4 here" in text
    assert state == "FAILED"


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("how", ("srun", "mpirun"))
def test_abort_ends_all_with_its_code(cluster, flavour, how):
    line = f"./ring.{flavour} abort"
    state, text, job = batch(cluster, f"srun {line}" if how == "srun" else f"{mpirun(flavour)} -np 16 {line}", "echo code $?")
    assert "code 7" in text, text
    assert state == "COMPLETED"
    if how == "srun":
        assert f"task 15 on node4 aborted the step with code 7" in text
        assert f"{job}.0|7:0" in cluster.out("sacct", "-nP", "-j", str(job), "-o", "JobID,ExitCode")


def test_a_signal_for_the_ranks_is_not_the_end_of_the_helper(cluster):
    program = cluster.work / "signalled.py"
    program.write_text("""import signal
from mpi4py import MPI
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
MPI.COMM_WORLD.Barrier()
print("ready", flush=True)
signal.sigwait([signal.SIGALRM])
print("sum", MPI.COMM_WORLD.allreduce(1), flush=True)
""")
    step = subprocess.Popen(["srun", "-N2", "-n2", PYTHON, program.name], env=cluster.env, cwd=cluster.work, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert [step.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
    job = cluster.out("squeue", "-h", "-o", "%A", "-t", "R").split()[0]
    cluster.run("scancel", "-s", "ALRM", job)
    out, err = step.communicate(timeout=60)
    assert step.returncode == 0 and out.count("sum 2") == 2 and "helper" not in err, out + err


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_exit_codes_pass_through_mpirun(cluster, flavour):
    _, text, _ = batch(cluster, f"{mpirun(flavour)} -np 4 bash -c 'exit 3'; echo code $?", options=("-N2", "-n4"))
    assert "code 3" in text, text


RANK = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"


def no_rank_is_left(mark):
    until(lambda: not processes_naming(mark), what=f"the end of all ranks that know {mark}")


# MPICH's mpiexec says 9 itself, or that its daemon on the other node, which it cut off, ended badly.
@pytest.mark.parametrize("flavour, code, told", [
    ("openmpi", "137", ""), ("mpich", "(9|255)", "EXIT CODE: 9")])
def test_a_rank_that_is_killed_ends_mpirun(cluster, flavour, code, told):
    mark = f"killed-{flavour}-{uuid.uuid4()}"
    rank = f'if [ "{RANK}" = 3 ]; then kill -KILL $$; fi; exec -a {mark} sleep 1000'
    _, text, job = batch(cluster, f"{mpirun(flavour)} -np 4 bash -c '{rank}'; echo code $?", options=("-N2", "-n4"))
    assert re.search(f"^code {code}$", text, re.M) and told in text, text
    no_rank_is_left(mark)
    assert cluster.out("squeue", "-h", "-s", "-j", str(job)) == ""


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("how", ("TERM for mpirun", "scancel -s", "scancel"))
def test_signals_pass_through_mpirun(cluster, flavour, how):
    """Ranks on two nodes, all of them told and none left over."""
    mark = f"signalled-{flavour}-{uuid.uuid4()}"
    program = cluster.work / "signalled.sh"
    program.write_text(f"""#!/bin/bash
trap 'echo got USR1' USR1
touch up.{mark}.{RANK}
until [ -e go.{mark} ]; do sleep 0.05; done
echo rank {RANK} goes on
""")
    lines = [f"{mpirun(flavour)} -np 4 bash signalled.sh {mark} & mpi=$!",
             "trap 'kill -USR1 $mpi' USR1", f"until [ $(ls up.{mark}.* 2>/dev/null | wc -l) = 4 ]; do sleep 0.05; done"]
    if how == "TERM for mpirun":
        lines.append("kill -TERM $mpi")
    lines += [f"touch ready.{mark}", "wait $mpi; code=$?", "while kill -0 $mpi 2>/dev/null; do wait $mpi; code=$?; done",
              "echo code $code"]
    script = cluster.work / "signalled-job.sh"
    script.write_text("#!/bin/bash\n" + "\n".join(lines) + "\n")
    job = cluster.submit("-N2", "-n4", "-o", "mpi.%j.out", script.name)
    out = cluster.work / f"mpi.{job}.out"
    until(lambda: (cluster.work / f"ready.{mark}").exists(), what="the ranks")
    if how == "scancel -s":
        cluster.run("scancel", "-b", "-s", "USR1", job)
        until(lambda: out.read_text().count("got USR1") == 4, what="the signal in all ranks")
        (cluster.work / f"go.{mark}").touch()
        assert cluster.wait_end(job) == "COMPLETED"
        assert out.read_text().count("goes on") == 4 and "code 0" in out.read_text(), out.read_text()
    elif how == "scancel":
        cluster.run("scancel", job)
        assert cluster.wait_end(job) == "CANCELLED"
    else:
        cluster.wait_end(job)
        text = out.read_text()
        assert "goes on" not in text and re.search(r"code (?!0$)\d+$", text, re.M), text
    no_rank_is_left(mark)


RELAYS = """\
ClusterName=relays
SlurmctldHost=localhost
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
TreeWidth=2
MpiParams=disable_slurm_hydra_bootstrap
NodeName=node[1-7] CPUs=4 RealMemory=4000
PartitionName=all Nodes=ALL Default=YES
"""


@pytest.fixture(scope="module")
def relays(tmp_path_factory, cluster):
    folder = tmp_path_factory.mktemp("conf")
    (folder / "slurm.conf").write_text(RELAYS)
    with Cluster(emulate=folder) as c:
        for flavour in FLAVOURS:
            shutil.copy(cluster.work / f"ring.{flavour}", c.work)
        yield c


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_exchanges_pass_relays(relays, flavour):
    run = relays.run("srun", "-v", "-N7", "--ntasks-per-node=2", f"./ring.{flavour}")
    assert "7 nodes by 2 connections, the farthest 3 away" in run.stderr
    assert {rank: node for rank, (node, _, _) in ranks(run.stdout).items()} == {
        rank: f"node{rank // 2 + 1}" for rank in range(14)}
    aborted = relays.run("srun", "-N7", "--ntasks-per-node=2", f"./ring.{flavour}", "abort", rc=None)
    assert aborted.returncode == 7 and "task 13 on node7 aborted the step with code 7" in aborted.stderr, aborted.stderr


@pytest.mark.parametrize("own, told", [
    ({}, ["HYDRA_BOOTSTRAP=slurm", "HYDRA_LAUNCHER_EXTRA_ARGS=--external-launcher"]),
    ({"HYDRA_BOOTSTRAP": "ssh"}, ["HYDRA_BOOTSTRAP=ssh"]), ({"HYDRA_LAUNCHER": "fork"}, ["HYDRA_LAUNCHER=fork"])])
def test_hydra_is_told_of_srun_unless_the_user_says_otherwise(cluster, own, told):
    job = cluster.submit("-o", "hydra.out", "--wrap", "env | grep ^HYDRA_ | sort", env=own)
    assert cluster.wait_end(job) == "COMPLETED"
    assert (cluster.work / "hydra.out").read_text().split() == told


def test_hydra_is_not_told_where_the_site_does_not_want_it(relays):
    job = relays.submit("-o", "hydra.out", "--wrap", "env | grep -c HYDRA_; true")
    assert relays.wait_end(job) == "COMPLETED"
    assert (relays.work / "hydra.out").read_text() == "0\n"


def test_a_port_and_names_of_the_step(cluster):
    code = "import os; print(os.environ['MASTER_ADDR'], os.environ['MASTER_PORT'], os.environ['SLURM_STEP_RESV_PORTS'])"
    lines = [cluster.out("srun", "-N2", PYTHON, "-c", code).split() for _ in range(2)]
    ports = {line[1] for line in lines}
    assert len(ports) == 2 and all(line[1] == line[2] for line in lines)
    addresses = cluster.out("srun", "-N4", "bash", "-c", "getent hosts $(hostname) | cut -d' ' -f1").split()
    assert len(set(addresses)) == 4 and all(address.startswith("127.77.") for address in addresses), addresses


def test_ranks_spawn_others(cluster):
    # By the library that MPICH and others can be built with; Debian's own MPICH is built without MPI_Comm_spawn (ch4:ucx).
    run = cluster.run("srun", "-N2", "-n2", PYTHON, PROGRAMS / "spawn_pmi2.py", timeout=120)
    text = run.stdout
    job = re.search(r"in (\d+)\.0 spawned 0", text).group(1)
    assert f"answer 0 {job}.1 " in text, text + run.stderr
    for rank, appnum, words in ((0, 0, ["one two"]), (1, 0, ["one two"]), (2, 1, ["three"])):
        assert f"rank {rank} of 3 in {job}.1 spawned 1 appnum {appnum} words {words}" in text, text + run.stderr


def test_open_mpi_ranks_are_told_that_they_cannot(cluster):
    subprocess.run(["mpicc.openmpi", "-O1", PROGRAMS / "spawn.c", "-o", cluster.work / "spawn.openmpi"], check=True)
    run = cluster.run("srun", "-N2", "-n2", "./spawn.openmpi", rc=None, timeout=120)
    assert run.returncode != 0
    assert "which a step with PMIx cannot have" in run.stderr, run.stderr
