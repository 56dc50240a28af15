"""What is measured, by the row numbers of docs/performance.md. Each takes a running System and returns figures by name:
times in milliseconds, sizes in KiB or MB as named. Smaller is better, but for names that end in "/s".

Most rows are the scripts in bench/scripts, which run on anything that has Slurm's commands; what they print is read here."""

import concurrent.futures
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "scripts"
USER = os.environ.get("USER", "root")
median = statistics.median


def script(system, name, *words, **more):
    """Runs one of bench/scripts on the system and returns what it printed."""
    env = system.script_environment() | more
    done = subprocess.run([sys.executable, str(SCRIPTS / name), *map(str, words)], env=env, cwd=system.dir, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=system.enter, timeout=1800)
    print(f"-- {system.name}: {name} {' '.join(map(str, words))}\n{done.stdout}", file=sys.stderr, flush=True)
    if done.returncode != 0 or re.search(r"\bbad [1-9]", done.stdout):
        raise RuntimeError(f"{system.name}: {name} failed:\n{done.stdout}")
    return done.stdout


def number(pattern, text):
    found = re.search(pattern, text)
    if not found:
        raise RuntimeError(f"no {pattern!r} in:\n{text}")
    return float(found.group(1))


def small_reply(system, size):
    """1: commands with a small reply, beside a process that does nothing."""
    figures = {"1 /bin/true: CPU": median([system.spawn_command("/bin/true")[1] for _ in range(40)]) * 1e3}
    system.run("sbatch", "-o", "/dev/null", "-H", "--wrap", "true")
    for words in (["squeue"], ["sinfo"], ["scontrol", "show", "job"], ["scontrol", "show", "node"]):
        system.run(*words)
        figures[f"1 {' '.join(words)}: CPU"] = median([system.spawn_command(*words)[1] for _ in range(40)]) * 1e3
    for words in (["squeue", "-i", "60"], ["sinfo", "-i", "60"]):
        figures[f"1 {words[0]}: RSS, MB"] = system.largest_rss(*words) / 1024
    system.run("scancel", "-u", USER)
    system.wait_empty()
    return figures


def submit(system, size):
    """2: submission of held jobs."""
    text = script(system, "bench_submit.py", size)
    line = re.search(r"submit sequential.*", text).group(0)
    parallel = re.search(r"submit 4 parallel.*", text).group(0)
    return {"2 sbatch: CPU in all": number(r"cgroup cpu ([\d.]+)s", line) / size * 1e3,
            "2 sbatch: CPU of the command": number(r"sbatch cpu ([\d.]+) ms", line),
            "2 sbatch: CPU of the controller": number(r"ctld cpu ([\d.]+) ms", line),
            "2 sbatch, one after the other/s": number(r"([\d.]+) jobs/s", line),
            "2 sbatch, 4 at a time/s": number(r"([\d.]+) jobs/s", parallel),
            "2 sbatch --array: CPU of the controller": number(r"ctld cpu ([\d.]+) ms rc 0", text)}


def batch_job(system, size):
    """3: from the first submission to the empty queue."""
    system.wait_idle()
    text = script(system, "bench_throughput.py", size, 4)
    singles = re.search(r"throughput 4-parallel.*", text).group(0)
    array = re.search(r"throughput job array.*", text).group(0)
    return {"3 batch job: CPU in all": number(r"cgroup cpu ([\d.]+)", singles),
            "3 batch job/s": number(r"= ([\d.]+) jobs/s", singles),
            "3 element of an array: CPU in all": number(r"cgroup cpu ([\d.]+)", array),
            "3 element of an array/s": number(r"= ([\d.]+) jobs/s", array)}


def steps(system, size):
    """4, 5, 6: srun inside an allocation, with a new one, and on all nodes."""
    system.wait_idle()
    text = script(system, "bench_step.py", max(5, size // 50))
    figures = {}
    for name, line in (("4 srun -n1 in a job", r"step: srun -n1 -N1.*"), ("6 srun -n32 -N8 in a job", r"step: srun -n32 -N8.*"),
                       ("5 srun -n1, new allocation", r"srun -n1 true \(new.*"),
                       ("6 srun -n32 -N8, new allocation", r"srun -n32 -N8 true \(new.*")):
        found = re.search(line, text).group(0)
        figures[f"{name}: wall"] = number(r"wall p50 +([\d.]+)", found)
        figures[f"{name}: CPU in all"] = number(r"total +([\d.]+)", found)
    return figures


def deep_queue(system, depth):
    """7, 8, 11: with many varied jobs waiting."""
    system.wait_idle()
    text = script(system, "bench_queue.py", depth, BENCH_SETTLE=os.environ.get("BENCH_SETTLE", "10"))
    last = text[text.rindex("queued "):]
    squeue = re.search(r"  squeue  .*", last).group(0)
    one = re.search(r"  squeue -j one .*", last).group(0)
    mine = re.search(r"  squeue --me -t R.*", last).group(0)
    return {f"7 squeue, {depth} waiting: CPU of the command": number(r"cpu +([\d.]+)", squeue),
            f"7 squeue, {depth} waiting: CPU of the controller": number(r"ctld cpu ([\d.]+)", squeue),
            "7 squeue -j: CPU of the controller": number(r"ctld cpu ([\d.]+)", one),
            "7 squeue --me -t R: CPU of the controller": number(r"ctld cpu ([\d.]+)", mine),
            "8 memory of the controller for a waiting job, KiB": number(r"= ([\d.-]+) KB/pending", last),
            f"7 sbatch into a queue of {depth}: CPU of the controller": number(r"ctld cpu ([\d.]+) ms/job", last),
            f"9 controller with {depth} waiting, % of a core": number(r"otherwise idle: ([\d.]+) %", text),
            f"11 scancel -u of {depth} jobs: wall": number(r"jobs: ([\d.]+)s", text) * 1e3}


def completion(system, depth):
    """10: one job ends while many wait, and the next one starts."""
    system.wait_idle()
    for _ in range(8):
        system.run("sbatch", "-N1", "-n16", "--exclusive", "-t", "600", "-o", "/dev/null", "--wrap", "exec sleep 36000")
    while system.jobs("R") < 8:
        time.sleep(0.1)
    # Whole nodes, so that one end is one start; of many sizes and limits, so that none speaks for the others.
    def sbatch(i):
        system.spawn_command("sbatch", f"-N{1 + i % 8}", "--exclusive", f"-t{600 + i % 97}", "-o", "/dev/null", "--wrap",
                             "exec sleep 36000")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(sbatch, range(depth)))
    time.sleep(3)
    running = system.run("squeue", "-h", "-t", "R", "-o", "%i", text=True)[2].split()
    quiet = system.controller_cpu()
    time.sleep(3)
    idle = (system.controller_cpu() - quiet) / 3
    used, ended = 0.0, 0
    for job in running[:5]:
        before = system.controller_cpu()
        system.run("scancel", job)
        time.sleep(3)
        used += system.controller_cpu() - before - 3 * idle  # a scheduler that comes by itself is not told apart
        ended += 1
    system.run("scancel", "-u", USER)
    system.wait_empty(pause=0.1)
    return {f"10 one end with {depth} waiting: CPU of the controller": used / ended * 1e3}


ROWS = [small_reply, submit, batch_job, steps, deep_queue, completion]
