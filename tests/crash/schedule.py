#!/usr/bin/python3
"""Random kill schedules: jobs run while parts of the cluster are killed with SIGKILL and started again.

    schedule.py --seed 7            one schedule, the same again each time
    schedule.py --seed 1 --count 20 seeds 1 … 20

A schedule starts an emulated cluster of its own, submits jobs of several kinds, and at random moments kills
the controller, the agent, a supervisor or an srun. When the queue is empty it checks:

  lost      every id that sbatch printed is known, has ended, and ran (unless its supervisor was killed)
  doubled   no job ran twice at once; a second run has a recorded restart; no id was printed twice
  orphans   no process of any job is alive
  leaked    every node is idle with nothing allocated, and a job that takes the whole cluster runs

The first line of a failure names the seed to run again.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONF = """ClusterName=crash{seed}
SlurmctldHost=localhost
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
TaskPlugin=task/affinity
GresTypes=gpu
KillWait=2
MinJobAge=3600
SlurmdTimeout=60
ReturnToService=2
SlurmdParameters=config_overrides
DefMemPerCPU=1024
NodeName=n[1-4] Sockets=2 CoresPerSocket=4 RealMemory=16384 Gres=gpu:a100:4
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP
"""
JOB = """#!/bin/bash
#SBATCH -o {dir}/out.%j -n1 -t 10 {options}
echo "start $SLURM_JOB_ID ${{SLURM_RESTART_COUNT:-0}} $(date +%s.%N)" >> {dir}/ran
{body}
status=$?
echo "end $SLURM_JOB_ID ${{SLURM_RESTART_COUNT:-0}} $(date +%s.%N)" >> {dir}/ran
exit $status
"""
QUIET_SECONDS = 90  # the longest a schedule may take to come to rest


class Failure(Exception):
    pass


class Schedule:
    def __init__(self, seed: int, bin_dir: pathlib.Path, verbose: bool):
        self.seed = seed
        self.random = random.Random(seed)
        self.bin = bin_dir
        self.verbose = verbose
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"berth-crash-{seed}-"))
        self.dir.chmod(0o755)
        self.conf = self.dir / "slurm.conf"
        self.conf.write_text(CONF.format(seed=seed))
        self.marker = f"BERTH_CRASH_TEST={self.dir.name}"
        self.env = dict(os.environ, SLURM_CONF=str(self.conf), BERTH_CRASH_TEST=self.dir.name)
        self.env["PATH"] = f"{bin_dir}:{self.env['PATH']}"
        for name in list(self.env):
            if name.startswith(("SLURM_JOB", "SLURM_STEP", "SBATCH_", "BERTH_CLUSTER")):
                del self.env[name]
        self.daemons: dict[str, subprocess.Popen] = {}
        self.sruns: list[subprocess.Popen] = []
        self.random_beside = random.Random(-1 - seed)  # the rest of a schedule is as it was without
        self.reserved: dict[str, bool] = {}  # name: it must be there (it was made), or must not (deleted)
        self.ids: list[int] = []
        self.killed: list[str] = []
        self.harmed: set[int] = set()  # jobs one of whose supervisors was killed
        self.log = (self.dir / "schedule.log").open("w")

    def say(self, text: str):
        line = f"{time.time():.3f} {text}"
        self.log.write(line + "\n")
        self.log.flush()
        if self.verbose:
            print(line, flush=True)

    # ---- the parts -------------------------------------------------------------------------
    def start(self, name: str):
        program = {"controller": "berthctld", "agent": "berthd"}[name]
        command = [str(self.bin / program), "-f", str(self.conf), "--foreground", "--emulate"]
        command += ["--state", str(self.dir / "state")] if name == "controller" else \
            ["--spool", str(self.dir / "spool")]
        out = (self.dir / f"{name}.log").open("a")
        self.daemons[name] = subprocess.Popen(command, env=self.env, stdout=out, stderr=out,
                                              stdin=subprocess.DEVNULL)
        self.say(f"started {name} {self.daemons[name].pid}")

    def kill(self, name: str):
        daemon = self.daemons[name]
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
        self.killed.append(name)
        self.say(f"killed {name}")

    def processes(self):
        """pid → (name of the program, command line, whether it carries this schedule's marker)."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
                environment = (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state == "Z" or int(entry.name) == os.getpid():
                continue
            marked = self.marker.encode() in environment
            found[int(entry.name)] = (os.path.basename(command[0].decode(errors="replace")),
                                      b" ".join(command).decode(errors="replace"), marked)
        return found

    def supervisors(self):
        """(pid, record of the step) of those that live: each holds the record of its step open."""
        found = []
        for pid, (name, _, _) in self.processes().items():
            if name != "berth-stepd":
                continue
            try:
                files = [os.readlink(f) for f in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
            except OSError:
                continue
            found += [(pid, f) for f in files if f.startswith(f"{self.dir}/spool/")][:1]
        return found

    # ---- the work --------------------------------------------------------------------------
    def run(self, *words: str, timeout: float = 75) -> subprocess.CompletedProcess:
        return subprocess.run(words, env=self.env, cwd=self.dir, capture_output=True, text=True,
                              timeout=timeout, stdin=subprocess.DEVNULL)

    def body(self) -> tuple[str, str]:
        pause = self.random.choice(["0", "0.1", "0.3", "0.8"])
        return self.random.choice([
            ("", f"sleep {pause}"),
            ("--gres=gpu:1", f"sleep {pause}"),
            ("-N1", f"srun sleep {pause}"),
            ("-N2 -n2", f"srun -n2 sleep {pause}"),
            ("-n2 --gpus-per-task=1", f"srun -n1 --exact sleep {pause} & srun -n1 --exact sleep 0.1 & wait; true"),
            ("", f"(setsid sleep 300 &) ; sleep {pause}"),
        ])

    def submit(self):
        options, body = self.body()
        if self.random.random() < 0.15:
            options += " --no-requeue"
        script = self.dir / f"job.{len(self.ids)}.sh"
        script.write_text(JOB.format(dir=self.dir, options=options, body=body))
        done = self.run("sbatch", str(script))
        found = re.fullmatch(r"Submitted batch job (\d+)\n", done.stdout)
        if not found:
            raise Failure(f"sbatch said {done.stdout!r} {done.stderr!r} (status {done.returncode})")
        number = int(found[1])
        if number in self.ids:
            raise Failure(f"job id {number} was handed out twice")
        self.ids.append(number)
        self.say(f"submitted {number}: {options} | {body}")

    def reserve(self):
        """Makes or deletes a reservation that is so far away that no job meets it."""
        living = [name for name, there in self.reserved.items() if there]
        if living and self.random_beside.random() < 0.3:
            name = self.random_beside.choice(living)
            del self.reserved[name]  # may be there or not, until it was said
            if self.run("scontrol", "delete", f"ReservationName={name}").returncode == 0:
                self.reserved[name] = False
                self.say(f"deleted reservation {name}")
            return
        name = f"r{len(self.reserved)}_{len(self.killed)}_{len(self.ids)}"
        done = self.run("scontrol", "create", "reservation", f"ReservationName={name}", "StartTime=now+400days",
                        "Duration=60", "NodeCnt=1", "Users=root", "Flags=OVERLAP,IGNORE_JOBS")
        if done.returncode == 0:
            self.reserved[name] = True
            self.say(f"made reservation {name}")
        elif "reservation name" in done.stderr:
            self.reserved[name] = True  # it was made by a call whose answer was lost

    def check_reservations(self):
        shown = self.run("scontrol", "-o", "show", "reservation").stdout
        there = set(re.findall(r"ReservationName=(\S+)", shown))
        for name, must in self.reserved.items():
            if must != (name in there):
                raise Failure(f"reservation {name} is {'lost' if must else 'back'}: {sorted(there)}")

    def background_srun(self):
        out = (self.dir / "srun.log").open("a")
        srun = subprocess.Popen(["srun", "-n2", "sleep", self.random.choice(["0.2", "1", "3"])],
                                env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=out)
        self.sruns.append(srun)
        self.say(f"srun {srun.pid}")

    def hit(self):
        """One blow."""
        target = self.random.choices(["controller", "agent", "supervisor", "srun", "both"],
                                     [5, 4, 3, 2, 1])[0]
        if target in ("controller", "agent"):
            self.kill(target)
            time.sleep(self.random.choice([0, 0.05, 0.3]))
            self.start(target)
        elif target == "both":
            self.kill("agent")
            self.kill("controller")
            time.sleep(self.random.choice([0, 0.2]))
            for name in self.random.sample(["controller", "agent"], 2):
                self.start(name)
        elif target == "supervisor":
            living = sorted(self.supervisors())
            if living:
                pid, step = self.random.choice(living)
                job = re.search(r"/step\.(\d+)\.", step)
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    return
                if job:
                    self.harmed.add(int(job[1]))
                self.killed.append("supervisor")
                self.say(f"killed supervisor {pid} of {step}")
        else:
            living = [s for s in self.sruns if s.poll() is None]
            if living:
                victim = self.random.choice(living)
                victim.kill()
                self.killed.append("srun")
                self.say(f"killed srun {victim.pid}")

    # ---- the checks ------------------------------------------------------------------------
    def wait_ready(self):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            done = self.run("sinfo", "-h", "-o", "%D %t")
            if done.stdout.strip() == "4 idle":
                return
            time.sleep(0.05)
        raise Failure(f"the cluster did not come up: {done.stdout!r} {done.stderr!r}")

    def wait_quiet(self):
        deadline = time.monotonic() + QUIET_SECONDS
        while time.monotonic() < deadline:
            done = self.run("squeue", "-h")
            if done.returncode == 0 and not done.stdout and all(s.poll() is not None for s in self.sruns):
                return
            time.sleep(0.1)
        raise Failure(f"not at rest after {QUIET_SECONDS} s:\n{done.stdout}{done.stderr}"
                      f"{self.run('sinfo', '-N', '-l').stdout}")

    def check_jobs(self):
        runs = collections.defaultdict(list)
        for line in (self.dir / "ran").read_text().splitlines() if (self.dir / "ran").exists() else []:
            what, job, restart, when = line.split()
            runs[int(job)].append((what, int(restart), float(when)))
        for job in self.ids:
            shown = self.run("scontrol", "show", "job", str(job))
            fields = dict(re.findall(r"(\S+?)=(\S*)", shown.stdout))
            if shown.returncode != 0 or "JobState" not in fields:
                raise Failure(f"job {job} is lost: {shown.stdout!r} {shown.stderr!r}")
            starts = [r for r in runs[job] if r[0] == "start"]
            ends = [r for r in runs[job] if r[0] == "end"]
            restarts = int(fields["Restarts"])
            if len({r[1] for r in starts}) != len(starts):
                raise Failure(f"job {job} started twice in one attempt: {runs[job]}")
            if len(starts) > restarts + 1:
                raise Failure(f"job {job} ran {len(starts)} times with Restarts={restarts}")
            if job in self.harmed:
                continue
            if fields["JobState"] != "COMPLETED":
                raise Failure(f"job {job} ended {fields['JobState']} ({fields.get('Reason')}), "
                              f"exit {fields.get('ExitCode')}; its output: "
                              f"{(self.dir / f'out.{job}').read_text() if (self.dir / f'out.{job}').exists() else None!r}")
            if not starts or not ends:
                raise Failure(f"job {job} is COMPLETED and did not run: {runs[job]}")

    def check_orphans(self):
        deadline = time.monotonic() + 10
        own = {d.pid for d in self.daemons.values()}
        while True:
            left = {pid: command for pid, (name, command, marked) in self.processes().items()
                    if marked and pid not in own and not any(pid == s.pid for s in self.sruns)}
            if not left:
                return
            if time.monotonic() > deadline:
                raise Failure(f"processes left behind: {left}")
            time.sleep(0.1)

    def check_leaks(self):
        # The last blow may have been to the controller: its agent comes back within a second or two.
        deadline = time.monotonic() + 15
        while True:
            states = self.run("sinfo", "-h", "-N", "-o", "%N %t %C").stdout.split("\n")[:-1]
            bad = [s for s in states if not re.fullmatch(r"n\d idle 0/8/0/8", s)]
            if not bad and len(states) == 4 or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        if bad or len(states) != 4:
            raise Failure(f"nodes are not as they were: {states}\n"
                          f"{self.run('scontrol', 'show', 'node').stdout}")
        done = self.run("srun", "-N4", "-n4", "--exclusive", "--gres=gpu:4", "true", timeout=60)
        if done.returncode != 0:
            raise Failure(f"a job on everything failed: {done.stderr}")

    def play(self):
        self.start("controller")
        self.start("agent")
        self.wait_ready()
        actions = ["submit"] * self.random.randint(5, 10) + ["srun"] * self.random.randint(0, 2) + \
            ["hit"] * self.random.randint(2, 5)
        self.random.shuffle(actions)
        for action in actions:
            {"submit": self.submit, "srun": self.background_srun, "hit": self.hit}[action]()
            if self.random_beside.random() < 0.25:
                self.reserve()
            time.sleep(self.random.choice([0, 0, 0.02, 0.1, 0.4]))
        self.wait_quiet()
        self.check_jobs()
        self.check_reservations()
        self.check_orphans()
        self.check_leaks()

    def clean(self, keep: bool):
        for daemon in self.daemons.values():
            if daemon.poll() is None:
                daemon.terminate()
                try:
                    daemon.wait(10)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
        own = {os.getpid(), os.getppid()}
        for pid, (_, _, marked) in self.processes().items():
            if marked and pid not in own:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        for srun in self.sruns:
            srun.wait()
        self.log.close()
        # As a killed daemon leaves them: `berth down`, which removes them, is not part of a schedule.
        shutil.rmtree(self.run_directory(), ignore_errors=True)
        if not keep:
            shutil.rmtree(self.dir, ignore_errors=True)

    def run_directory(self) -> str:
        """Where the sockets are: docs/design/processes.md "Files and addresses"."""
        key = 0xcbf29ce484222325
        for byte in os.fsencode(os.path.realpath(self.conf)):
            key = (key ^ byte) * 0x100000001b3 % 2**64
        uid = os.geteuid()
        base = "/run" if uid == 0 else self.env.get("XDG_RUNTIME_DIR") or ""
        return (f"{base}/berth" if base else f"/tmp/berth-{uid}") + f"/{key:016x}"


def run_schedule(seed: int, bin_dir: pathlib.Path, verbose: bool = False, keep: bool = False) -> str | None:
    """None when all held, else what did not."""
    schedule = Schedule(seed, bin_dir, verbose)
    try:
        schedule.play()
        trouble = None
    except (Failure, subprocess.TimeoutExpired) as failure:
        trouble = f"seed {seed}: {failure}\nkilled: {schedule.killed}"
        tails = [f"--- {p.name}\n" + "\n".join(p.read_text(errors="replace").splitlines()[-30:])
                 for p in sorted(schedule.dir.glob("*.log"))]
        trouble += "\n" + "\n".join(tails)
    schedule.clean(keep and trouble is not None)
    return trouble


def main() -> int:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--count", type=int, default=1)
    args.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
    args.add_argument("--keep", action="store_true", help="leave the folder of a failed schedule")
    args.add_argument("-v", "--verbose", action="store_true")
    args = args.parse_args()
    failed = []
    begin = time.monotonic()
    for seed in range(args.seed, args.seed + args.count):
        trouble = run_schedule(seed, args.bin.resolve(), args.verbose, args.keep)
        if trouble:
            failed.append(seed)
            print(trouble, flush=True)
        elif args.verbose or args.count == 1:
            print(f"seed {seed}: ok", flush=True)
    print(f"{args.count - len(failed)} of {args.count} schedules held in "
          f"{time.monotonic() - begin:.0f} s" + (f"; failed seeds: {failed}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
