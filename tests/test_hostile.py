"""What a user can write into a job, against what root does with it: paths, variables, and words that are a shell's or SQL's.

BERTH_RACES: for how many jobs a path is swapped under the supervisor (30; 1,000 in `make soak`)."""

import contextlib
import hashlib
import os
import pathlib
import pwd
import stat
import subprocess
import sys
import tempfile

import pytest

from cluster import Cluster, as_user, until
from test_text import OPTIONS

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: jobs of another user"),
]
USER = "nobody"
UID = pwd.getpwnam(USER).pw_uid
RACES = int(os.environ.get("BERTH_RACES", 30))
CANARY = "canary-of-root"
CONF = """\
ClusterName=hostile
SlurmctldHost=localhost
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=10
KillWait=1
Prolog={dir}/prolog
Epilog={dir}/epilog
NodeName=n1 Sockets=1 CoresPerSocket=16 RealMemory=4000
PartitionName=main Nodes=ALL Default=YES
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    conf = tmp_path_factory.mktemp("conf")
    for name in ("prolog", "epilog"):
        (conf / name).write_text(f"#!/bin/sh\n/usr/bin/env -0 >{conf}/{name}.$SLURM_JOB_ID.new\n"
                                 f"/bin/mv {conf}/{name}.$SLURM_JOB_ID.new {conf}/{name}.$SLURM_JOB_ID\n")
        (conf / name).chmod(0o755)
    (conf / "slurm.conf").write_text(CONF.format(dir=conf))
    with Cluster(emulate=conf) as c:
        c.scripts = conf
        c.mine = pathlib.Path(c.own) / "users"  # the user's own directory
        c.mine.mkdir()
        os.chown(c.mine, UID, -1)
        yield c


# ---- paths --------------------------------------------------------------------------------------

class Roots:
    """Things of root's beside the user's directory, and whether they are as they were."""

    def __init__(self, c):
        base = pathlib.Path(c.own)
        self.secret = base / "secret"
        self.closed = base / "closed"
        self.public = base / "public"
        self.fifo, self.device = base / "fifo", base / "device"
        self.closed.mkdir(mode=0o700)
        self.public.mkdir(mode=0o755)
        self.files = [self.secret, self.closed / "file", self.public / "file"]
        for file in self.files:
            file.write_text(CANARY)
            file.chmod(0o600)
        os.mkfifo(self.fifo, 0o600)
        os.mknod(self.device, 0o600 | stat.S_IFCHR, os.makedev(1, 7))
        self.watched = [*self.files, pathlib.Path("/etc/shadow"), pathlib.Path("/etc/passwd"), c.conf,
                        c.state / "state/cluster.key"]
        self.before = self.now()

    def now(self):
        files = [(str(f), hashlib.sha256(f.read_bytes()).hexdigest(), f.stat().st_uid, f.stat().st_mode) for f in self.watched]
        return files + [sorted(os.listdir(d)) for d in (self.closed, self.public)]


@pytest.fixture(scope="module")
def roots(cluster):
    return Roots(cluster)


def forms(c, roots):
    mine, agent = pathlib.Path(tempfile.mkdtemp(dir=c.mine)), c.pid("node")
    os.chown(mine, UID, -1)
    (mine / "link").symlink_to(roots.secret)
    (mine / "dangling").symlink_to(roots.public / "made")
    (mine / "folder").symlink_to(roots.closed)
    (mine / "chain").symlink_to(mine / "link")
    (mine / "sub").mkdir()
    os.chown(mine / "sub", UID, -1)
    with contextlib.suppress(OSError):
        os.link(roots.secret, mine / "hard")  # as a user could where the kernel does not forbid it
    key = c.state / "state/cluster.key"
    return {
        "link": mine / "link", "dangling link": mine / "dangling", "link to a directory": mine / "folder/new",
        "link to a link": mine / "chain", "hard link": mine / "hard", "dots": f"{mine}/../secret",
        "more dots": f"{mine}/sub/../../closed/file", "absolute": roots.secret, "closed": roots.closed / "new",
        "public": roots.public / "new", "a directory": roots.public, "fifo": roots.fifo, "device": roots.device,
        "shadow": "/etc/shadow", "passwd": "/etc/passwd", "key": key, "conf": c.conf,
        "fd 3": "/proc/self/fd/3", "fd 4": "/proc/self/fd/4", "fd 5": "/proc/self/fd/5", "thread": "/proc/thread-self/fd/5",
        "agent's log": f"/proc/{agent}/fd/2", "agent's root": f"/proc/{agent}/root{roots.secret}",
        "agent's environment": f"/proc/{agent}/environ", "agent's memory": f"/proc/{agent}/mem",
        "name": f"{mine}/%x", "user": f"{mine}/%u/%x", "long": f"{mine}/{'a' * 300}", "line": f"{mine}/a\nb",
    }


def test_outputs_and_inputs_are_opened_with_the_users_rights_alone(cluster, roots):
    jobs = {}
    for name, path in forms(cluster, roots).items():
        for kind, words in {
                "output": ["-o", path], "error": ["-o", "/dev/null", "-e", path], "append": ["-o", path, "--open-mode=append"],
                "input": ["-i", path, "-o", f"{cluster.mine}/got.%j"],
                "step": None}.items():
            script = "cat; echo written; echo written >&2"
            if words is None:
                words = ["-o", "/dev/null"]
                script = f"srun -n1 --mpi=none -o '{path}' -e '{path}' echo written; srun -n1 --mpi=none -i '{path}' cat >{cluster.mine}/got.$SLURM_JOB_ID"
            done = cluster.run("sbatch", "--parsable", "-J", "../../secret", "-D", cluster.mine, *words, "--wrap", script,
                               user=USER, rc=None)
            if done.returncode == 0:
                jobs[done.stdout.strip()] = (name, kind)
    assert len(jobs) > 100
    until(lambda: cluster.out("squeue", "-h") == "", seconds=120, what="the end of all jobs")
    assert roots.now() == roots.before
    shadow = pathlib.Path("/etc/shadow").read_bytes().splitlines()[0]
    for job, what in jobs.items():
        got = cluster.mine / f"got.{job}"
        if got.exists():
            text = got.read_bytes()
            assert CANARY.encode() not in text and shadow not in text, (what, text[:200])
    read = [job for job, what in jobs.items() if what == ("passwd", "input")]
    assert b"root:" in (cluster.mine / f"got.{read[0]}").read_bytes()  # what the user may read he does
    for folder, _, names in os.walk(cluster.mine):
        for name in names:
            file = pathlib.Path(folder, name)
            assert file.lstat().st_uid == UID or file.is_symlink() or name == "hard", file
    assert cluster.out("sinfo", "-h", "-o", "%T") == "idle"


SWAP = """
import os, sys
here, target = sys.argv[1:]
os.chdir(here)
os.mkdir("real")
print("ready", flush=True)
while os.getppid() != 1:
    try:
        os.rename("real", "place"); os.rename("place", "real")
        os.symlink(target, "place"); os.unlink("place")
    except OSError: pass
"""


def test_a_path_that_changes_under_the_supervisor_gains_nothing(cluster, roots):
    racer = subprocess.Popen([sys.executable, "-c", SWAP, cluster.mine, roots.closed], stdout=subprocess.PIPE, text=True,
                             **as_user(USER))
    try:
        assert racer.stdout.readline() == "ready\n"
        for i in range(RACES):
            where = ["-o", f"{cluster.mine}/place/out.%j"] if i % 2 else ["-D", f"{cluster.mine}/place", "-o", "out.%j"]
            cluster.run("sbatch", *where, "--wrap", f"echo x >{cluster.mine}/place/file; srun -n1 -o place/step.%j true",
                        user=USER)
        until(lambda: cluster.out("squeue", "-h") == "", seconds=120, what="the end of all jobs")
    finally:
        racer.kill()
        racer.wait()
        racer.stdout.close()
    assert roots.now() == roots.before
    assert cluster.out("sinfo", "-h", "-o", "%T") == "idle"


def test_no_user_writes_where_root_works(cluster):
    """Nothing below the state, the spool or the run directory is in a directory that a user may write, so that there is no path
    for him to swap."""
    job = cluster.submit("-o", "/dev/null", "--wrap", "srun -n1 sleep 300", user=USER)
    try:
        cluster.wait_state(job, "RUNNING")
        until(lambda: len(cluster.out("squeue", "-h", "-s", "-j", job).splitlines()) == 2, what="both steps")
        run = pathlib.Path("/run/berth")
        for top in (cluster.state, run):
            for folder, folders, names in os.walk(top):
                found = os.stat(folder)
                assert found.st_uid == 0 and not found.st_mode & 0o022, folder
                for name in names:
                    file = os.lstat(os.path.join(folder, name))
                    open_to_all = stat.S_ISSOCK(file.st_mode) or stat.S_ISLNK(file.st_mode)
                    assert open_to_all or (file.st_uid in (0, UID) and not file.st_mode & 0o022), (folder, name)
    finally:
        cluster.run("scancel", job)


# ---- variables ----------------------------------------------------------------------------------

EVIL = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void) {
  char text[64];
  int fd = open(FILE_NAME, O_WRONLY | O_APPEND);
  int size = snprintf(text, sizeof text, "%d %d\n", (int)getuid(), (int)geteuid());
  if (fd >= 0 && write(fd, text, size) < 0) _exit(3);
}
"""
# What a prolog is told, and nothing else (PWD is the shell's own); an epilog also how the job ended.
TOLD = {"PATH", "PWD", "SLURMD_NODENAME", "SLURM_CLUSTER_NAME", "SLURM_CONF", "SLURM_JOBID", "SLURM_JOB_GID", "SLURM_JOB_GROUP",
        "SLURM_JOB_ID", "SLURM_JOB_NAME", "SLURM_JOB_NODELIST", "SLURM_JOB_PARTITION", "SLURM_JOB_RESTART_COUNT", "SLURM_JOB_UID",
        "SLURM_JOB_USER", "SLURM_JOB_WORK_DIR", "SLURM_SCRIPT_CONTEXT"}
TOLD_AT_THE_END = {"SLURM_JOB_DERIVED_EC", "SLURM_JOB_EXIT_CODE", "SLURM_JOB_EXIT_CODE2"}


def hostile_variables(c, library, program):
    variables = {name: str(program) for name in ("BASH_ENV", "ENV", "PROMPT_COMMAND", "PERL5DB", "PYTHONSTARTUP", "EDITOR", "PAGER")}
    variables.update({name: str(library) for name in ("LD_PRELOAD", "LD_AUDIT")})
    variables.update({name: str(c.mine) for name in (
        "LD_LIBRARY_PATH", "GCONV_PATH", "PYTHONPATH", "PERL5LIB", "RUBYLIB", "NODE_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES",
        "TMPDIR", "HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TERMINFO", "OPENSSL_ENGINES", "OPENSSL_MODULES", "CDPATH")})
    variables.update(IFS="/", PS4="$(id)", SHELLOPTS="xtrace", BASHOPTS="extglob", GLIBC_TUNABLES="glibc.malloc.check=3", TZ=":/etc/shadow",
                     OPENSSL_CONF=str(program), SSLKEYLOGFILE=f"{c.mine}/keys", MALLOC_TRACE=f"{c.mine}/trace",
                     RES_OPTIONS="debug", LD_DEBUG="all", LD_DEBUG_OUTPUT=f"{c.mine}/debug", PERL5OPT="-Mevil",
                     BERTH_CRASH_AT="node.after_spawn", BERTH_BIN=str(c.mine), SLURM_JOB_ID="1", SLURM_JOB_UID="0", SLURM_UID="0",
                     SLURM_JOB_USER="root", SLURM_CONF=str(c.conf), SPANK_EVIL="1", SPANK_SLURM_JOB_ID="0", _SLURM_SPANK_OPTION_x="1",
                     PATH=f"{c.mine}:/usr/bin:/bin:{c.env['PATH']}")
    variables.update({"BASH_FUNC_ls%%": "() { /bin/id; }", "BASH_FUNC_mv%%": f"() {{ {program}; }}"})
    variables.update({f"SPANK_{i}": "x" for i in range(60)} | {f"SLURM_EVIL_{i}": "x" for i in range(60)} |
                     {f"EVIL_{i}": "$(id)`id`\n;id" for i in range(60)})
    return variables


def test_variables_of_a_user_reach_nothing_that_runs_as_root(cluster):
    c = cluster
    loaded = c.mine / "loaded"
    loaded.touch()
    loaded.chmod(0o666)
    library, source, program = c.mine / "evil.so", c.mine / "evil.c", c.mine / "evil.sh"
    source.write_text(EVIL)
    subprocess.run(["gcc-12", "-shared", "-fPIC", f'-DFILE_NAME="{loaded}"', "-o", library, source], check=True)
    program.write_text(f"#!/bin/sh\n/usr/bin/id -u >>{loaded}\n")
    program.chmod(0o755)
    for name in ("env", "id", "mv", "sh", "getent", "berth-stepd"):
        (c.mine / name).write_text(f"#!/bin/sh\necho $(/usr/bin/id -u) path >>{loaded}\nexec /bin/{name} \"$@\"\n")
        (c.mine / name).chmod(0o755)
    variables = hostile_variables(c, library, program)
    assert len(variables) >= 200
    # The command itself is static, so that only its job is harmed.
    job = c.out("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "srun -n1 /bin/sleep 0.1; /bin/sleep 300", user=USER, env=variables)
    try:
        c.wait_state(job, "RUNNING")
        until(lambda: loaded.read_text(), what="the library in the user's own processes")
        for process in pathlib.Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                if process.stat().st_uid == 0 and str(library) in (process / "maps").read_text():
                    pytest.fail(f"{library} is in a process of root: {(process / 'cmdline').read_bytes()}")
    finally:
        c.run("scancel", job)
    until(lambda: (c.scripts / f"epilog.{job}").exists(), what="the epilog")
    assert {int(line.split()[0]) for line in loaded.read_text().splitlines()} == {UID}, loaded.read_text()
    for name in ("prolog", "epilog"):
        told = dict(word.split("=", 1) for word in (c.scripts / f"{name}.{job}").read_text().split("\0") if word)
        assert set(told) == TOLD | (TOLD_AT_THE_END if name == "epilog" else set())
        assert told["SLURM_JOB_ID"] == job and told["SLURM_JOB_UID"] == str(UID) and str(c.mine) not in told["PATH"], told
    assert c.out("sinfo", "-h", "-o", "%T") == "idle"  # BERTH_CRASH_AT was nobody's order


# ---- words --------------------------------------------------------------------------------------

def payloads(file):
    return [f"$(touch {file})", f"`touch {file}`", f"x; touch {file}", f"x | touch {file}", f"x && touch {file} #", f"'; touch {file}; '",
            f'"; touch {file}; "', f"x\ntouch {file}\n", f"-x; touch {file}", f"${{IFS}}$(touch${{IFS}}{file})", "%n%s%p%1000000d",
            "{}{0}{1:>1000000}", "x'; DROP TABLE jobs; --", "x' OR '1'='1", 'x" OR "1"="1', "x%' OR name LIKE '%", "\\", "../../../etc/passwd"]


def test_words_are_neither_a_shells_nor_sqls(cluster):
    file = cluster.work / "touched"
    known = [cluster.submit("-H", "-J", "before", "-o", "/dev/null", "--wrap", "true") for _ in range(3)]

    def history():
        return sorted(set(cluster.out("sacct", "-n", "-X", "-P", "-o", "jobid", "-j", ",".join(known)).split()))
    until(lambda: history() == sorted(known), what="the jobs in the history")
    for payload in payloads(file):
        job = ""
        for option in OPTIONS:
            done = cluster.run("sbatch", "--parsable", "-H", "-o", "/dev/null", f"{option}={payload}", "--wrap", "true", user=USER, rc=None)
            job = done.stdout.strip() if done.returncode == 0 else job
        for words in (["squeue", "-n", payload], ["squeue", "-u", payload], ["squeue", "-p", payload], ["squeue", "-w", payload],
                      ["sacct", "-X", "-n", "--name", payload], ["sacct", "-X", "-n", "-u", payload], ["sacct", "-X", "-n", "-A", payload],
                      ["sacct", "-X", "-n", "-r", payload], ["sacct", "-X", "-n", "-q", payload], ["sacct", "-X", "-n", "-N", payload],
                      ["sacct", "-X", "-n", "-s", payload], ["sinfo", "-p", payload], ["sprio", "-j", payload],
                      ["scontrol", "show", "job", payload], ["scontrol", "show", "node", payload], ["scancel", "-n", payload]):
            said = cluster.run(*words, user=USER, rc=None)
            assert "before" not in said.stdout, (words, said.stdout)
        if job:
            for key in ("Comment", "JobName", "Account", "WCKey", "Features", "Partition", "Dependency", "AdminComment"):
                cluster.run("scontrol", "update", f"jobid={job}", f"{key}={payload}", user=USER, rc=None)
            cluster.run("scancel", job)
    for name in payloads(file):  # some run: what a prolog and a supervisor make of a name
        cluster.run("sbatch", "-J", name, f"--comment={name}", "-o", "/dev/null", "--wrap", "srun -n1 true", user=USER, rc=None)
    cluster.run("scancel", "-t", "pending", "-u", USER, rc=None)
    until(lambda: cluster.out("squeue", "-h", "-u", USER) == "", seconds=120, what="the end of the jobs")
    assert not file.exists()
    assert history() == sorted(known) and all(cluster.job_state(j) == "PENDING" for j in known)
    for job in known:
        cluster.run("scancel", job)
