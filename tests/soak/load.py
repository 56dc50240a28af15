#!/usr/bin/python3
"""Everything at once, for a while: clients of all kinds in parallel while daemons are ended and started again.

    load.py --seconds 60

Meant for programs with sanitizers (tools/sanitizer-reports): what it checks itself is that the cluster is idle
and empty at the end. A command may fail, since what it asks for may have gone; it may not hang or die by a signal.
"""

import argparse
import contextlib
import os
import pathlib
import random
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cluster import Cluster, until  # noqa: E402

CONF = pathlib.Path(__file__).resolve().parent / "conf"
LIMIT = 180  # seconds for one command: sanitizers are slow, and a controller may be away


class Load:
    def __init__(self, cluster: Cluster, seconds: float, seed: int):
        self.cluster = cluster
        self.end = time.monotonic() + seconds
        self.seed = seed
        self.count = 0
        self.wrong: list[str] = []

    def call(self, *words, **options):
        done = self.cluster.call(words, timeout=LIMIT, **options)
        self.count += 1
        if done.returncode < 0 or done.returncode == 66:  # 66: what TSan exits with
            self.wrong.append(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def client(self, number: int):
        choose = random.Random(self.seed * 100 + number)
        ids: list[str] = []
        while time.monotonic() < self.end:
            what = choose.choice(["sbatch", "sbatch", "array", "step", "srun", "squeue", "sinfo", "show", "scancel",
                                  "hold", "sacct", "sdiag", "update", "reconfigure", "script"])
            job = choose.choice(ids) if ids else "1"
            if what == "sbatch":
                ids.append(self.submit("--wrap", choose.choice(["true", "sleep 1", "exit 3", "sleep 60"])))
            elif what == "array":
                ids.append(self.submit("--array=0-9%4", "--gres=gpu:1", "--wrap", "sleep 0.2"))
            elif what == "step":
                ids.append(self.submit("-n2", "--wrap", "srun -n2 hostname; srun -n1 false & srun -n1 true; wait"))
            elif what == "script":
                ids.append(self.submit(input=f"#!/bin/bash\n#SBATCH -n1\n# {choose.random()}\ntrue\n"))
            elif what == "srun":
                self.call("srun", "-n2", "hostname")
            elif what == "squeue":
                self.call("squeue", "-t", "all")
            elif what == "sinfo":
                self.call("sinfo", "-N", "-l")
            elif what == "show":
                self.call("scontrol", "show", choose.choice(["jobs", "nodes", "partitions", "config", "steps"]))
            elif what == "scancel":
                self.call("scancel", job)
            elif what == "hold":
                self.call("scontrol", choose.choice(["hold", "release"]), job)
            elif what == "update":
                self.call("scontrol", "update", f"JobId={job}", "Comment=load")
            elif what == "reconfigure":
                self.call("scontrol", "reconfigure")
            else:
                self.call(what)
            ids = [i for i in ids if i][-20:]

    def submit(self, *words, **options) -> str:
        return self.call("sbatch", "--parsable", "-o", "/dev/null", *words, **options).stdout.strip()

    def restarter(self):
        choose = random.Random(self.seed)
        while time.monotonic() < self.end:
            time.sleep(choose.uniform(2, 6))
            which = choose.choice(["node", "node", "controller"])
            try:
                pid = self.cluster.pid(which)
            except AssertionError:
                pid = None
            if pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, choose.choice([signal.SIGTERM, signal.SIGKILL]))
                until(lambda: not alive(pid), 60, f"the end of the {which}")
            done = self.cluster.up()
            if done.returncode != 0:
                self.wrong.append(f"berth up: {done.returncode}\n{done.stdout}{done.stderr}\n{self.cluster.logs()}")
                return

    def run(self, clients: int) -> list:
        def guarded(function, *arguments):
            try:
                function(*arguments)
            except Exception as trouble:  # a thread's exception is a finding, not a silence
                self.wrong.append(f"{function.__name__}: {trouble!r}")

        threads = [threading.Thread(target=guarded, args=(self.client, i)) for i in range(clients)]
        threads.append(threading.Thread(target=guarded, args=(self.restarter,)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.wrong


def alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--clients", type=int, default=4)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    with Cluster(emulate=CONF) as cluster:
        load = Load(cluster, given.seconds, given.seed)
        wrong = load.run(given.clients)
        if not wrong:
            cluster.call(["scancel", "--state=PENDING"], timeout=LIMIT)
            cluster.call(["scancel", "--state=RUNNING"], timeout=LIMIT)
            try:
                cluster.wait_idle(LIMIT)
            except AssertionError as late:
                shown = [cluster.call(words, timeout=LIMIT).stdout for words in (
                    ["squeue", "-a"], ["sinfo", "-N", "-l"], ["scontrol", "show", "jobs"])]
                wrong.append("\n".join([str(late), *shown, cluster.logs(60)]))
    print("\n".join(wrong))
    print(f"{load.count} commands of {given.clients} clients in {given.seconds:.0f} s, {len(wrong)} went wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
