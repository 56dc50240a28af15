"""What steps use while they run (sstat) and afterwards (sacct)."""

import contextlib
import os
import signal
import threading

import pytest

from cluster import Cluster, until
from fake_nvml import FakeNvml
from test_hardware import RealCluster, own_conf

pytestmark = pytest.mark.live

# Each task writes a number of bytes of its own and holds memory of its own, then waits for its end.
TASK = ("import os, time\n"
        "rank = int(os.environ['SLURM_PROCID'])\n"
        "held = bytearray((20 + 10 * rank) << 20)\n"
        "with open('/dev/null', 'wb', 0) as null: null.write(bytes(100000 + 1000 * rank))\n"
        "open(f'ready.{os.environ[\"SLURM_JOB_ID\"]}.{rank}', 'w').close()\n"
        "time.sleep(600)\n")


@pytest.fixture(scope="module")
def cluster():
    with Cluster(emulate="3x2:a100") as c:
        (c.work / "task.py").write_text(TASK)
        yield c


@contextlib.contextmanager
def running(c, *words, user=None):
    """A job, ended at the end."""
    job = c.submit("-o", "/dev/null", *words, user=user)
    try:
        c.wait_state(job, "RUNNING")
        yield job
    finally:
        c.run("scancel", job)
        c.wait_end(job)


def sstat(c, *words, **options):
    return c.out("sstat", "-n", "-P", *words, **options)


@pytest.fixture
def step(cluster):
    """A job with a step of five tasks on three nodes, all of which have done their work."""
    with running(cluster, "-N3", "-n5", "--mem=200", "--wrap",
                 "srun python3 task.py & srun --overlap -N1 -n1 sleep 600 & wait") as job:
        until(lambda: all((cluster.work / f"ready.{job}.{rank}").exists() for rank in range(5)), what="five tasks")

        def both():
            lines = cluster.out("squeue", "-h", "-s", "-j", job, "-o", "%j %i").splitlines()
            steps = dict(line.split() for line in lines)
            return steps if {"python3", "sleep"} <= set(steps) else None
        yield job, until(both, what="both steps")["python3"]  # either srun may have come first


def tres(text):
    return dict(pair.split("=") for pair in text.split(","))


def test_figures_of_tasks_on_several_nodes(cluster, step):
    job, name = step
    layout = cluster.out("squeue", "-h", "-s", "-j", job, "-o", "%i %N").splitlines()
    assert f"{name} node[1-3]" in layout
    row = sstat(cluster, "-j", name, "--noconvert", "-o",
                "JobID,NTasks,Nodelist,MaxRSS,MaxRSSTask,MaxRSSNode,AveRSS,MaxVMSize,AveVMSize,MaxDiskWrite,"
                "MaxDiskWriteTask,MaxDiskWriteNode,AveDiskWrite,MaxPages,AveCPU,MinCPU,ReqCPUFreqMin").split("|")
    assert row[:3] == [name, "5", "node[1-3]"]
    most, average = int(row[3]), int(row[6])
    # Rank 4 holds 60 MiB, all together 200 MiB.
    assert row[4:6] == ["4", "node3"] and most > 60 << 20 and 40 << 20 < average < most
    assert int(row[7]) >= most and int(row[8]) > 40 << 20
    # All but the ranks' own thousands is the same for all.
    written, mean = int(row[9]), int(row[12])
    assert row[10:12] == ["4", "node3"] and written >= 104000 and written - mean == 2000
    assert row[13].isdigit() and row[14] == row[15] == "00:00:00" and row[16] == "Unknown"


def test_tres_usage_names_nodes_and_tasks(cluster, step):
    _, name = step
    fields = ["TRESUsageInMax", "TRESUsageInMaxNode", "TRESUsageInMaxTask", "TRESUsageInMin", "TRESUsageInMinTask",
              "TRESUsageInTot", "TRESUsageOutMax", "TRESUsageOutMinTask"]
    values = [tres(v) for v in sstat(cluster, "-j", name, "--noconvert", "-o", ",".join(fields)).split("|")]
    shown = dict(zip(fields, values))
    assert list(shown["TRESUsageInMax"]) == ["cpu", "energy", "fs/disk", "mem", "pages", "vmem"]
    assert shown["TRESUsageInMaxNode"]["mem"] == "node3" and shown["TRESUsageInMaxTask"]["mem"] == "4"
    assert shown["TRESUsageInMinTask"]["mem"] == "0" and shown["TRESUsageOutMinTask"] == {"fs/disk": "0"}
    assert int(shown["TRESUsageInTot"]["mem"]) > 200 << 20
    assert int(shown["TRESUsageInMin"]["mem"]) < int(shown["TRESUsageInMax"]["mem"])


def test_which_steps_are_shown(cluster, step):
    job, name = step
    assert sstat(cluster, "-j", job, "-o", "jobid") == f"{job}.0"
    assert sstat(cluster, "-a", "-j", job, "-o", "jobid").split() == [f"{job}.batch", f"{job}.0", f"{job}.1"]
    assert sstat(cluster, "-j", f"{job}.1,{job}.batch", "-o", "jobid").split() == [f"{job}.1", f"{job}.batch"]
    assert sstat(cluster, f"{job}.batch", "-o", "jobid,ntasks,reqcpufreq") == f"{job}.batch|1|0"
    done = cluster.run("sstat", "-n", "-o", "jobid", "-j", f"{job}.extern,4000000,{job}.77,{job}.0")
    assert done.stdout.split() == [f"{job}.0"]
    assert done.stderr.splitlines() == [f"sstat: error: StepId={job}.extern not found running.",
                                        "sstat: error: couldn't get steps for job 4000000",
                                        f"sstat: error: StepId={job}.77 not found running."]


def test_formats(cluster, step):
    job, name = step
    lines = cluster.run("sstat", "-j", name, "-o", "JobID,MaxRSSTask,NTasks%-4").stdout.splitlines()
    assert lines == ["JobID        MaxRSSTask NTas ", "------------ ---------- ---- ", f"{name:<12}          4 5    "]
    header, row = cluster.run("sstat", "-p", "-j", name).stdout.splitlines()
    assert header.startswith("JobID|MaxVMSize|MaxVMSizeNode|") and header.endswith("|TRESUsageOutTot|")
    assert len(row.split("|")) == len(header.split("|")) == 48
    assert row.split("|")[1].endswith(("K", "M"))
    names = cluster.out("sstat", "-e").split()
    assert len(names) == 51 and "TRESUsageInMaxNode" in names
    assert "Invalid field requested" in cluster.run("sstat", "-j", name, "-o", "Foo", rc=1).stderr
    assert "any jobs to stat" in cluster.run("sstat", rc=1).stderr
    assert "Bad job/step specified: me" in cluster.run("sstat", "-j", "me", rc=1).stderr
    assert cluster.out("sstat", "--usage").startswith("Usage: sstat [options] -j <job(.stepid)>")


def test_processes_are_those_of_the_tasks(cluster, step):
    job, name = step
    rows = [line.split("|") for line in sstat(cluster, "-i", "-j", name).splitlines()]
    assert [row[:2] for row in rows] == [[name, f"node{i}"] for i in (1, 2, 3)]
    pids = [int(pid) for row in rows for pid in row[2].split(",")]
    assert len(pids) == 5
    for pid in pids:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            assert f"SLURM_STEP_ID={name.split('.')[1]}\0".encode() in environ.read()
    assert sstat(cluster, "-o", "pids", "-j", name) == ",".join(map(str, pids))


def test_what_is_over_on_some_nodes_stays_in_the_sum(cluster):
    script = ("[ $SLURM_PROCID = 0 ] || exec sleep 600; "
              "head -c 3000000 /dev/zero > /dev/null; touch over.$SLURM_JOB_ID")
    with running(cluster, "-N3", "-n3", "--mem=200", "--wrap", f"srun -W0 sh -c '{script}'") as job:
        until((cluster.work / f"over.{job}").exists, what="the first task is over")
        until(lambda: sstat(cluster, "-o", "pids", "-j", f"{job}.0").count(",") == 1, what="two tasks are left")
        row = sstat(cluster, "-j", f"{job}.0", "--noconvert", "-o", "MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,NTasks")
        most, node, task, tasks = row.split("|")
        assert int(most) >= 3000000 and (node, task, tasks) == ("node1", "0", "3"), row
        running_row = cluster.out("sacct", "-n", "-P", "-j", f"{job}.0", "-o", "State,MaxRSS,AveCPU,MaxDiskWrite,TRESUsageInTot")
        assert running_row == "RUNNING||||", "sstat tells of those that run"


def test_a_cancelled_job_has_cancelled_steps(cluster):
    job = cluster.submit("-n1", "--mem=200", "-o", "/dev/null", "--wrap", "srun sleep 600")
    until(lambda: cluster.out("squeue", "-h", "-s", "-j", job, "-o", "%i %j").count("sleep") == 1, what="the step runs")
    cluster.run("scancel", job)
    cluster.wait_end(job)
    rows = cluster.out("sacct", "-n", "-P", "-j", job, "-o", "JobID,State").splitlines()
    assert rows[0].startswith(f"{job}|CANCELLED by "), rows
    assert rows[1:] == [f"{job}.batch|CANCELLED", f"{job}.0|CANCELLED"]


def test_after_the_end_sacct_has_them(cluster):
    """What sstat shows of bytes, and what the kernel tells of each task at its end."""
    job = cluster.submit("-N2", "-n2", "--mem=200", "-o", "/dev/null", "--wrap",
                         "srun sh -c 'head -c $((50000 + 7000 * SLURM_PROCID)) /dev/zero > /dev/null'")
    cluster.wait_state(job, "COMPLETED")
    fields = ("MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,AveDiskWrite,MaxRSSNode,MinCPUNode,MaxPages,"
              "TRESUsageInMaxTask,TRESUsageOutMax,TRESUsageOutMinNode,TRESUsageOutTot,MaxVMSize")
    row = cluster.out("sacct", "-n", "-P", "--noconvert", "-j", f"{job}.0", "-o", fields).split("|")
    most = int(row[0])
    assert most >= 57000 and row[1:3] == ["node2", "1"] and int(row[3]) == most - 3500
    assert row[4] in ("node1", "node2") and row[5] in ("node1", "node2") and row[6].isdigit()
    assert list(tres(row[7])) == ["cpu", "fs/disk", "mem", "pages"]
    assert row[8] == f"energy=0,fs/disk={most}" and row[9] == "energy=node1,fs/disk=node1"
    assert row[10] == f"energy=0,fs/disk={2 * most - 7000}" and row[11] == ""
    job_row = cluster.out("sacct", "-n", "-P", "-X", "-j", job, "-o", fields)
    assert set(job_row) == {"|"}
    # The same after a restart: it is in the store.
    cluster.restart_controller()
    again = cluster.out("sacct", "-n", "-P", "--noconvert", "-j", f"{job}.0", "-o", fields).split("|")
    assert again == row
    done = cluster.run("sstat", "-j", job)
    assert done.stderr == f"sstat: error: No steps running for job {job}\n"


def test_a_script_alone_has_to_be_named(cluster):
    with running(cluster, "-n1", "--mem=100", "--wrap", "sleep 600") as job:
        done = cluster.run("sstat", "-n", "-j", job)
        assert done.stdout == "" and f"sstat -j {job}.batch" in done.stderr
        until(lambda: sstat(cluster, "-j", f"{job}.batch", "-o", "ntasks,maxrsstask") == "1|0", what="figures")


def supervisor_of(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def test_a_node_that_does_not_answer_is_left_out(cluster, step):
    """And nobody else waits for it."""
    job, name = step
    rows = [line.split("|") for line in sstat(cluster, "-i", "-j", name).splitlines()]
    supervisor = supervisor_of(int(rows[1][2].split(",")[0]))
    answer = {}
    os.kill(supervisor, signal.SIGSTOP)
    try:
        def ask():
            answer["done"] = cluster.run("sstat", "-n", "-P", "-j", name, "-o", "jobid,ntasks,maxrsstask")
        asker = threading.Thread(target=ask)
        asker.start()
        # Another job, and a question about another step, go on meanwhile.
        assert sstat(cluster, "-j", f"{job}.batch", "-o", "jobid") == f"{job}.batch"
        other = cluster.submit("-n1", "--mem=100", "-o", "/dev/null", "--wrap", "true")
        cluster.wait_state(other, "COMPLETED")
        asker.join(60)
    finally:
        os.kill(supervisor, signal.SIGCONT)
    assert answer["done"].stdout == f"{name}|5|4\n"
    assert answer["done"].stderr == f"berth: node2 has not answered: the figures of step {name} are without it\n"
    until(lambda: cluster.run("sstat", "-n", "-j", name).stderr == "", what="it answers again")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be several users")
def test_only_ones_own_jobs(cluster):
    with running(cluster, "-n1", "--mem=100", "-D", "/", "--wrap", "srun -n1 sleep 600 & wait", user="nobody") as job:
        until(lambda: sstat(cluster, "-j", job, "-o", "jobid", user="nobody") == f"{job}.0", what="its own user sees it")
        assert sstat(cluster, "-j", job, "-o", "jobid") == f"{job}.0", "root sees all"
        done = cluster.run("sstat", "-n", "-P", "-a", "-o", "jobid,maxrss,pids", "-j", job, user="daemon")
        assert done.stdout == ""
        assert done.stderr.splitlines() == [
            f"sstat: error: problem getting step_layout for StepId={job}.{step}: Invalid user id" for step in ("batch", "0")]


# ---- GPUs of a real node, through the fake NVML library

@pytest.fixture
def site(tmp_path):
    gpus = FakeNvml(tmp_path / "gpus.json", "l40s-pcie-4")
    real = RealCluster(gpus)
    own_conf(real, "AutoDetect=nvml\n", "gpu:l40s:4")
    with real as c:
        until(lambda: c.out("sinfo", "-h", "-o", "%T") == "idle", what="an idle node")
        yield c, gpus


def gpu_figures(c, command, step, field):
    """(gpumem, gpuutil) of a TRES text, as shown."""
    text = c.out(command, "-n", "-P", "-j", step, "-o", field)
    found = tres(text) if text else {}
    return found.get("gres/gpumem"), found.get("gres/gpuutil")


@pytest.mark.skipif(os.geteuid() != 0, reason="slurm.conf names root")
def test_what_tasks_make_of_gpus(site):
    c, fake = site
    # Rank 1 hides behind a shell with an empty environment, as programs in containers do.
    srun = c.popen("srun", "-n2", "-O", "--gpus-per-task=1", "--mem=10", "sh", "-c",
                   "if [ $SLURM_PROCID = 0 ]; then exec sleep 601; fi; env -i /bin/sleep 602 & wait")
    try:
        job = until(lambda: c.out("squeue", "-h", "-o", "%i"), what="a job")
        step = f"{job}.0"
        c.wait_state(job, "RUNNING")

        def pids():
            found = {}
            for pid in sstat(c, "-j", step, "-o", "pids").split(","):
                with contextlib.suppress(OSError, ValueError), open(f"/proc/{int(pid)}/cmdline") as command:
                    found[command.read().replace("\0", " ").strip()] = int(pid)
            return found if {"sleep 601", "/bin/sleep 602"} <= set(found) else None
        tasks = until(pids, what="the tasks' processes")
        until(lambda: gpu_figures(c, "sstat", step, "TRESUsageInTot") == ("0", "0"), what="a look at the GPUs")
        fake.gpu(0).update(busy_percent=80, memory_used_mb=30500,
                           processes=[{"pid": tasks["sleep 601"], "memory_mb": 30000}])
        fake.gpu(1).update(busy_percent=40, memory_used_mb=10500,
                           processes=[{"pid": tasks["/bin/sleep 602"], "memory_mb": 10000},
                                      {"pid": os.getpid(), "memory_mb": 500}])  # not the step's
        fake.write()
        until(lambda: gpu_figures(c, "sstat", step, "TRESUsageInTot")[0] == "40000M", what="memory of both tasks")
        assert gpu_figures(c, "sstat", step, "TRESUsageInMax") == ("30000M", "80")
        assert gpu_figures(c, "sstat", step, "TRESUsageInMaxTask") == ("0", "0")
        assert gpu_figures(c, "sstat", step, "TRESUsageInMin")[0] == "10000M"
        assert gpu_figures(c, "sstat", step, "TRESUsageInMinTask") == ("1", "1")
        host = os.uname().nodename.split(".")[0]
        assert gpu_figures(c, "sstat", step, "TRESUsageInMaxNode") == (host, host)
        # Means over the time: they come near what is so now.
        until(lambda: int(gpu_figures(c, "sstat", step, "TRESUsageInTot")[1]) > 60, what="busy for a while")
        # Each of its two GPUs draws 60 W; the others are nobody's.
        joules = int(until(lambda: sstat(c, "-j", step, "-o", "ConsumedEnergyRaw"), what="energy"))
        assert joules >= 120 and joules % 120 == 0, joules
        assert int(tres(sstat(c, "-j", step, "-o", "TRESUsageInTot"))["energy"]) >= joules
        for gpu in (0, 1):
            fake.gpu(gpu).update(busy_percent=0, memory_used_mb=0, processes=[])
        fake.write()
        until(lambda: gpu_figures(c, "sstat", step, "TRESUsageInTot")[0] == "0", what="nobody is on the GPUs")
        assert gpu_figures(c, "sstat", step, "TRESUsageInMax") == ("30000M", "80"), "what was most stays"
    finally:
        srun.send_signal(signal.SIGTERM)
        srun.wait(60)
    c.wait_end(job)
    assert gpu_figures(c, "sacct", step, "TRESUsageInMax") == ("30000M", "80")
    assert int(c.out("sacct", "-n", "-P", "-j", step, "-o", "ConsumedEnergyRaw")) >= joules
    assert gpu_figures(c, "sacct", step, "TRESUsageInMaxTask") == ("0", "0")
    assert gpu_figures(c, "sacct", step, "TRESUsageInMinTask") == ("1", "1")
    assert gpu_figures(c, "sacct", step, "TRESUsageInTot")[0] == "40000M", "the most of each task"
    assert gpu_figures(c, "sacct", step, "TRESUsageInAve")[0] == "20000M"
    total = int(gpu_figures(c, "sacct", step, "TRESUsageInTot")[1])
    assert 0 < total <= 120
    # A step without GPUs has no figures of them.
    c.run("srun", "-n1", "--mem=10", "true")
    last = c.out("sacct", "-n", "-P", "-X", "-a", "-o", "jobid").split()[-1]
    assert gpu_figures(c, "sacct", f"{last}.0", "TRESUsageInTot") == (None, None)
