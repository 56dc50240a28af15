"""A live cluster for a test: real daemons in a directory of their own, always ended.

    with Cluster(emulate="4x4:a100") as c:
        job = c.submit("--wrap", "hostname")
        c.wait_state(job, "COMPLETED")

Waiting is by asking until something is so, with generous limits: the tests share two cores with everything
else on the machine. A wait that fails shows the ends of the logs.
"""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE", "BOOT_FAIL")
# How much longer everything may take than on a machine of its own; tools/vm says it of an emulated one.
PATIENCE = float(os.environ.get("BERTH_TEST_PATIENCE", 1))
SECONDS = 60 * PATIENCE  # how long one thing may take


def bin_dir() -> pathlib.Path:
    return ROOT / os.environ.get("BERTH_BIN", "build/bin")


def clean_environment(**more) -> dict:
    """This process's environment without a trace of another cluster."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("SLURM", "SBATCH", "SALLOC", "SRUN", "BERTH", "XDG_"))}
    env.update(LANG="C", LC_ALL="C", PATH=f"{bin_dir()}:/usr/local/bin:/usr/bin:/bin")
    env.update(more)
    return env


def remove_groups(spool):
    """The cgroups that an agent with this spool left behind, where nobody is in them."""
    key = run_key(spool)
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, mount, kind, *_ = line.split()
        if not kind.startswith("cgroup"):
            continue
        for top in pathlib.Path(mount).glob("slurm*"), pathlib.Path(mount).glob("*.slice/slurmstepd*.scope"):
            for group in top:
                with contextlib.suppress(OSError):  # another's, or no attributes here
                    if key not in group.name and os.getxattr(group, "user.berth.spool").decode() != str(spool):
                        continue
                    for directory, _, _ in os.walk(group, topdown=False):
                        os.rmdir(directory)


def run_key(conf) -> str:
    """The directory below /run/berth that belongs to a slurm.conf."""
    value = 0xCBF29CE484222325
    for byte in os.path.realpath(conf).encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def controller_socket(cluster) -> str:
    """The socket is in the directory that berth keeps for this slurm.conf."""
    uid = os.geteuid()
    bases = ["/run/berth"] if uid == 0 else [cluster.env.get("XDG_RUNTIME_DIR", "") + "/berth", f"/tmp/berth-{uid}"]
    for base in bases:
        path = pathlib.Path(base) / run_key(cluster.conf) / "controller.sock"
        if path.exists():
            return str(path)
    raise AssertionError(f"no socket of {cluster.conf} in {bases}")


def as_user(name) -> dict:
    """Arguments of subprocess that make it run as another user."""
    if name is None:
        return {}
    user = pwd.getpwnam(name)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def until(done, seconds=SECONDS, what="it"):
    """Asks until done() gives something true, and returns that."""
    end = time.monotonic() + seconds
    pause = 0.02
    while True:
        got = done()
        if got:
            return got
        assert time.monotonic() < end, f"{what} did not happen within {seconds} s"
        time.sleep(pause)
        pause = min(pause * 1.5, 0.3)


def processes_naming(text: str) -> dict:
    """Living processes whose command line or environment holds the text: pid → command line."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            continue
        if state not in "ZX" and text.encode() in command + environment:
            found[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace")
    return found


def receivers_of(job) -> dict:
    """Living processes that receive files of sbcast for a job: pid → the files that they write."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            # What they are known by: they hold their record.
            if not entry.name.isdigit() or f"/file.{job}." not in os.readlink(entry / "fd" / "5"):
                continue
            targets = [os.readlink(link) for link in (entry / "fd").iterdir() if int(link.name) > 5]
        except OSError:
            continue
        found[int(entry.name)] = [target for target in targets
                                  if target.startswith("/") and not target.startswith(("/sys/", "/proc/"))]
    return found


class Cluster:
    def __init__(self, emulate=None, state=None, user=None):
        self.user = user
        self.own = tempfile.mkdtemp(prefix="berth-", dir="/tmp")
        self.emulate = str(emulate) if emulate is not None else None
        if self.emulate and os.path.isdir(self.emulate):
            # A copy: two clusters of the same directory would both be named by its slurm.conf.
            self.emulate = shutil.copytree(self.emulate, f"{self.own}/conf")
        if user:
            os.chown(self.own, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        os.chmod(self.own, 0o755)
        self.state = pathlib.Path(state or os.path.join(self.own, "state"))
        self.work = pathlib.Path(self.own) / "work"
        self.work.mkdir()
        os.chmod(self.work, 0o777)
        self.conf = self.state / "slurm.conf"
        self.env = clean_environment(SLURM_CONF=str(self.conf), HOME=self.own, XDG_STATE_HOME=f"{self.own}/home")
        self.up_text = ""

    # ---- its life -------------------------------------------------------------------------
    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop(check=False)
            raise
        return self

    def __exit__(self, kind, value, trace):
        self.stop(check=kind is None)

    def up(self, *words, timeout=2 * SECONDS) -> subprocess.CompletedProcess:
        command = [bin_dir() / "berth", "up", "--state", self.state, *words]
        if self.emulate is not None:
            command += ["--emulate", self.emulate]
        return self.call(command, timeout=timeout, user=self.user)

    def start(self):
        run = self.up()
        assert run.returncode == 0, f"berth up: {run.returncode}\n{run.stdout}{run.stderr}\n{self.logs()}"
        self.up_text = run.stdout

    def restart_controller(self):
        os.kill(self.pid("controller"), signal.SIGKILL)
        self.start()

    def restart_agent(self):
        os.kill(self.pid("node"), signal.SIGKILL)
        self.start()

    def down(self, timeout=2 * SECONDS) -> subprocess.CompletedProcess:
        return self.call([bin_dir() / "berth", "down", "--state", self.state], timeout=timeout, user=self.user)

    def stop(self, check=True):
        problem = ""
        if self.state.exists():
            with contextlib.suppress(subprocess.TimeoutExpired):
                run = self.down()
                if run.returncode != 0:
                    problem = f"berth down: {run.returncode}\n{run.stdout}{run.stderr}\n{self.logs()}"
        left = processes_naming(str(self.state))
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.own, ignore_errors=True)
        if check:
            assert not problem, problem
            assert not left, f"berth down left processes: {left}"

    def logs(self, lines=25) -> str:
        out = []
        for name in ("controller", "node"):
            path = self.state / "log" / f"{name}.log"
            if path.exists():
                out.append(f"--- {name}.log\n" + "\n".join(path.read_text(errors="replace").splitlines()[-lines:]))
        return "\n".join(out)

    def pid(self, which: str) -> int:
        """Of "controller" or "node", from the status that berth prints."""
        word = {"controller": "controller", "node": "node agent"}[which]
        for line in self.run("berth", "status", "--state", self.state).stdout.splitlines():
            if line.strip().startswith(word) and "process " in line:
                return int(line.split("process ")[1].split(",")[0])
        raise AssertionError(f"no {word} runs\n{self.logs()}")

    # ---- commands -------------------------------------------------------------------------
    def call(self, words, timeout=SECONDS, user=None, input=None, env=None, cwd=None):
        stdin = {"input": input} if input is not None else {"stdin": subprocess.DEVNULL}
        return subprocess.run([str(w) for w in words], env=dict(self.env, **(env or {})), cwd=cwd or self.work,
                              text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=timeout, **stdin, **as_user(user))

    def run(self, *words, rc=0, **options):
        """Runs a command; rc=None takes any exit code."""
        done = self.call(words, **options)
        if rc is not None:
            assert done.returncode == rc, (f"{' '.join(map(str, words))}: exit code {done.returncode}, not {rc}\n"
                                           f"{done.stdout}{done.stderr}\n{self.logs()}")
        return done

    def out(self, *words, **options) -> str:
        return self.run(*words, **options).stdout.strip()

    def popen(self, *words, user=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([str(w) for w in words], env=self.env, cwd=self.work, text=True, errors="replace",
                                **options, **as_user(user))

    def submit(self, *words, **options) -> str:
        return self.out("sbatch", "--parsable", *words, **options)

    def field(self, job, key: str) -> str:
        text = self.call(["scontrol", "-o", "show", "job", job]).stdout
        for word in text.split():
            if word.startswith(key + "="):
                return word[len(key) + 1:]
        return ""

    def job_state(self, job) -> str:
        return self.field(job, "JobState")

    def wait_state(self, job, *states, seconds=SECONDS) -> str:
        def there():
            state = self.job_state(job)
            return state if state in states else None
        try:
            return until(there, seconds, f"job {job} {' or '.join(states)}")
        except AssertionError as late:
            raise AssertionError(f"{late}; it is {self.job_state(job)} ({self.field(job, 'Reason')})\n"
                                 f"{self.logs()}") from None

    def wait_end(self, job, seconds=SECONDS) -> str:
        return self.wait_state(job, *ENDED, seconds=seconds)

    def wait_idle(self, seconds=SECONDS):
        def idle():
            return self.out("squeue", "-h") == "" and all(
                line.strip() == "idle" for line in self.out("sinfo", "-h", "-N", "-o", "%T").splitlines())
        until(idle, seconds, "an idle cluster")
