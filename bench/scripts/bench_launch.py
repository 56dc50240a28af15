#!/usr/bin/python3
"""Inside an allocation: how long srun takes for so many tasks on so many nodes. Prints a line of JSON for each shape.

    bench_launch.py ROUNDS NODESxTASKS ... [-- program and arguments instead of `true`]
"""
import json
import os
import re
import statistics
import subprocess
import sys
import time

words = sys.argv[1:]
program = ["true"]
if "--" in words:
    program = words[words.index("--") + 1:]
    words = words[:words.index("--")]
rounds = int(words[0])
group = os.environ.get("BENCH_CGROUP")
options = os.environ.get("BENCH_SRUN", "").split()


def cpu():
    return int(open(f"{group}/cpuacct.usage").read()) / 1e6 if group else 0.0


for shape in words[1:]:
    nodes, tasks = shape.split("x")
    command = ["srun", *options, "-N", nodes, "-n", tasks, *program]
    walls, costs, told = [], [], []
    for i in range(rounds + 1):
        before, began = cpu(), time.perf_counter()
        run = subprocess.run(command, capture_output=True, text=True)
        wall = (time.perf_counter() - began) * 1e3
        if run.returncode != 0:
            sys.exit(f"{' '.join(command)}: {run.returncode}\n{run.stdout}{run.stderr}")
        time.sleep(0.05)  # what the nodes still do after srun has gone counts too
        if i > 0:  # the first one warms up
            walls.append(wall)
            costs.append(cpu() - before)
            told += [float(number) for number in re.findall(r"^init ms ([\d.]+)$", run.stdout, re.M)]
    levels = ""
    if os.environ.get("BENCH_LEVELS"):
        text = subprocess.run([*command[:1], "-v", *command[1:]], capture_output=True, text=True).stderr
        levels = re.search(r"berth: (\d+ nodes by \d+ connections, the farthest \d+ away)", text)
        levels = levels.group(1) if levels else ""
    print(json.dumps({"nodes": int(nodes), "tasks": int(tasks), "wall": statistics.median(walls),
                      "cpu": statistics.median(costs), "init": statistics.median(told) if told else None,
                      "levels": levels, "all": {"wall": walls, "cpu": costs, "init": told}}), flush=True)
