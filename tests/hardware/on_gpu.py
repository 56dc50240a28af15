"""berth on a machine with a real GPU: found, fenced, watched. tests/hardware/run.sh calls it.

Each check prints one line; the exit code is the number of those that failed."""

import contextlib
import json
import os
import pathlib
import pwd
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
USERS = ("berthone", "berthtwo")

LOAD = """
import sys, time, torch
seconds, gigabytes = float(sys.argv[1]), int(sys.argv[2])
held = torch.empty(gigabytes << 30, dtype=torch.uint8, device="cuda")
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
end = time.time() + seconds
while time.time() < end:
    for _ in range(20):
        a = (a @ a).clamp(-1, 1)
    torch.cuda.synchronize()
print("done", torch.cuda.device_count(), float(a.float().abs().mean()) >= 0)
"""

# What a step may add to a program, in ms: 3.5 and 13 were seen on the H200 (docs/hardware/h200.log).
MOST_STEP_MS, MOST_CUDA_STEP_MS = 20, 60

FAULT = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDeviceGet(ctypes.byref(device), 0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device)
code = b".version 7.0\\n.target sm_50\\n.address_size 64\\n.visible .entry bad() { .reg .b64 %a; .reg .b32 %v; " \\
       b"mov.u64 %a, 64; mov.u32 %v, 1; st.global.u32 [%a], %v; ret; }"
print(cuda.cuModuleLoadData(ctypes.byref(module), code), cuda.cuModuleGetFunction(ctypes.byref(function), module, b"bad"),
      cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None), cuda.cuCtxSynchronize())
"""

HOG = "b = bytearray(2 << 30)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint('not stopped')\n"

SPREAD = """
import os
try:
    os.sched_setaffinity(0, range(os.cpu_count()))
except OSError:
    pass
print(len(os.sched_getaffinity(0)))
"""


class Checks:
    def __init__(self, log):
        self.log, self.failed = log, 0

    def say(self, text):
        print(text, flush=True)
        self.log.write(text + "\n")
        self.log.flush()

    def check(self, what, good, figure=""):
        self.failed += 0 if good else 1
        self.say(f"{'ok    ' if good else 'FAILED'} {what}{': ' if figure != '' else ''}{figure}")


class Site:
    """berth's daemons on this machine, from a folder of their own."""

    def __init__(self, programs, folder, conf=None):
        self.bin, self.state = programs, folder
        self.env = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": "/root", "SLURM_CONF": str(folder / "slurm.conf")}
        for name in ("LD_LIBRARY_PATH", "CUDA_HOME"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        if conf:
            folder.mkdir(parents=True)
            for name, text in conf.items():
                (folder / name).write_text(text)

    def __enter__(self):
        done = self.call("berth", "up", "--state", self.state, timeout=120)
        if done.returncode != 0:
            raise SystemExit(f"berth up: {done.stdout}{done.stderr}{self.logs()}")
        self.up_text = done.stdout
        return self

    def __exit__(self, *_):
        self.call("berth", "down", "--state", self.state, timeout=120)

    def logs(self):
        out = ""
        for path in sorted((self.state / "log").glob("*.log")):
            out += f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-40:]) + "\n"
        return out

    def words(self, words, user):
        words = [str(word) for word in words]
        return ["runuser", "-u", user, "--", *words] if user else words

    def call(self, *words, user=None, timeout=90):
        return subprocess.run(self.words(words, user), env=self.env, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, cwd="/tmp")

    def start(self, *words, user=None):
        return subprocess.Popen(self.words(words, user), env=self.env, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/tmp")

    def out(self, *words, **options):
        return self.call(*words, **options).stdout.strip()


def nvidia_smi(fields):
    text = subprocess.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"], text=True,
                          stdout=subprocess.PIPE, check=True).stdout
    return [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]


def probes(text):
    """What the probes in an output said, by rank."""
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return sorted(found, key=lambda one: int(one["rank"] or 0))


def works(probe):
    return all(probe.get(key) == 0 for key in ("cuInit", "context", "alloc", "memset", "synchronize"))


def discovery(c, programs, results):
    site = Site(programs, pathlib.Path("/none"))
    shown = json.loads(site.out("berth", "hardware", "--json"))
    (results / "topology").write_text(site.out("berth", "hardware", "--record") + "\n")
    c.say(site.out("berth", "hardware"))
    smi = nvidia_smi("uuid,pci.bus_id,memory.total,name")
    c.check("as many GPUs as nvidia-smi counts", len(shown["gpus"]) == len(smi), f"{len(shown['gpus'])}")
    for gpu, (uuid, bus, memory, name) in zip(shown["gpus"], smi):
        c.check("the same UUID, bus, memory and model",
                gpu["uuid"] == uuid and bus.lower().endswith(gpu["bus"]) and abs(gpu["memory_mb"] - int(memory)) <= 1
                and gpu["model"] == name, f"{gpu['uuid']} {gpu['bus']} {gpu['memory_mb']} MiB {gpu['model']} ({gpu['type']})")
    times = []
    for _ in range(5):
        begun = time.monotonic()
        site.call("berth-nvml", "list")
        times.append((time.monotonic() - begun) * 1000)
    c.say(f"       berth-nvml list takes {min(times):.0f} ms here")
    return shown


def watching_cost(c, programs):
    watch = subprocess.Popen([programs / "berth-nvml", "watch", "--every", "1s"], stdout=subprocess.PIPE)
    reader = threading.Thread(target=watch.stdout.read)
    reader.start()
    time.sleep(3)

    def used():
        stat = pathlib.Path(f"/proc/{watch.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    before, begun = used(), time.monotonic()
    time.sleep(20)
    percent = 100 * (used() - before) / (time.monotonic() - begun)
    watch.kill()
    reader.join()
    watch.wait()
    c.say(f"       watching costs {percent:.2f} % of one core here")


def configuration(programs, shown):
    line = Site(programs, pathlib.Path("/none")).out("berthd", "-C").splitlines()[0]
    node = re.search(r"NodeName=(\S+)", line).group(1)
    types = {}
    for gpu in shown["gpus"]:
        types[gpu["type"]] = types.get(gpu["type"], 0) + 1
    gres = ",".join(f"gpu:{kind}:{count}" for kind, count in types.items()) + f",shard:{4 * len(shown['gpus'])}"
    line = re.sub(r" Gres=\S+", "", line) + f" Gres={gres}"
    return {
        "slurm.conf": f"ClusterName=hardware\nSlurmctldHost={node}\nSlurmUser=root\nGresTypes=gpu,shard,gpumem\n"
                      "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\n"
                      "TaskPlugin=task/affinity,task/cgroup\nJobAcctGatherFrequency=task=1\nReturnToService=2\nSlurmdParameters=gpu_mem=kill\n"
                      "AccountingStorageTRES=gres/gpu,gres/gpumem\n"
                      f"{line}\nPartitionName=main Nodes=ALL Default=YES\n",
        "gres.conf": "AutoDetect=nvml\nName=shard\n",
        "cgroup.conf": "ConstrainDevices=yes\nConstrainRAMSpace=yes\nConstrainCores=yes\n",
    }


def fence(c, site, probe, uuid):
    one = probes(site.out("srun", "-n1", "--mem=8G", "--gpus-per-task=1", *probe))
    c.check("a step with a GPU uses it", len(one) == 1 and works(one[0]) and one[0]["count"] == 1
            and one[0]["uuid"] == uuid and one[0]["nvidia0"] == "opens", one)
    none = probes(site.out("srun", "-n1", "--mem=8G", *probe))
    c.check("a step without GPUs cannot open it: cuInit fails",
            len(none) == 1 and none[0]["nvidia0"] == "EPERM" and none[0]["cuInit"] != 0, none)
    holder = site.start("srun", "-n1", "--mem=8G", "--gpus=1", *probe, "15", user=USERS[0])
    first = json.loads(holder.stdout.readline() or "{}")
    other = probes(site.out("srun", "-n1", "--mem=8G", *probe, user=USERS[1]))
    holder.wait()
    c.check("a user has the GPU, another one beside him cannot open it",
            works(first) and len(other) == 1 and other[0]["nvidia0"] == "EPERM" and other[0]["cuInit"] != 0,
            f"{USERS[0]}: cuInit {first.get('cuInit')}, {USERS[1]}: {other}")
    words = " ".join(map(str, probe))
    inside = site.call("srun", "-n1", "--mem=8G", "sh", "-c", f"setsid -w {words}; (setsid -w {words} & wait) & wait")
    found = [one["nvidia0"] for one in probes(inside.stdout)]
    c.check("setsid, fork and double fork do not get out", found == ["EPERM"] * 2, f"{found} {inside.stderr.strip()}")


def shards(c, site, probe):
    four = probes(site.out("srun", "-n4", "--mem=16G", "--gres=shard:4", *probe, "3"))
    c.check("four tasks share the GPU by shards", len(four) == 4 and all(map(works, four)),
            f"{[(p['rank'], p['visible'], p.get('count')) for p in four]}")
    begun = time.monotonic()
    together = [site.start("srun", "-n1", "--mem=4G", "--gres=shard:2", *probe, "8") for _ in range(2)]
    texts = [one.communicate()[0] for one in together]
    seconds = time.monotonic() - begun
    c.check("two jobs of two shards run side by side", all(works(probes(t)[0]) for t in texts if probes(t))
            and all(map(probes, texts)) and seconds < 15, f"{seconds:.1f} s for two of 8 s")


def wait_for(done, seconds):
    """Whether it came true, and after how long."""
    begun = time.monotonic()
    while not done() and time.monotonic() - begun < seconds:
        time.sleep(0.2)
    return bool(done()), time.monotonic() - begun


def state_of(site, job):
    return site.out("sacct", "-n", "-X", "-P", "-j", job, "-o", "State")


def parts(c, site, python, load):
    """--gpu-mem, where who has more is ended."""
    outputs = [pathlib.Path(f"/tmp/berth-part-{name}.out") for name in ("modest", "greedy")]
    for path in outputs:
        path.unlink(missing_ok=True)

    def start(path, asked, seconds, gigabytes):
        return site.out("sbatch", "--parsable", "-n1", "--mem=16G", f"--gpu-mem={asked}", "-o", path, "--wrap",
                        f"{python} {load} {seconds} {gigabytes}")

    modest = start(outputs[0], "20G", 45, 10)
    wait_for(lambda: int(nvidia_smi("memory.used")[0][0]) > 10000, 60)
    greedy = start(outputs[1], "4G", 45, 8)
    used = site.out("scontrol", "-d", "show", "node").partition("GresUsed=")[2].split()
    c.check("two jobs share the GPU by its memory", "24576" in used[0], used[0])
    ended, seconds = wait_for(lambda: "OUT_OF_MEMORY" in state_of(site, greedy), 60)
    said = outputs[1].read_text().strip().splitlines()
    c.check("the one with more than it asked for is named and ended", ended and any("were asked for" in line for line in said),
            f"{state_of(site, greedy)}; {[line for line in said if 'GPU' in line][:2]}")
    told = [line for line in outputs[0].read_text().splitlines() if f"job {greedy} " in line]
    c.check("the other one is told, and runs on", told and "RUNNING" in site.out("squeue", "-h", "-j", modest, "-o", "%T"), told[:1])
    ours, theirs = site.out("berth", "efficiency", modest).splitlines()[-1].strip(), nvidia_smi("memory.used")[0][0]
    c.say(f"       {ours}; nvidia-smi {theirs} MiB")
    site.call("scancel", modest)
    wait_for(lambda: not site.out("squeue", "-h"), 30)


def idle(c, site, probe):
    job = site.out("sbatch", "--parsable", "-n1", "--gpus=1", "--mem=8G", "--gpu-idle-timeout=20s", "-o", "/tmp/berth-idle.out",
                   "--wrap", " ".join(map(str, [*probe, "300"])))
    ended, seconds = wait_for(lambda: "TIMEOUT" in state_of(site, job), 90)
    lines = [line for line in pathlib.Path("/tmp/berth-idle.out").read_text().splitlines() if "idle" in line.lower()]
    c.check("a job that does not use its GPU for 20 s is warned and ended", ended and lines, f"after {seconds:.0f} s; {lines[:3]}")


def health(c, site, python, probe, folder):
    out = lambda: site.out("scontrol", "-d", "show", "node").partition("GPUsOut=")[2].splitlines()
    wait_for(lambda: not site.out("squeue", "-h") and not out(), 30)
    stranger = subprocess.Popen([*map(str, probe), "60"], stdout=subprocess.DEVNULL)
    taken, seconds = wait_for(lambda: out() and str(stranger.pid) in out()[0], 20)
    c.check("a stranger's process on the free GPU is named, and the GPU kept back", taken, f"after {seconds:.1f} s: {out()[:1]}")
    stranger.kill()
    stranger.wait()
    back, seconds = wait_for(lambda: not out(), 20)
    c.check("and it comes back when that is gone", back, f"after {seconds:.1f} s")
    (folder / "fault.py").write_text(FAULT)
    codes = site.out("srun", "-n1", "--mem=8G", "--gpus=1", python, folder / "fault.py")
    log = lambda: "".join(path.read_text(errors="replace") for path in (site.state / "log").glob("*.log"))
    heard, seconds = wait_for(lambda: "reports Xid" in log(), 10)
    xid = re.search(r"GPU \d+ reports Xid \d+", log())
    c.check("an Xid that is a program's fault is heard", heard, f"{xid.group(0) if xid else codes}")
    c.check("and the GPU stays in service", not out() and works((probes(site.out("srun", "-n1", "--mem=8G", "--gpus=1", *probe)) or [{}])[0]),
            str(out()))


def limits(c, site, python):
    done = site.call("srun", "-n1", "--mem=300M", python, "-c", HOG)
    job = site.out("sacct", "-n", "-X", "-P", "-o", "JobID,State").splitlines()[-1]
    c.check("memory.max holds: a task that takes 2 GiB of its 300 MiB ends OUT_OF_MEMORY",
            "not stopped" not in done.stdout and "OUT_OF_MEMORY" in job, f"{job}; {done.stderr.strip().splitlines()[:2]}")
    c.check("the node is in service", site.out("sinfo", "-h", "-o", "%T") in ("idle", "mixed", "completing"))
    cpus = site.out("srun", "-n1", "-c2", "--mem=1G", python, "-c", SPREAD)
    threads = int(re.search(r"ThreadsPerCore=(\d+)", (site.state / "slurm.conf").read_text()).group(1))
    c.check("cpuset holds: a task of two CPUs has no more, whatever it asks for", cpus == str(max(2, threads)), cpus)


def efficiency(c, site, python, torch_load):
    run = site.start("srun", "-n1", "--gpus-per-task=1", "--mem=32G", "--job-name=load", python, torch_load, "40", "30")
    wait_for(lambda: site.out("squeue", "-h", "-n", "load", "-t", "R"), 30)
    job = site.out("squeue", "-h", "-n", "load", "-t", "R", "-o", "%i")
    if not job:
        run.kill()
        return c.check("a PyTorch step begins", False, run.communicate()[0][-300:])
    until = time.monotonic() + 60
    while int(nvidia_smi("memory.used")[0][0]) < 30000 and time.monotonic() < until:
        time.sleep(0.5)
    time.sleep(3)
    memory, busy = [], []
    before = json.loads(site.out("berth", "efficiency", "--json", job))["jobs"][0]["gpus"][0]
    for _ in range(20):
        used, percent = map(int, nvidia_smi("memory.used,utilization.gpu")[0])
        memory.append(used)
        busy.append(percent)
        time.sleep(1)
    after = json.loads(site.out("berth", "efficiency", "--json", job))["jobs"][0]["gpus"][0]
    rounds = after["rounds"] - before["rounds"]
    mean = (after["busy_percent"] * after["rounds"] - before["busy_percent"] * before["rounds"]) / max(rounds, 1)
    seen = statistics.mean(busy)
    c.check("GPU memory within 10 % of nvidia-smi's", abs(after["memory_now_mb"] - memory[-1]) <= 0.1 * memory[-1],
            f"{after['memory_now_mb']} MiB, nvidia-smi {memory[-1]} MiB")
    c.check("utilisation within 10 % of nvidia-smi's", abs(mean - seen) <= 0.1 * max(seen, 1),
            f"{mean:.1f} % over {rounds} looks, nvidia-smi {seen:.1f} %")
    c.say(site.out("berth", "efficiency", job))
    live = site.out("sstat", "-n", "-P", "-j", f"{job}.0", "-o", "TRESUsageInMax")
    told = dict(item.split("=") for item in live.split(",") if "=" in item)
    c.check("sstat tells the same of the step that runs", "gres/gpumem" in told and "gres/gpuutil" in told, live)
    joules = told.get("energy", "0")
    c.check("and what the GPU has taken", int(joules) > 0, f"energy={joules}")
    said = run.communicate(timeout=120)[0].strip()
    c.check("the PyTorch step of srun --gpus-per-task=1 ended well", run.returncode == 0 and "done 1 True" in said, said[-200:])
    c.say(site.out("berth", "efficiency", job))


def overhead(c, site, probe):
    """What srun adds to a program that makes a CUDA context, in an allocation that is there."""
    script = pathlib.Path("/tmp/berth-overhead.py")
    script.write_text(
        "import json, statistics, subprocess, time\n"
        f"probe = {json.dumps([str(word) for word in probe])}\n"
        "def ms(words):\n"
        "    begun = time.monotonic()\n"
        "    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)\n"
        "    return (time.monotonic() - begun) * 1000\n"
        "plain, bound, step, true, empty = [], [], [], [], []\n"
        "for _ in range(10):\n"
        "    plain.append(ms(probe))\n"
        "    bound.append(ms(['taskset', '-c', '0', *probe]))\n"
        "    step.append(ms(['srun', '-n1', '--gpus-per-task=1', *probe]))\n"
        "    true.append(ms(['true']))\n"
        "    empty.append(ms(['srun', '-n1', '--gpus-per-task=1', 'true']))\n"
        "print(json.dumps([statistics.median(x) for x in (plain, bound, step, true, empty)]))\n")
    text = site.out("salloc", "-Q", "-n1", "--gpus-per-task=1", "--mem=8G", sys.executable, script, timeout=300)
    try:
        plain, bound, step, true, empty = json.loads(text.splitlines()[-1])
    except (IndexError, ValueError):
        return c.check("the cost of a step", False, text[-300:])
    # A CUDA context takes 300 to 400 ms, and varies by tens: what the step adds is seen by `true`, and must not be much more there.
    c.check(f"a step adds less than {MOST_STEP_MS} ms, and to a CUDA program less than {MOST_CUDA_STEP_MS} ms",
            empty - true < MOST_STEP_MS and step - bound < MOST_CUDA_STEP_MS,
            f"{step:.0f} ms and {plain:.0f} ms; by itself on one CPU, as in the step, {bound:.0f} ms; "
            f"`true` in a step and by itself: {empty:.1f} and {true:.1f} ms")


def main():
    programs, results = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    if os.geteuid() != 0:
        raise SystemExit("as root: users are switched and devices fenced")
    results.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="berth-hardware-", dir="/tmp"))
    folder.chmod(0o755)
    # Where every user may read it.
    shutil.copytree(programs, folder / "bin", symlinks=True)
    for path in (HERE / "probe.py",):
        shutil.copy(path, folder)
    (folder / "load.py").write_text(LOAD)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755)
    for user in USERS:
        with contextlib.suppress(KeyError):
            pwd.getpwnam(user)
            continue
        subprocess.run(["useradd", "-m", user], check=True)
    python = sys.executable
    probe = [python, folder / "probe.py"]
    with open(results / "log", "w") as log:
        c = Checks(log)
        smi = subprocess.run(["nvidia-smi", "-L"], text=True, stdout=subprocess.PIPE).stdout.strip()
        c.say(f"{os.uname().sysname} {os.uname().release}, {os.cpu_count()} CPUs, {smi.split(' (')[0]}")
        shown = discovery(c, folder / "bin", results)
        with Site(folder / "bin", folder / "plain") as site:
            c.say(site.up_text.strip())
            node = site.out("scontrol", "-o", "show", "node")
            c.check("berth up finds the GPU without configuration", "Gres=gpu:" in node,
                    re.search(r"Gres=\S+", node).group(0))
            c.check("and runs a CUDA program on it", works((probes(site.out("srun", "--gpus=1", *probe)) or [{}])[0]))
        watching_cost(c, folder / "bin")
        with Site(folder / "bin", folder / "fenced", configuration(folder / "bin", shown)) as site:
            time.sleep(1)
            state = site.out("sinfo", "-h", "-o", "%T %E")
            c.check("the fenced node is in service", state.startswith("idle"), state)
            try:
                fence(c, site, probe, shown["gpus"][0]["uuid"])
                shards(c, site, probe)
                limits(c, site, python)
                overhead(c, site, probe)
                efficiency(c, site, python, folder / "load.py")
                parts(c, site, python, folder / "load.py")
                idle(c, site, probe)
                health(c, site, python, probe, folder)
            except Exception as error:  # the rest of the log is worth having
                c.check("the checks went through", False, repr(error))
            if c.failed:
                c.say(site.logs())
        left = subprocess.run(["pgrep", "-f", str(folder)], text=True, stdout=subprocess.PIPE).stdout.split()
        c.check("nothing is left", not left, left if left else "")
        c.say(f"{c.failed} checks failed")
    shutil.rmtree(folder, ignore_errors=True)
    return min(c.failed, 100)


if __name__ == "__main__":
    sys.exit(main())
