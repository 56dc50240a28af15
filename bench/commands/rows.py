"""What is measured, by the row numbers of docs/performance.md. Each takes a running System and returns figures by name;
times in milliseconds, sizes in KiB. `less` figures are better when smaller, all others when larger."""

import os
import random
import statistics
import time


def median(values):
    return statistics.median(values)


def small_reply(system, repeat=30):
    """1: commands with a small reply."""
    figures = {}
    system.run("sbatch", "-o", "/dev/null", "-H", "--wrap", "true")
    for name, words in (("squeue", ["squeue"]), ("sinfo", ["sinfo"]), ("scontrol show job", ["scontrol", "show", "job"])):
        system.run(*words)
        figures[f"{name}: CPU of the command"] = median([system.run(*words)[1] for _ in range(repeat)]) * 1e3
    system.run("scancel", "-u", os.environ.get("USER", "root"))
    system.wait_empty()
    return figures


def submit(system, repeat=200):
    """2: sbatch of jobs that wait (held), so that nothing but the submission is measured."""
    whole, controller, client = system.cpu(), system.controller_cpu(), []
    for _ in range(repeat):
        client.append(system.run("sbatch", "-H", "-o", "/dev/null", "--wrap", "true")[1])
    figures = {"sbatch: CPU in all": (system.cpu() - whole) / repeat * 1e3,
               "sbatch: CPU of the command": median(client) * 1e3,
               "sbatch: CPU of the controller": (system.controller_cpu() - controller) / repeat * 1e3}
    system.run("scancel", "-u", os.environ.get("USER", "root"))
    system.wait_empty()
    return figures


def batch_job(system, repeat=150):
    """3: from the first submission to the empty queue."""
    system.wait_idle()
    cpu, begin = system.cpu(), time.perf_counter()
    for _ in range(repeat):
        system.run("sbatch", "-o", "/dev/null", "-n1", "--mem=100", "--wrap", "true")
    system.wait_empty()
    wall = time.perf_counter() - begin
    return {"batch job: CPU in all": (system.cpu() - cpu) / repeat * 1e3, "batch job: ms each": wall / repeat * 1e3}


def _series(system, name, words, repeat):
    cpu, walls = system.cpu(), []
    for _ in range(repeat):
        walls.append(system.run(*words)[0])
    return {f"{name}: wall": median(walls) * 1e3, f"{name}: CPU in all": (system.cpu() - cpu) / repeat * 1e3}


def steps(system, repeat=15):
    """4, 5, 6: srun inside an allocation, with a new one, and on all nodes."""
    figures = {}
    system.wait_idle()
    system.run("salloc", "-Q", "-N8", "-n128", "--no-shell", "-J", "bench", check=False)
    found = system.run("squeue", "-h", "-o", "%i", "-n", "bench", text=True)[2].split()
    inside = ["srun", f"--jobid={found[0]}", "-Q"]
    system.run(*inside, "-n1", "-N1", "true")
    figures |= _series(system, "srun -n1 in a job", [*inside, "-n1", "-N1", "true"], repeat)
    figures |= _series(system, "srun -n32 -N8 in a job", [*inside, "-n32", "-N8", "true"], max(3, repeat // 2))
    system.run("scancel", found[0])
    system.wait_empty()
    system.wait_idle()
    figures |= _series(system, "srun -n1, new allocation", ["srun", "-Q", "-n1", "true"], repeat)
    return figures


SHAPES = [(1, 1, 10), (1, 4, 60), (1, 16, 120), (2, 32, 240), (4, 64, 30), (8, 128, 600), (1, 1, 5), (1, 8, 1440)]


def deep_queue(system, depth=2000, repeat=5):
    """7, 8, 10, 11: with many varied jobs waiting."""
    figures = {}
    rng = random.Random(1)
    system.wait_idle()
    for _ in range(8):
        system.run("sbatch", "-N1", "-n16", "--exclusive", "-t", "600", "-o", "/dev/null", "--wrap", "exec sleep 36000")
    while system.jobs("R") < 8:
        time.sleep(0.1)
    base = system.controller_rss()
    cpu = system.controller_cpu()
    for i in range(depth):
        nodes, tasks, limit = rng.choice(SHAPES)
        gpus = rng.choice([0, 0, 1, 2, 4])
        system.run("sbatch", f"-N{nodes}", f"-n{tasks}", f"-t{limit + i % 60}", "-o", "/dev/null",
                   *([f"--gres=gpu:{gpus}"] if gpus else []), "--wrap", "true")
    figures[f"submission into a queue of up to {depth}: CPU of the controller"] = \
        (system.controller_cpu() - cpu) / depth * 1e3
    figures["memory of the controller for each waiting job, KiB"] = (system.controller_rss() - base) / depth
    cpu, client = system.controller_cpu(), []
    for _ in range(repeat):
        client.append(system.run("squeue")[1])
    figures[f"squeue, {depth} waiting: CPU of the command"] = median(client) * 1e3
    figures[f"squeue, {depth} waiting: CPU of the controller"] = (system.controller_cpu() - cpu) / repeat * 1e3
    # 10: one job ends, and the next one starts
    running = system.run("squeue", "-h", "-t", "R", "-o", "%i", text=True)[2].split()
    cpu = system.controller_cpu()
    ended = 0
    for job in running[:4]:
        system.run("scancel", job)
        ended += 1
        time.sleep(1.5)
    figures[f"one completion with {depth} waiting: CPU of the controller"] = \
        (system.controller_cpu() - cpu) / ended * 1e3
    begin = time.perf_counter()
    system.run("scancel", "-u", os.environ.get("USER", "root"))
    system.wait_empty(pause=0.1)
    figures[f"scancel -u of {depth} jobs: wall"] = (time.perf_counter() - begin) * 1e3
    return figures


ROWS = [small_reply, submit, batch_job, steps, deep_queue]
