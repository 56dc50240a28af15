#!/usr/bin/python3
"""Many tiny jobs, and what the daemons hold when they are over.

    jobs.py --jobs 10000            a line of figures for every 1,000 jobs, then a verdict

Jobs come in rounds of 100 on an emulated cluster: an array (some elements fail), single jobs that end well, fail,
run steps or leave a process behind, sruns, jobs cancelled while they wait and while they run. At each sample the
queue is empty and MinJobAge is over, so that the controller has no job in memory, and it holds:

  processes  none of any job is alive
  open       descriptors and threads of both daemons are as many as after the first round
  files      the spool has the files it had after the first round; its log of starts stays below SPOOL_BYTES
  memory     resident memory does not grow after the first fifth (judged from 5,000 jobs on)
  store      grows with the history that sacct shows, by at most STORE_BYTES for each job; its log stays below
             STORE_LOG_BYTES
"""

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import sqlite3
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cluster import Cluster, processes_naming, until  # noqa: E402

CONF = pathlib.Path(__file__).resolve().parent / "conf"
ROUND = 100
# One job's row in the history with its step, their share of indices, and pages that are not full.
STORE_BYTES = 4096
STORE_LOG_BYTES = 20_000_000
# The log of starts is written anew when it is larger than 4 MB.
SPOOL_BYTES = 5 * 1024 * 1024
# What allocators may do between two samples without anything being kept.
MEMORY_SLACK_KB = 2048
MEMORY_SLACK = 0.05
SINGLE = [
    "true",
    "exit 3",
    "srun -n1 true",
    "srun -n1 false",
    "(setsid sleep 300 &); true",
    "srun -n1 true; srun -n1 true",
]


def store_bytes(path: pathlib.Path) -> int:
    """What is stored, whether it is in the database yet or still in its log."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return database.execute("PRAGMA page_count").fetchone()[0] * database.execute("PRAGMA page_size").fetchone()[0]


class Sample:
    """What the cluster holds at one moment."""

    def __init__(self, cluster: Cluster, jobs: int):
        self.jobs = jobs
        self.rss, self.fds, self.threads = {}, {}, {}
        for name in ("controller", "node"):
            proc = pathlib.Path(f"/proc/{cluster.pid(name)}")
            status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
            self.rss[name] = int(status["VmRSS"].split()[0])
            self.threads[name] = int(status["Threads"])
            self.fds[name] = sorted(os.readlink(fd).split(":[")[0] for fd in (proc / "fd").iterdir())
        self.files = sorted(str(p.relative_to(cluster.state)) for p in (cluster.state / "spool").rglob("*"))
        self.spool_bytes = sum(size(p) for p in (cluster.state / "spool").rglob("*"))
        self.store_bytes = store_bytes(cluster.state / "state" / "berth.db")
        self.log_of_store = size(cluster.state / "state" / "berth.db-wal")
        self.log_bytes = sum(size(p) for p in (cluster.state / "log").iterdir())

    def line(self) -> str:
        return (f"{self.jobs:6} jobs: controller {self.rss['controller']:6} KB {len(self.fds['controller'])} fds, "
                f"agent {self.rss['node']:6} KB {len(self.fds['node'])} fds, "
                f"spool {len(self.files)} files {self.spool_bytes} B, "
                f"store {self.store_bytes // 1024} KB, logs {self.log_bytes // 1024} KB")


def size(path: pathlib.Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0


def one_round(cluster: Cluster, pool) -> int:
    """Submits ROUND jobs; how many they were."""
    def array(count):
        cluster.submit("-o", "/dev/null", f"--array=0-{count - 1}", "--wrap", "exit $((SLURM_ARRAY_TASK_ID % 7 == 0))")

    def single(body):
        cluster.submit("-o", "/dev/null", "--wrap", body)

    def cancelled(*options):
        cluster.run("scancel", cluster.submit("-o", "/dev/null", *options, "--wrap", "sleep 300"))

    def srun(*words):
        cluster.run("srun", *words, rc=None)

    work = [(array, 50)] + [(single, SINGLE[i % len(SINGLE)]) for i in range(30)]
    work += [(cancelled, "--hold"), (cancelled, "--gres=gpu:1")] * 5
    work += [(srun, "-n2", "true"), (srun, "--gpus=1", "false")] * 5
    for done in [pool.submit(function, *arguments) for function, *arguments in work]:
        done.result()
    return ROUND


def wait_forgotten(cluster: Cluster):
    """Until no job is left anywhere, ended ones included."""
    until(lambda: cluster.out("squeue", "-h") == "", 600, "an empty queue")
    until(lambda: "No jobs" in cluster.out("scontrol", "show", "jobs"), 60, "MinJobAge")
    cluster.wait_idle()


def settled_sample(cluster: Cluster, jobs: int, first) -> Sample:
    """A connection of the last command may still be open for a moment."""
    for _ in range(20):
        time.sleep(0.5)
        sample = Sample(cluster, jobs)
        if first and all(len(sample.fds[name]) <= len(first.fds[name]) for name in sample.fds):
            break
    return sample


def left_processes(cluster: Cluster) -> dict:
    daemons = {cluster.pid("controller"), cluster.pid("node")}
    return {pid: words for pid, words in processes_naming(str(cluster.state)).items() if pid not in daemons}


def difference(before: list, after: list) -> str:
    return f"gone {[x for x in before if x not in after][:5]}, new {[x for x in after if x not in before][:5]}, " \
           f"{len(before)} became {len(after)}"


def judge(first: Sample, samples: list, memory: bool) -> list:
    """What did not hold, in words."""
    wrong = []
    for sample in samples:
        for name in ("controller", "node"):
            if len(sample.fds[name]) > len(first.fds[name]):
                wrong.append(f"{sample.jobs} jobs: open in {name}: {difference(first.fds[name], sample.fds[name])}")
            if sample.threads[name] > first.threads[name]:
                wrong.append(f"{sample.jobs} jobs: {name} had {first.threads[name]} threads, "
                             f"has {sample.threads[name]}")
        if sample.files != first.files:
            wrong.append(f"{sample.jobs} jobs: files in the spool: {difference(first.files, sample.files)}")
        if sample.spool_bytes > SPOOL_BYTES:
            wrong.append(f"{sample.jobs} jobs: {sample.spool_bytes} B in the spool")
    last = samples[-1]
    each = (last.store_bytes - first.store_bytes) / (last.jobs - first.jobs)
    if each > STORE_BYTES:
        wrong.append(f"the store grew by {each:.0f} B for each job, more than {STORE_BYTES}")
    longest = max(sample.log_of_store for sample in samples)
    if longest > STORE_LOG_BYTES:
        wrong.append(f"the store's log had {longest} B, more than {STORE_LOG_BYTES}")
    if memory:
        settled = next(s for s in samples if s.jobs >= last.jobs / 5)
        for name in ("controller", "node"):
            allowed = settled.rss[name] * (1 + MEMORY_SLACK) + MEMORY_SLACK_KB
            if last.rss[name] > allowed:
                wrong.append(f"{name}: {settled.rss[name]} KB after {settled.jobs} jobs, "
                             f"{last.rss[name]} KB after {last.jobs}")
    return wrong


def run(jobs: int, every: int, say=print) -> list:
    """Runs about that many jobs; what did not hold."""
    with Cluster(emulate=CONF) as cluster, concurrent.futures.ThreadPoolExecutor(4) as pool:
        start = time.monotonic()
        count = one_round(cluster, pool)
        wait_forgotten(cluster)
        first = settled_sample(cluster, count, None)
        say(first.line())
        samples, wrong = [], []
        while count < jobs:
            due = count - count % every + every
            while count < min(due, jobs):
                count += one_round(cluster, pool)
            wait_forgotten(cluster)
            samples.append(settled_sample(cluster, count, first))
            say(samples[-1].line())
            if left := left_processes(cluster):
                wrong.append(f"{count} jobs: processes left: {left}")
        say(f"{count} jobs in {time.monotonic() - start:.0f} s; "
            f"{(samples[-1].store_bytes - first.store_bytes) / (count - first.jobs):.0f} B of history for each")
        return wrong + judge(first, samples, memory=jobs >= 5000)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--jobs", type=int, default=10000)
    arguments.add_argument("--every", type=int, default=1000)
    given = arguments.parse_args()
    wrong = run(given.jobs, given.every, lambda line: print(line, flush=True))
    print("\n".join(wrong) if wrong else "all held")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
