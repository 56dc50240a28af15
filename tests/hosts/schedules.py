#!/usr/bin/python3
"""Random schedules over several hosts: jobs run while daemons are killed and cables are pulled.

    schedules.py --seed 7             one schedule, the same again each time
    schedules.py --seed 1 --count 500

Controller h0, nodes h1 to h3, each a network namespace of its own (hosts.py). Every job says ten times a second where
it is. When the queue is empty again:

  lost      every id that sbatch printed is known, and has ended
  doubled   no job was in two places at once, and a --no-requeue job began at most once
  orphans   nothing says anything any more
  leaked    every node is idle, and a job that takes all of them runs
"""

import argparse
import collections
import pathlib
import random
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import cluster  # noqa: E402
from hosts import Hosts  # noqa: E402

SILENCE = 8  # SlurmdTimeout
KEYS = f"SlurmdTimeout={SILENCE}\nKillWait=1\nJobRequeue=1\nReturnToService=2\nMinJobAge=3600\nSchedulerParameters=bf_interval=1"
JOB = """#!/bin/bash
#SBATCH -o /dev/null -t 10 {options}
for ((i = 0; i < {length}; i++)); do
  echo "$SLURM_JOB_ID ${{SLURM_RESTART_COUNT:-0}} $SLURMD_NODENAME $(date +%s.%N)" >> {said}
  sleep 0.1
done
"""
QUIET_SECONDS = 120


class Failure(Exception):
    pass


class Schedule:
    def __init__(self, hosts, seed, verbose=False):
        self.hosts, self.seed, self.verbose = hosts, seed, verbose
        self.random = random.Random(seed)
        self.said = hosts.directory / f"said.{seed}"
        self.said.touch()
        self.jobs = {}  # id: whether it may begin again
        self.log = []

    def say(self, text):
        self.log.append(f"{time.time():.3f} {text}")
        if self.verbose:
            print(self.log[-1], flush=True)

    def submit(self):
        once = self.random.random() < 0.3
        options = self.random.choice(["-n1", "-n2", "-N2 -n2"]) + (" --no-requeue" if once else " --requeue")
        script = self.hosts.directory / f"job.{self.seed}.{len(self.jobs)}.sh"
        script.write_text(JOB.format(options=options, length=self.random.choice([5, 20, 60]), said=self.said))
        done = self.hosts[0].run("sbatch", script, check=False, timeout=75)
        found = re.fullmatch(r"Submitted batch job (\d+)\n", done.stdout)
        if not found:
            raise Failure(f"sbatch said {done.stdout!r} {done.stderr!r}")
        if int(found[1]) in self.jobs:
            raise Failure(f"job id {found[1]} was handed out twice")
        self.jobs[int(found[1])] = not once
        self.say(f"submitted {found[1]}: {options}")

    def hit(self):
        hosts = self.hosts
        index = self.random.randint(1, 3)
        what = self.random.choice(["cut", "cut", "cut", "agent", "controller", "both"])
        self.say(f"{what} {index}")
        if what == "cut":
            hosts.cut(index)
            self.mend_at[index] = time.monotonic() + self.random.choice([1, 4, SILENCE + 4])
        if what in ("agent", "both"):
            kill(hosts[index].agent)
        if what in ("controller", "both"):
            kill(hosts.controller)
            time.sleep(self.random.choice([0, 0.3, 2]))
            hosts.start_controller()
        if what in ("agent", "both"):
            hosts.start_agent(index)

    def mend_due(self, all_of_them=False):
        for index, when in list(self.mend_at.items()):
            if all_of_them or when <= time.monotonic():
                self.hosts.mend(index)
                self.say(f"mended {index}")
                del self.mend_at[index]

    def run(self):
        self.mend_at = {}
        for _ in range(self.random.randint(3, 6)):
            self.submit()
        for _ in range(self.random.randint(2, 5)):
            time.sleep(self.random.uniform(0, 3))
            self.mend_due()
            self.hit()
            if self.random.random() < 0.5:
                self.submit()
        while self.mend_at:
            time.sleep(0.1)
            self.mend_due()
        self.wait_quiet()
        self.check()

    def wait_quiet(self):
        deadline = time.monotonic() + QUIET_SECONDS
        while time.monotonic() < deadline:
            done = self.hosts[0].run("squeue", "-h", check=False, timeout=75)
            if done.returncode == 0 and not done.stdout:
                return
            # An administrator releases what was held after too many failures, takes nodes back, and shortens the two
            # minutes that a job waits whose node failed.
            self.hosts[0].run("scontrol", "update", "nodename=h[1-3]", "state=resume", check=False)
            for job in self.hosts[0].run("squeue", "-h", "-t", "PD", "-o", "%A", check=False).stdout.split():
                self.hosts[0].run("scontrol", "update", f"jobid={job}", "starttime=now", check=False)
            time.sleep(0.5)
        raise Failure(f"not quiet after {QUIET_SECONDS} s:\n{done.stdout}")

    def check(self):
        runs = collections.defaultdict(list)
        for line in self.said.read_text().splitlines():
            job, restart, node, when = line.split()
            runs[int(job)].append((float(when), int(restart), node))
        for job, may_begin_again in self.jobs.items():
            shown = self.hosts[0].run("scontrol", "-o", "show", "job", job, check=False).stdout
            state = re.search(r"JobState=(\S+)", shown)
            if not state:
                raise Failure(f"job {job} is lost")
            seen = sorted(runs.get(job, []))
            if state[1] == "COMPLETED" and not seen:
                raise Failure(f"job {job} is COMPLETED and never ran")
            attempts = [restart for _, restart, _ in seen]
            if attempts != sorted(attempts):
                raise Failure(f"job {job} was in two places at once: {seen}")
            if not may_begin_again and len(set(attempts)) > 1:
                raise Failure(f"job {job} began again with --no-requeue: {seen}")
        size = self.said.stat().st_size
        time.sleep(0.4)
        if self.said.stat().st_size != size:
            raise Failure("something still runs")
        cluster.until(lambda: self.hosts[0].run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").stdout.count("h") == 3,
                      what="three idle nodes")
        if self.hosts[0].run("srun", "-N3", "true", check=False, timeout=60).returncode != 0:
            raise Failure("a job of all nodes does not run")


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def run_schedules(seeds, verbose=False):
    """What went wrong, in words; None = nothing. All schedules follow each other on one cluster."""
    with Hosts(4, keys=KEYS) as hosts:
        hosts.start()
        for seed in seeds:
            schedule = Schedule(hosts, seed, verbose)
            try:
                schedule.run()
            except Failure as failure:
                return "\n".join([f"seed {seed}: {failure}", *schedule.log, *(h.logs() for h in hosts.hosts)])
            if verbose:
                print(f"seed {seed} is good: {len(schedule.jobs)} jobs", flush=True)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1)
    words = parser.parse_args()
    began = time.monotonic()
    trouble = run_schedules(range(words.seed, words.seed + words.count), verbose=True)
    if trouble:
        sys.exit(trouble)
    print(f"{words.count} schedules in {time.monotonic() - began:.0f} s, none broke a promise")


if __name__ == "__main__":
    main()
