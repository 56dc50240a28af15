"""Steps on a real node are kept to their GPUs, memory and cores (docs/fence.md).

The GPUs are character devices that anybody may open: copies of /dev/zero and its neighbours, under names that
gres.conf gives. What opens them and what does not is then the fence's doing alone.

`make test-vm` runs the same tests where there is nothing but cgroup v2.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import stat
import time

import pytest

from cluster import Cluster, bin_dir, receivers_of, until

MINORS = (5, 7, 8, 9)  # zero, full, random, urandom
V2 = next((line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()
           if line.split()[2] == "cgroup2"), None)
V1 = {controller: line.split()[1]
      for line in pathlib.Path("/proc/mounts").read_text().splitlines() if line.split()[2] == "cgroup"
      for controller in line.split()[3].split(",")}
V2_HAS = pathlib.Path(V2, "cgroup.controllers").read_text().split() if V2 else []


def can_limit(what):
    return what in V2_HAS or what in V1


pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: cgroups, mknod"),
    pytest.mark.skipif(V2 is None and "devices" not in V1, reason="needs cgroup v2, or the devices of cgroup v1"),
]
PLUGINS = [pytest.param("cgroup/v1", marks=pytest.mark.skipif("devices" not in V1, reason="no devices in cgroup v1")),
           pytest.param("cgroup/v2", marks=pytest.mark.skipif(V2 is None, reason="no cgroup v2"))]

OPENS = r"""
for i in 0 1 2 3; do (exec 3<%(dev)s/gpu$i) 2>/dev/null && printf "$i"; done; echo .
"""
HOG = "import sys; x = bytearray(int(sys.argv[1]) << 20); print(len(x))"


@contextlib.contextmanager
def fenced(cgroup_conf, prolog="", more="", gres_conf=None, kind=Cluster):
    """A cluster of this machine with four devices, this cgroup.conf and, if any, this prolog and more of slurm.conf."""
    c = kind()
    c.state.mkdir()
    c.dev = pathlib.Path(c.own) / "dev"
    c.dev.mkdir()
    for index, minor in enumerate(MINORS):
        os.mknod(c.dev / f"gpu{index}", 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        os.chmod(c.dev / f"gpu{index}", 0o666)
    host = socket.gethostname().split(".")[0]
    cpus = os.cpu_count()
    c.conf.write_text(f"""ClusterName=fenced
SlurmctldHost={host}
SlurmUser=root
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
TaskPlugin=task/affinity,task/cgroup
DefMemPerNode=200
NodeName={host} CPUs={cpus} RealMemory=2000 Gres=gpu:4
PartitionName=main Nodes=ALL Default=YES
{more}""")
    if prolog:
        script = c.work / "prolog.sh"
        script.write_text(f"#!/bin/sh\ncd {c.work}\n{prolog}\n")
        script.chmod(0o755)
        c.conf.write_text(f"{c.conf.read_text()}Prolog={script}\n")
    (c.state / "gres.conf").write_text(gres_conf or f"Name=gpu File={c.dev}/gpu[0-3]\n")
    (c.state / "cgroup.conf").write_text(cgroup_conf)
    c.opens = c.work / "opens.sh"
    c.opens.write_text(OPENS % {"dev": c.dev})
    c.hog = c.work / "hog.py"
    c.hog.write_text(HOG)
    with c:
        yield c


@pytest.fixture(scope="module", params=PLUGINS)
def devices(request):
    with fenced(f"CgroupPlugin={request.param}\nConstrainDevices=yes\n") as c:
        c.plugin = request.param
        yield c


@pytest.fixture(scope="module")
def limits():
    if not can_limit("memory") or not can_limit("cpuset"):
        pytest.skip("neither cgroup v2 nor v1 limits memory and cores here")
    with fenced("ConstrainDevices=yes\nConstrainRAMSpace=yes\nConstrainSwapSpace=yes\nConstrainCores=yes\n",
                prolog="cat /proc/self/oom_score_adj >prolog.$SLURM_JOB_ID") as c:
        yield c


def groups_of(pid):
    """Where a process is in each hierarchy that the fence uses."""
    found = []
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controller, path = line.split(":", 2)
        if controller == "" and V2:
            found.append(V2 + path)
        elif controller in V1 and "/job_" in path:
            found.append(V1[controller] + path)
    return found


def bases_of(c):
    """Where the jobs of this agent have their groups."""
    own = c.out("srun", "-n1", "cat", "/proc/self/cgroup").splitlines()
    bases = [(V1[name] if name else V2) + path.split("/job_")[0]
             for _, name, path in (line.split(":", 2) for line in own) if "/job_" in path]
    assert bases, own
    return bases


def hierarchies_of(c, job):
    """Those in which a step of the job is in a group of it."""
    own = c.out("srun", "--jobid", job, "--overlap", "-n1", "--mem=0", "cat", "/proc/self/cgroup", user="nobody").splitlines()
    return [line for line in own if f"/job_{job}/" in line]


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def written(path):
    """What a script wrote, once it has."""
    return until(lambda: path.exists() and path.read_text().strip(), what=f"something in {path}")


def started_again(c, agent):
    """A killed agent may hold its lock until its thread has written; then `berth up` finds it running."""
    c.start()
    with contextlib.suppress(AssertionError):
        return c.pid("node") != agent
    return False


# ---- devices ------------------------------------------------------------------------------------

def test_a_step_opens_its_gpu_and_no_other(devices):
    devices.wait_idle()
    holder = devices.submit("--gres=gpu:1", "-o", f"{devices.work}/holder", "--wrap",
                            f"sh {devices.opens}; sleep 300")
    devices.wait_state(holder, "RUNNING")
    for user in (None, "nobody"):
        until(lambda: len(devices.out("squeue", "-h").splitlines()) == 1, what="the holder alone")
        step = devices.run("srun", "--gres=gpu:1", "sh", "-c",
                           f"sh {devices.opens}; echo $SLURM_STEP_GPUS/$CUDA_VISIBLE_DEVICES", user=user)
        assert step.stdout.split() == ["1.", "1/0"], step
    assert written(devices.work / "holder") == "0."
    devices.run("scancel", holder)
    devices.wait_state(holder, "CANCELLED")
    assert devices.out("srun", "--gres=gpu:4", "sh", devices.opens) == "0123."


def test_a_step_without_gpus_opens_none(devices):
    for user in (None, "nobody"):
        assert devices.out("srun", "-n1", "sh", devices.opens, user=user) == "."
    # Everything that is not a GPU is as open as ever.
    assert devices.out("srun", "-n1", "sh", "-c", "head -c0 /dev/null && echo yes") == "yes"


def test_nothing_escapes(devices):
    wait = f"while [ ! -s {devices.work}/late ]; do sleep 0.05; done; cat {devices.work}/late"
    ways = {
        "fork": f"sh {devices.opens} & wait",
        "setsid": f"setsid -w sh {devices.opens}",
        "double fork": f"(setsid sh -c 'sh {devices.opens} >{devices.work}/late' &) ; {wait}",
        "namespace": f"unshare -Urm sh {devices.opens}",
    }
    for name, script in ways.items():
        (devices.work / "late").unlink(missing_ok=True)
        # Which GPU it is depends on whether the job before is gone already.
        got = devices.run("srun", "--gres=gpu:1", "sh", "-c", f"echo $SLURM_STEP_GPUS.; {script}",
                          user="nobody" if name != "double fork" else None)
        own, opened = got.stdout.split()
        assert opened == own and len(own) == 2, (name, got)
    # Not even root makes itself another file of a GPU that is not the step's.
    devices.wait_idle()
    made = devices.run("srun", "--gres=gpu:1", "mknod", f"{devices.work}/another", "c", "1", str(MINORS[2]), rc=None)
    assert made.returncode != 0 and "Operation not permitted" in made.stderr, made


def test_tasks_are_fenced_one_by_one(devices):
    devices.wait_idle()
    if os.cpu_count() < 2:
        pytest.skip("needs two cores")
    script = f"echo $(sh {devices.opens}) $CUDA_VISIBLE_DEVICES"
    own = devices.out("srun", "-n2", "--gpus-per-task=1", "sh", "-c", script).splitlines()
    assert sorted(own) == ["0. 0", "1. 0"]
    devices.wait_idle()
    shared = devices.out("srun", "-n2", "--gpus-per-task=1", "--gres-flags=allow-task-sharing", "sh", "-c", script)
    assert sorted(shared.splitlines()) == ["01. 0", "01. 1"]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_steps_are_fenced_as_a_whole_where_the_configuration_says_so(plugin):
    if os.cpu_count() < 2:
        pytest.skip("needs two cores")
    with fenced(f"CgroupPlugin={plugin}\nConstrainDevices=yes\n", more="SlurmdParameters=gpu_fence=step\n") as c:
        script = f"echo $(sh {c.opens}) $CUDA_VISIBLE_DEVICES"
        other = c.submit("--gres=gpu:1", "-o", "/dev/null", "--wrap", "sleep 300")
        c.wait_state(other, "RUNNING")
        asks = ("srun", "-n2", "--overcommit", "--gpus-per-task=1")
        # What the tasks can open is their step's, and the numbers are positions in it.
        assert sorted(c.out(*asks, "sh", "-c", script).splitlines()) == ["12. 0", "12. 1"]
        until(lambda: len(c.out("squeue", "-h").splitlines()) == 1, what="the other job alone")
        narrow = c.out(*asks, "--gres-flags=no-task-sharing", "sh", "-c", script)
        assert sorted(narrow.splitlines()) == ["1. 0", "2. 0"]
        # explain tells the same numbers.
        text = c.work / "job.sh"
        text.write_text("#!/bin/sh\n#SBATCH -n2 --gpus-per-task=1\nsrun -O true\n"
                        "srun -O --gres-flags=no-task-sharing true\n")
        steps = json.loads(c.out("berth", "explain", "--json", "--conf", c.state, text))["steps"]
        seen = [[task["cuda_visible_devices"] for task in step["tasks"]] for step in steps]
        assert seen == [["0", "1"], ["0", "0"]]


def test_a_script_has_the_jobs_gpus_and_its_steps_theirs(devices):
    devices.wait_idle()
    job = devices.submit("--gres=gpu:3", "-o", f"{devices.work}/out.%j", "--wrap",
                         f"sh {devices.opens}; srun -n1 --gres=gpu:1 sh {devices.opens}; "
                         f"srun -n1 --gres=none sh {devices.opens}; srun -n1 sh {devices.opens}")
    devices.wait_state(job, "COMPLETED")
    assert (devices.work / f"out.{job}").read_text().split() == ["012.", "0.", ".", "012."]


def test_groups_have_the_names_that_others_look_for_and_go_with_the_step(devices):
    job = devices.submit("--gres=gpu:1", "-o", f"{devices.work}/pid.%j", "--wrap", "echo $$; sleep 300")
    devices.wait_state(job, "RUNNING")
    pid = written(devices.work / f"pid.{job}")
    groups = groups_of(pid)
    assert any(f"slurmstepd.scope/job_{job}/step_batch" in group or
               f".scope/job_{job}/step_batch" in group for group in groups), groups
    assert (devices.plugin == "cgroup/v1") == any(f"/uid_0/job_{job}/step_batch" in group for group in groups), groups
    devices.run("scancel", job)
    devices.wait_state(job, "CANCELLED")
    devices.wait_idle()
    until(lambda: not any(os.path.exists(group) for group in groups), what="the end of the groups")
    for group in groups:
        assert not os.path.exists(os.path.dirname(group)), "the job's own"


def test_an_exporter_beside_the_steps_sees_the_jobs_gpus(devices):
    """As slurm-job-exporter does: a group of its own in the job's, in which it looks which GPUs there are."""
    devices.wait_idle()
    job = devices.submit("--gres=gpu:2", "-o", f"{devices.work}/pid.%j", "--wrap", "echo $$; sleep 300")
    devices.wait_state(job, "RUNNING")
    pid = written(devices.work / f"pid.{job}")
    # A step in between: it has less than the job, and the job's group keeps what it has.
    assert devices.out("srun", "--jobid", job, "--overlap", "-n1", "--gres=gpu:1", "sh", devices.opens) == "0."
    groups = [pathlib.Path(group).parent for group in groups_of(pid)
              if (group.startswith(V1["devices"]) if devices.plugin == "cgroup/v1" else group.startswith(V2))]
    assert len(groups) == 1 and groups[0].name == f"job_{job}", groups
    probe = groups[0] / "gpu_probe"
    probe.mkdir()

    def seen():
        return devices.out("sh", "-c", f"echo $$ >{probe}/cgroup.procs; sh {devices.opens}")

    assert seen() == "01."
    # Neither is what somebody does there the agent's to end.
    inside = devices.popen("sh", "-c", f"echo $$ >{probe}/cgroup.procs; echo in; exec sleep 300")
    assert inside.stdout.readline() == "in\n"
    agent = devices.pid("node")
    os.kill(agent, signal.SIGKILL)
    until(lambda: started_again(devices, agent), what="a new agent")
    until(lambda: devices.out("sinfo", "-h", "-o", "%T") == "mixed", what="the node with its job")
    assert inside.poll() is None and seen() == "01."
    # The job ends while somebody is there; the group goes when nobody is.
    devices.run("scancel", job)
    devices.wait_state(job, "CANCELLED")
    devices.wait_idle()
    assert inside.poll() is None
    inside.kill()
    inside.wait()
    until(lambda: not groups[0].exists(), what="the end of the job's group")


def test_a_killed_supervisor_leaves_no_groups(devices):
    job = devices.submit("--gres=gpu:1", "-o", f"{devices.work}/pid.%j", "--wrap", "echo $$; sleep 300")
    devices.wait_state(job, "RUNNING")
    pid = written(devices.work / f"pid.{job}")
    groups = groups_of(pid)
    os.kill(parent_of(pid), signal.SIGKILL)
    devices.wait_end(job)
    until(lambda: not any(os.path.exists(group) for group in groups), what="the end of the groups")


def test_a_fence_outlives_its_agent(devices):
    devices.wait_idle()
    job = devices.submit("--gres=gpu:1", "-o", f"{devices.work}/opens.%j", "--wrap",
                         f"while [ ! -e {devices.work}/go ]; do sleep 0.05; done; sh {devices.opens}")
    devices.wait_state(job, "RUNNING")
    agent = devices.pid("node")
    os.kill(agent, signal.SIGKILL)
    until(lambda: started_again(devices, agent), what="a new agent")
    (devices.work / "go").touch()
    devices.wait_state(job, "COMPLETED")
    (devices.work / "go").unlink()
    assert (devices.work / f"opens.{job}").read_text() == "0.\n"
    devices.wait_idle()
    assert devices.out("srun", "--gres=gpu:2", "sh", devices.opens) == "01."


@pytest.mark.parametrize("point", ["node.before_order", "node.after_order"])
def test_an_agent_that_dies_at_a_start_leaves_a_whole_fence_or_none(devices, point):
    devices.wait_idle()
    bases = bases_of(devices)
    agent = devices.pid("node")
    os.kill(agent, signal.SIGKILL)
    devices.env["BERTH_CRASH_AT"] = point
    until(lambda: started_again(devices, agent), what="an agent that will die")
    del devices.env["BERTH_CRASH_AT"]
    agent = devices.pid("node")
    job = devices.submit("--gres=gpu:1", "-o", f"{devices.work}/opens.%j", "--wrap", f"sh {devices.opens}")
    until(lambda: started_again(devices, agent), what="a new agent")
    devices.wait_state(job, "COMPLETED")
    assert (devices.work / f"opens.{job}").read_text() == "0.\n"
    devices.wait_idle()
    assert not any(os.path.exists(f"{base}/job_{job}") for base in bases)


@pytest.mark.skipif(V2 is None, reason="no cgroup v2")
@pytest.mark.parametrize("killed", ["job", "step"])
def test_nothing_is_born_into_a_group_that_was_killed(devices, killed):
    """What is born into a group of v2 after its cgroup.kill was written to is killed at birth."""
    devices.wait_idle()
    base = next(base for base in bases_of(devices) if base.startswith(V2) and ".scope" in base)
    devices.wait_idle()
    job = str(int(devices.out("srun", "-n1", "printenv", "SLURM_JOB_ID")) + 1)
    devices.wait_idle()
    # As if something had come to its end there before.
    group = pathlib.Path(base, f"job_{job}")
    if killed == "step":
        group /= "step_batch"
    group.mkdir(parents=True)
    (group / "cgroup.kill").write_text("1")
    assert devices.submit("--gres=gpu:1", "-o", f"{devices.work}/born.%j", "--wrap",
                          f"sh {devices.opens}; srun -n1 sh {devices.opens}") == job
    devices.wait_state(job, "COMPLETED")
    assert (devices.work / f"born.{job}").read_text().split() == ["0.", "0."]
    until(lambda: not os.path.exists(f"{base}/job_{job}"), what="the end of the groups")


# ---- memory and cores ---------------------------------------------------------------------------

def test_a_hog_runs_out_of_memory_and_the_node_lives(limits):
    done = limits.run("srun", "--mem=64", "python3", limits.hog, "300", rc=None)
    assert done.returncode == 1, done
    host = socket.gethostname().split(".")[0]
    assert f"srun: error: {host}: task 0: Out Of Memory" in done.stderr
    job = done.stderr.split("StepId=")[1].split(".")[0]
    assert (f"slurmstepd: error: Detected 1 oom_kill event in StepId={job}.0. "
            "Some of the step tasks have been OOM Killed.") in done.stderr
    assert f"StepId={job}.0 may use 64 MiB of memory on {host}" in done.stderr
    limits.wait_state(job, "OUT_OF_MEMORY")
    rows = limits.out("sacct", "-j", job, "-n", "-P", "-o", "JobID,State,ExitCode").splitlines()
    assert f"{job}.0|OUT_OF_MEMORY|0:125" in rows, rows
    assert f"{job}|OUT_OF_MEMORY|0:125" in rows, rows
    # The same with as much as it needs.
    assert limits.out("srun", "--mem=500", "python3", limits.hog, "300") == str(300 << 20)
    limits.wait_idle()


def test_agents_and_supervisors_are_spared_and_nobody_else(limits):
    """A process that the kernel may not kill would hold its group at the limit for ever."""
    def score(pid):
        return int(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text())
    here = score("self")
    may = limits.run("sh", "-c", "echo -1000 >/proc/self/oom_score_adj", rc=None).returncode == 0
    spared = -1000 if may else here
    job = limits.submit("-o", f"{limits.work}/pid.%j", "--wrap", "echo $$; sleep 300")
    limits.wait_state(job, "RUNNING")
    pid = written(limits.work / f"pid.{job}")
    assert score(limits.pid("node")) == spared
    assert score(parent_of(pid)) == spared
    assert score(pid) == max(0, here)
    limits.run("scancel", job)
    limits.wait_state(job, "CANCELLED")
    assert int((limits.work / f"prolog.{job}").read_text()) == max(0, here)
    # Nor can a user have it back, where root could take it.
    tried = limits.run("srun", "-n1", "sh", "-c", "cat /proc/self/oom_score_adj; echo -1 >/proc/self/oom_score_adj",
                       user="nobody", rc=None)
    assert int(tried.stdout) == max(0, here), tried
    assert tried.returncode != 0 or here < 0 and not may, tried
    limits.wait_idle()


def test_a_script_runs_out_of_memory(limits):
    job = limits.submit("--mem=64", "-o", f"{limits.work}/out.%j", "--wrap", f"exec python3 {limits.hog} 300")
    assert limits.wait_end(job) == "OUT_OF_MEMORY"
    assert limits.field(job, "Reason") == "OutOfMemory"
    limits.wait_idle()
    assert f"oom_kill event in StepId={job}.batch" in (limits.work / f"out.{job}").read_text()
    assert "OOM" in limits.out("sacct", "-j", job, "-X", "-n", "-o", "State%20").replace("OUT_OF_MEMORY", "OOM")


def test_one_hog_takes_its_step_with_it_when_asked(limits):
    script = f"python3 {limits.hog} 300; sleep 600; echo survived"
    killed = limits.run("srun", "--mem=64", "--oom-kill-step", "sh", "-c", script, rc=None)
    assert "survived" not in killed.stdout and killed.returncode != 0, killed
    assert "oom_kill event" in killed.stderr
    lives = limits.run("srun", "--mem=64", "sh", "-c", f"python3 {limits.hog} 300; echo survived", rc=None)
    assert "survived" in lives.stdout and "oom_kill event" in lives.stderr


def test_steps_together_stay_below_their_job(limits):
    job = limits.submit("--mem=100", "-n", "1", "-o", f"{limits.work}/out.%j", "--wrap",
                        f"srun --overlap --mem=0 python3 {limits.hog} 70 && echo one fits; "
                        f"srun --overlap --mem=0 python3 -c 'x = bytearray(70 << 20); import time; time.sleep(5)' & "
                        f"sleep 1; srun --overlap --mem=0 python3 {limits.hog} 70; wait")
    limits.wait_end(job)
    text = (limits.work / f"out.{job}").read_text()
    assert "one fits" in text
    assert "Out Of Memory" in text, text


def test_cores_are_kept(limits):
    if os.cpu_count() < 2:
        pytest.skip("needs two cores")
    script = "taskset -pc 0-$(($(getconf _NPROCESSORS_CONF)-1)) $$ >/dev/null 2>&1; grep Cpus_allowed_list /proc/self/status"
    allowed = limits.out("srun", "-n1", "-c1", "sh", "-c", script).split()[1]
    assert allowed in {str(cpu) for cpu in range(os.cpu_count())}, allowed
    all_of_them = limits.out("srun", "-n1", "-c", str(os.cpu_count()), "sh", "-c", script).split()[1]
    assert all_of_them == f"0-{os.cpu_count() - 1}"


def test_groups_of_limits_go_too(limits):
    job = limits.submit("--gres=gpu:1", "-o", f"{limits.work}/pid.%j", "--wrap", "echo $$; sleep 300")
    limits.wait_state(job, "RUNNING")
    pid = written(limits.work / f"pid.{job}")
    groups = groups_of(pid)
    limits.run("scancel", job)
    limits.wait_state(job, "CANCELLED")
    limits.wait_idle()
    until(lambda: not any(os.path.exists(group) for group in groups), what="the end of the groups")


# ---- files that are copied into a job (sbcast) -------------------------------------------------

def sparse(path, mib):
    """A file that has no memory of its own."""
    with open(path, "wb") as file:
        file.truncate(mib << 20)
    return path


def copied_into(c, *words):
    job = c.submit(*words, "-o", f"{c.work}/copied.%j", "--wrap",
                   f"while [ ! -e {c.work}/go.$SLURM_JOB_ID ]; do sleep 0.05; done; echo lives", user="nobody")
    c.wait_state(job, "RUNNING")
    return job


def test_a_file_that_is_copied_into_a_job_counts_against_its_memory(limits):
    limits.wait_idle()
    large = sparse(limits.work / "large", 300)
    target = pathlib.Path(f"/dev/shm/berth-copied-{os.getpid()}")
    small = copied_into(limits, "--mem=64")
    ample = copied_into(limits, "--mem=500")
    try:
        refused = limits.run("sbcast", "--jobid", small, large, target, user="nobody", rc=1)
        assert "since the memory of the job (--mem) was used up" in refused.stderr, refused
        # Nothing of it stays, and no task of the job has to go for it.
        assert not list(target.parent.glob(f"{target.name}*")) and not list(target.parent.glob(".sbcast*"))
        assert limits.job_state(small) == "RUNNING"
        why = "its receiver was killed, since the memory of the job is used up"
        said = f"sbcast to job {small} on {socket.gethostname().split('.')[0]}: {why}"
        until(lambda: said in (limits.state / "log/node.log").read_text(), what="the agent says so")
        limits.run("sbcast", "--jobid", ample, large, target, user="nobody")
        assert target.stat().st_size == 300 << 20
    finally:
        target.unlink(missing_ok=True)
        for job in (small, ample):
            (limits.work / f"go.{job}").touch()
    for job in (small, ample):
        limits.wait_state(job, "COMPLETED")
        assert (limits.work / f"copied.{job}").read_text() == "lives\n"
    limits.wait_idle()


def test_a_file_that_is_copied_to_a_disk_needs_no_more_memory_than_the_job_has(limits):
    kind = limits.out("stat", "-f", "-c", "%T", limits.work)
    if kind in ("tmpfs", "ramfs"):
        pytest.skip(f"the files of this machine are in memory ({kind})")
    job = copied_into(limits, "--mem=64")
    data = os.urandom(1 << 20) * 200
    (limits.work / "data").write_bytes(data)
    limits.run("sbcast", "--jobid", job, limits.work / "data", limits.work / "disk", user="nobody")
    assert (limits.work / "disk").read_bytes() == data
    (limits.work / f"go.{job}").touch()
    limits.wait_state(job, "COMPLETED")
    limits.wait_idle()


def test_who_receives_a_file_is_in_groups_of_the_job(limits):
    job = copied_into(limits, "--mem=64")
    client = limits.popen("sbcast", "--jobid", job, sparse(limits.work / "endless", 16 << 10), limits.work / "endless.copy",
                          user="nobody")
    try:
        # Before it opens the file it is where it belongs.
        pid = until(lambda: next((pid for pid, files in receivers_of(job).items() if files), None), what="a receiver that writes")
        client.send_signal(signal.SIGSTOP)
        groups = groups_of(pid)
        assert {group.split("/job_")[1] for group in groups if "/job_" in group} == {f"{job}/step_sbcast_1"}, groups
        # As many hierarchies as a task of the job is in, so cores, devices and processes are limited, too.
        groups = [group for group in groups if "/job_" in group]
        assert len(groups) == len(hierarchies_of(limits, job)), groups
        assert int(pathlib.Path(f"/proc/{pid}/status").read_text().split("Uid:")[1].split()[0]) != 0
        most = [int(pathlib.Path(group, name).read_text()) for group in groups
                for name in ("memory.max", "memory.limit_in_bytes") if pathlib.Path(group, name).exists()]
        assert most == [64 << 20], most
        assert int(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text()) == 1000
        limits.run("scancel", job)
        limits.wait_state(job, "CANCELLED")
        limits.wait_idle()
        assert not os.path.exists(f"/proc/{pid}")
        until(lambda: not any(os.path.exists(os.path.dirname(group)) for group in groups), what="the end of the groups")
        client.send_signal(signal.SIGCONT)
        client.communicate(timeout=60)
        assert client.returncode == 1 and not (limits.work / "endless.copy").exists()
    finally:
        client.kill()
        limits.run("scancel", job, rc=None)


# ---- processes ----------------------------------------------------------------------------------

# Starts processes until it may not any more, then lets them all go: never more than it is told to.
FORKS = """
import os, signal, sys, time
most, started, refused = int(sys.argv[1]), [], ""
for _ in range(most):
    try:
        pid = os.fork()
    except OSError as error:
        refused = os.strerror(error.errno)
        break
    if pid == 0:
        signal.alarm(30)
        time.sleep(60)
        os._exit(0)
    started.append(pid)
for pid in started:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print(len(started), refused)
"""


@pytest.mark.skipif(not can_limit("pids"), reason="nothing limits processes here")
@pytest.mark.parametrize("conf", ["", "ConstrainDevices=yes\n"])
def test_a_step_that_goes_on_starting_processes_meets_its_limit(conf):
    with fenced(conf, more="SlurmdParameters=max_step_pids=40\n") as c:
        bases = bases_of(c)
        forks = c.work / "forks.py"
        forks.write_text(FORKS)
        neighbour = c.popen("srun", "-n1", "--mem=50", "sh", "-c", "sleep 300")
        until(lambda: "R" in c.out("squeue", "-h", "-o", "%t").split(), what="the neighbour")
        done = c.run("srun", "-n1", "--mem=50", "/usr/bin/python3", forks, 200, user="nobody")
        started, why = done.stdout.split(maxsplit=1)
        assert 30 <= int(started) < 40 and why.strip() == "Resource temporarily unavailable", done.stdout
        line = "may have 40 processes and threads on " + socket.gethostname().split(".")[0]
        assert line in done.stderr and "1 more could not be started" in done.stderr and "max_step_pids" in done.stderr
        # The node is none the worse for it, nor are other steps, and a step within its limit is told nothing.
        assert neighbour.poll() is None
        done = c.run("srun", "-n1", "--mem=50", "/usr/bin/python3", forks, 20, user="nobody")
        assert done.stdout == "20 \n" and done.stderr == "", done
        assert c.out("sinfo", "-h", "-R") == ""
        # Of a script it is in its output, and the steps it starts have a limit of their own.
        script = c.work / "script.sh"
        script.write_text(f"#!/bin/sh\n/usr/bin/python3 {forks} 200\nsrun -n1 --mem=50 /usr/bin/python3 {forks} 20\n")
        job = c.submit("--mem=100", "-o", c.work / "script.out", script)
        assert c.wait_end(job) == "COMPLETED"
        told = (c.work / "script.out").read_text()
        assert "Resource temporarily unavailable" in told and "20 \n" in told, told
        assert f"StepId={job}.batch may have 40 processes" in told, told
        c.run("scancel", c.out("squeue", "-h", "-o", "%i"))
        neighbour.communicate(timeout=60)
        c.wait_idle()
        left = [group for base in bases for group in pathlib.Path(base.split("/uid_")[0]).glob("**/job_*")]
        assert not left, left


MOST_PROCESSES = """
import pathlib
for line in open("/proc/self/cgroup"):
    _, names, group = line.strip().split(":", 2)
    mount = {{"pids": {v1!r}, "": {v2!r}}}.get(names)
    file = pathlib.Path(f"{{mount}}{{group}}/pids.max")
    if mount and file.exists():
        print(file.read_text().strip())
"""


@pytest.mark.skipif(not can_limit("pids"), reason="nothing limits processes here")
def test_processes_of_a_step_are_limited_by_default():
    with fenced("") as c:
        program = c.work / "most.py"
        program.write_text(MOST_PROCESSES.format(v1=V1.get("pids"), v2=V2))
        most = ("srun", "-n1", "--mem=50", "/usr/bin/python3", program)
        machine = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text())
        expected = min(max(4096, 512 * 1), machine // 4)
        assert c.out(*most) == str(expected)
        c.conf.write_text(c.conf.read_text() + "SlurmdParameters=max_step_pids=0\n")
        c.run("scontrol", "reconfigure")
        until(lambda: c.out(*most) != str(expected), what="no limit")
        assert "/job_" not in c.out("srun", "-n1", "--mem=50", "grep", ":pids:", "/proc/self/cgroup", rc=None) or "pids" not in V1


# ---- what cannot be had -------------------------------------------------------------------------

@pytest.mark.parametrize("plugin", [
    pytest.param("cgroup/v1", marks=pytest.mark.skipif("memory" in V1, reason="cgroup v1 limits memory here")),
    pytest.param("cgroup/v2", marks=pytest.mark.skipif("memory" in V2_HAS, reason="cgroup v2 limits memory here"))])
def test_a_fence_that_cannot_be_had_is_said(plugin):
    with fenced(f"CgroupPlugin={plugin}\nConstrainRAMSpace=yes\n") as c:
        reason = until(lambda: c.out("sinfo", "-h", "-R", "-o", "%E"), what="a reason")
        assert "ConstrainRAMSpace" in reason and f"cannot be done by CgroupPlugin={plugin}" in reason
        host = socket.gethostname().split(".")[0]
        shown = c.out("scontrol", "show", "node", host)
        assert "DRAIN" in shown and "ConstrainRAMSpace" in shown
        job = c.submit("--gres=gpu:1", "--wrap", "true", "-o", "/dev/null")
        time.sleep(1)
        assert c.job_state(job) == "PENDING"
        c.run("scancel", job)


class Confined(Cluster):
    """Daemons of root's that may not load programs of bpf(2)."""

    def up(self, *words, timeout=120):
        return self.call(["setpriv", "--bounding-set=-bpf,-sys_admin", bin_dir() / "berth", "up", "--state", self.state, *words],
                         timeout=timeout)


CANNOT = {
    # Who may not load programs cannot fence by cgroup v2.
    "bpf": ("CgroupPlugin=cgroup/v2\nConstrainDevices=yes\n", None, Confined, "no device program can be loaded (bpf)"),
    # Whose file nobody knows cannot be kept from anybody.
    "files": ("ConstrainDevices=yes\n", "AutoDetect=off\nName=gpu Count=4\n", Cluster, "no file of GPU 0 is known"),
}


@pytest.mark.parametrize("how", CANNOT)
def test_a_node_that_cannot_fence_devices_refuses_gpu_jobs(how):
    cgroup_conf, gres_conf, kind, why = CANNOT[how]
    if how == "bpf" and V2 is None:
        pytest.skip("no cgroup v2")
    with fenced(cgroup_conf, gres_conf=gres_conf, kind=kind) as c:
        until(lambda: why in c.out("sinfo", "-h", "-R", "-o", "%E"), what=f"the node says: {why}")
        assert "drain" in c.out("sinfo", "-h", "-o", "%T")
        job = c.submit("--gres=gpu:1", "--wrap", "true", "-o", "/dev/null")
        time.sleep(1)
        assert c.job_state(job) == "PENDING"
        c.run("scancel", job)
        # Somebody who puts it back into service does not make it run GPU jobs unfenced.
        host = socket.gethostname().split(".")[0]
        c.run("scontrol", "update", f"node={host}", "state=resume")
        assert c.out("srun", "-n1", "echo", "runs") == "runs"
        refused = c.run("srun", "-n1", "--gres=gpu:1", "sh", c.opens, rc=None)
        assert refused.returncode != 0 and refused.stdout == "", refused
        assert f"node {host} cannot keep jobs to their GPUs" in refused.stderr and why in refused.stderr, refused


def test_a_fence_can_be_asked_for_while_all_runs():
    with fenced("ConstrainDevices=no\n") as c:
        assert "memory and devices of a job are counted, not fenced" in c.up_text
        assert c.out("srun", "--gres=gpu:1", "sh", c.opens) == "0123."
        (c.state / "cgroup.conf").write_text("ConstrainDevices=yes\n")
        c.run("scontrol", "reconfigure")
        c.wait_idle()

        def kept():
            c.wait_idle()
            return c.out("srun", "--gres=gpu:1", "sh", "-c", f"sh {c.opens}; echo $CUDA_VISIBLE_DEVICES") == "0.\n0"
        until(kept, what="a fence")


@pytest.mark.parametrize("plugin", PLUGINS)
def test_pretended_nodes_fence_the_devices_that_are_there(tmp_path, plugin):
    os.chmod(tmp_path, 0o755)
    for index, minor in enumerate(MINORS[:2]):
        os.mknod(tmp_path / f"gpu{index}", 0o666 | stat.S_IFCHR, os.makedev(1, minor))
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "slurm.conf").write_text(
        "ClusterName=pretended\nSlurmctldHost=h\nGresTypes=gpu\nTaskPlugin=task/cgroup\n"
        "SelectTypeParameters=CR_Core_Memory\nDefMemPerNode=100\n"
        "NodeName=n[1-2] CPUs=4 RealMemory=8000 Gres=gpu:2\nNodeName=n3 CPUs=4 RealMemory=8000 Gres=gpu:2\n"
        "PartitionName=main Nodes=ALL Default=YES\n")
    (conf / "gres.conf").write_text(f"NodeName=n[1-2] Name=gpu File={tmp_path}/gpu[0-1]\n"
                                    "NodeName=n3 Name=gpu File=/dev/no-such-gpu[0-1]\n")
    (conf / "cgroup.conf").write_text(f"CgroupPlugin={plugin}\nConstrainDevices=yes\nConstrainRAMSpace=yes\n")
    script = f"for i in 0 1; do (exec 3<{tmp_path}/gpu$i) 2>/dev/null && printf $i; done; echo ."
    with Cluster(emulate=conf) as c:
        assert c.out("srun", "-w", "n2", "--gres=gpu:1", "sh", "-c", script) == "0."
        assert c.out("srun", "-w", "n1", "sh", "-c", script) == "."
        # A job has them on each of its nodes.
        assert c.out("srun", "-w", "n[1-2]", "--gres=gpu:1", "sh", "-c", script).split() == ["0.", "0."]
        (c.work / "file").write_text("whole")
        c.run("salloc", "-w", "n[1-2]", "sbcast", "-f", c.work / "file", c.work / "copy")
        assert (c.work / "copy").read_text() == "whole"
        # What is not there needs no fence, and nothing is drained for it.
        assert c.out("srun", "-w", "n3", "--gres=gpu:1", "echo", "runs") == "runs"
        assert c.out("sinfo", "-h", "-R") == ""


def test_limits_need_cgroups():
    c = Cluster(emulate="1x1:a100")
    with c:
        (c.state / "cgroup.conf").write_text("CgroupPlugin=disabled\nConstrainDevices=yes\n")
        done = c.run("scontrol", "reconfigure", rc=None)
        assert done.returncode != 0
        assert "cgroup.conf:2: ConstrainDevices=yes needs cgroups" in done.stdout + done.stderr, done
