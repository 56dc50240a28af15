"""The two systems that bench/cluster compares: berth from build/bin, and Debian's Slurm where it is installed.

Every process of a system (daemons, steps, commands) lives in a cpuacct cgroup of its own, so that the CPU time of
the whole can be read: on a noisy machine that is the figure to compare.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NODES = 8
CPUACCT = pathlib.Path("/sys/fs/cgroup/cpuacct")


class System:
    name = ""
    port = 0
    programs: tuple[str, ...] = ()

    def __init__(self, size=NODES, more=""):
        self.size = size
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"bench-{self.name}-"))
        self.dir.chmod(0o755)
        (self.dir / "state").mkdir()
        self.conf = self.dir / "slurm.conf"
        nodes = "\n".join(f"NodeName=n{i} NodeHostname=localhost NodeAddr=127.0.0.1 Port={self.port + 100 + i}"
                          for i in range(1, size + 1))
        text = (ROOT / "bench/commands/slurm.conf").read_text()
        self.conf.write_text(text.format(dir=self.dir, port=self.port, port1=self.port + 1, nodes=nodes) + more)
        for i in range(8):
            (self.dir / f"gpu{i}").touch()  # Slurm wants files that exist
        (self.dir / "gres.conf").write_text(f"NodeName=n[1-{size}] Name=gpu File={self.dir}/gpu[0-7]\n")
        (self.dir / "cgroup.conf").write_text("CgroupPlugin=disabled\n" if self.name != "slurm" else "")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH", "BERTH"))}
        self.env["SLURM_CONF"] = str(self.conf)
        self.daemons: list[subprocess.Popen] = []
        self.group = None
        if (CPUACCT / "cpuacct.usage").exists():
            self.group = CPUACCT / f"berth-bench-{os.getpid()}-{self.name}"
            self.group.mkdir()

    def enter(self):
        """The process that calls this, and its children, count as this system's."""
        if self.group:
            (self.group / "cgroup.procs").write_text(str(os.getpid()))

    def spawn(self, *words: str) -> subprocess.Popen:
        log = (self.dir / "daemons.log").open("a")
        daemon = subprocess.Popen(words, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                  preexec_fn=self.enter, cwd=self.dir)
        self.daemons.append(daemon)
        return daemon

    def cpu(self) -> float:
        """CPU seconds of everything that belongs to this system so far."""
        return int((self.group / "cpuacct.usage").read_text()) / 1e9

    def controller_cpu(self) -> float:
        total = 0
        for task in pathlib.Path(f"/proc/{self.daemons[0].pid}/task").iterdir():
            try:
                total += int((task / "schedstat").read_text().split()[0])
            except OSError:
                pass
        return total / 1e9

    def controller_rss(self) -> int:
        """KiB."""
        for line in pathlib.Path(f"/proc/{self.daemons[0].pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        return 0

    def script_environment(self) -> dict[str, str]:
        """What bench/scripts read."""
        nodes = ",".join(f"n{i}:{daemon.pid}" for i, daemon in enumerate(self.daemons[1:], 1))
        return self.env | {"PATH": f"{self.bin}:/usr/bin:/bin", "BENCH_CGROUP": str(self.group),
                           "BENCH_PIDS": f"ctld:{self.daemons[0].pid},{nodes}"}

    def spawn_command(self, *words: str) -> tuple[float, float]:
        """Wall and CPU seconds of a command, without the cost of a copy of this process."""
        null = os.open("/dev/null", os.O_RDWR)
        begin = time.perf_counter()
        pid = os.posix_spawn(str(self.bin / words[0]), words, self.env,
                             file_actions=[(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)])
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter() - begin
        os.close(null)
        if status != 0:
            raise RuntimeError(f"{self.name}: {' '.join(words)} failed")
        return wall, usage.ru_utime + usage.ru_stime

    def largest_rss(self, *words: str) -> int:
        """KiB of a command that repeats itself (-i): read while it sleeps, as wait4 would count this process too."""
        with subprocess.Popen([str(self.bin / words[0]), *words[1:]], env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            time.sleep(0.5)
            status = pathlib.Path(f"/proc/{child.pid}/status").read_text()
            child.kill()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))

    def run(self, *words: str, check: bool = True, text: bool = False) -> tuple[float, float, str]:
        """Wall seconds, CPU seconds of the command itself, and its output."""
        out = subprocess.PIPE if text else subprocess.DEVNULL
        begin = time.perf_counter()
        child = subprocess.Popen([str(self.bin / words[0]), *words[1:]], env=self.env, cwd=self.dir,
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE if check else out,
                                 preexec_fn=self.enter if self.group else None)
        printed, errors = b"", b""
        if text or check:
            printed, errors = self._drain(child)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        wall = time.perf_counter() - begin
        if check and status != 0:
            raise RuntimeError(f"{self.name}: {' '.join(words)} failed: {(errors or b'').decode()}")
        return wall, usage.ru_utime + usage.ru_stime, (printed or b"").decode()

    @staticmethod
    def _drain(child):
        printed = child.stdout.read() if child.stdout else b""
        errors = child.stderr.read() if child.stderr else b""
        return printed, errors

    def jobs(self, *states: str) -> int:
        return len(self.run("squeue", "-h", "-o", "%i", "-r", *(["-t", ",".join(states)] if states else []),
                            text=True)[2].split())

    def wait_empty(self, seconds: float = 600, pause: float = 0.02):
        deadline = time.monotonic() + seconds
        while self.jobs():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name}: the queue did not empty")
            time.sleep(pause)

    def wait_idle(self, seconds: float = 90):
        deadline = time.monotonic() + seconds
        seen = ""
        while time.monotonic() < deadline:
            seen = self.run("sinfo", "-h", "-o", "%D %t", text=True, check=False)[2].strip()
            if seen == f"{self.size} idle":
                return
            time.sleep(0.1)
        raise RuntimeError(f"{self.name}: nodes are {seen!r}; see {self.dir}/daemons.log")

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        if self.group:
            for _ in range(50):
                try:
                    self.group.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)
        shutil.rmtree(self.dir, ignore_errors=True)


class Berth(System):
    name = "berth"
    port = 28317
    bin = ROOT / "build" / "bin"

    def start(self):
        self.spawn(str(self.bin / "berthctld"), "-f", str(self.conf), "--foreground", "--emulate",
                   "--state", str(self.dir / "state"))
        self.spawn(str(self.bin / "berthd"), "-f", str(self.conf), "--foreground", "--emulate",
                   "--spool", str(self.dir / "spool"))
        self.wait_idle()


class Slurm(System):
    name = "slurm"
    port = 28117
    bin = pathlib.Path("/usr/bin")

    @staticmethod
    def installed() -> bool:
        return all(pathlib.Path(p).exists() for p in ("/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/sbin/munged"))

    def start(self):
        subprocess.run(["sh", "-c", "mkdir -p /run/munge; chown munge: /run/munge; pgrep -x munged >/dev/null || "
                        "su -s /bin/sh munge -c /usr/sbin/munged || /usr/sbin/munged --force"], check=True)
        for i in range(1, NODES + 1):
            (self.dir / f"spool.n{i}").mkdir()
        self.spawn("/usr/sbin/slurmctld", "-D", "-f", str(self.conf))
        for i in range(1, NODES + 1):
            self.spawn("/usr/sbin/slurmd", "-D", "-N", f"n{i}", "-f", str(self.conf))
        self.wait_idle()
