"""Steps on many nodes by a tree of relays, and clients that attach to a running step."""

import os
import pwd
import signal
import subprocess

import pytest

from cluster import Cluster, processes_naming, until

pytestmark = pytest.mark.live

NODES = 13  # srun - 2 relays - 4 - …: three levels with a width of 2
CONF = f"""ClusterName=tree
SlurmctldHost=localhost
TreeWidth=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=5
NodeName=n[0-{NODES - 1}] CPUs=2 RealMemory=1000
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@pytest.fixture(scope="module")
def conf(tmp_path_factory):
    path = tmp_path_factory.mktemp("tree")
    (path / "slurm.conf").write_text(CONF)
    return path


@pytest.fixture(scope="module")
def tree(conf):
    with Cluster(emulate=conf) as c:
        yield c


def srun(*words):
    return ["srun", "-Q", f"-N{NODES}", f"-n{NODES}", *words]


def supervisors(cluster):
    """Of this cluster: the processes that its agent has started."""
    agent = cluster.pid("node")
    found = []
    for entry in os.listdir("/proc"):
        try:
            stat = open(f"/proc/{entry}/stat").read().rsplit(")", 1)[1].split() if entry.isdigit() else []
        except OSError:
            continue
        if stat and int(stat[1]) == agent and stat[0] not in "ZX":
            found.append(int(entry))
    return found


def relays(cluster):
    """Those that have no tasks; with their tasks asleep the supervisors have some each."""
    parents = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            parents.add(int(open(f"/proc/{entry}/stat").read().rsplit(")", 1)[1].split()[1]))
        except OSError:
            continue
    return [pid for pid in supervisors(cluster) if pid not in parents]


def sleeping(cluster, *words, **options):
    """A step whose tasks have all said so and sleep; and the file they wrote it to."""
    step = cluster.popen(*srun(*words, "sh", "-c", "echo up; exec sleep 1000"), **options)
    for _ in range(NODES):
        assert step.stdout.readline().strip().endswith("up")
    return step


def nothing_left(cluster):
    until(lambda: not supervisors(cluster), what="the end of all supervisors")
    until(lambda: not any("sleep 1000" in text for text in processes_naming(str(cluster.conf)).values()),
          what="the end of all tasks")
    cluster.wait_idle()


def test_all_ranks_are_heard_with_their_labels(tree):
    lines = tree.run(*srun("-l", "sh", "-c", "echo $SLURM_PROCID $SLURMD_NODENAME")).stdout.splitlines()
    assert sorted(lines) == sorted(f"{i:2}: {i} n{i}" for i in range(NODES))


def test_input_reaches_everyone(tree):
    text = "".join(f"line {i} {'x' * 100}\n" for i in range(20000))
    done = tree.run(*srun("md5sum"), input=text)
    assert len(done.stdout.splitlines()) == NODES
    assert len(set(done.stdout.splitlines())) == 1
    last = tree.out(*srun("-l", f"--input={NODES - 1}", "cat"), input="one\n")
    assert last == f"{NODES - 1}: one"


def test_much_output_comes_through_whole(tree):
    done = tree.run(*srun("seq", "1", "20000"))
    lines = done.stdout.splitlines()
    assert len(lines) == 20000 * NODES
    assert lines.count("20000") == NODES


def test_exit_codes_and_their_lines(tree):
    done = tree.run(*srun("sh", "-c", "exit $SLURM_PROCID"), rc=NODES - 1)
    for rank in range(1, NODES):
        assert f"srun: error: n{rank}: task {rank}: Exited with exit code {rank}" in done.stderr


def test_kill_on_bad_exit(tree):
    done = tree.run(*srun("-K", "sh", "-c", f"[ $SLURM_PROCID = {NODES - 1} ] && exit 3; exec sleep 1000"), rc=None)
    assert done.returncode != 0
    assert f"n{NODES - 1}: task {NODES - 1}: Exited with exit code 3" in done.stderr
    assert "Terminated" in done.stderr
    nothing_left(tree)


def test_signals_reach_all_tasks(tree):
    step = tree.popen(*srun("sh", "-c", "trap 'echo got; exit 0' USR1; echo up; while :; do sleep 0.1; done"))
    for _ in range(NODES):
        assert step.stdout.readline() == "up\n"
    step.send_signal(signal.SIGUSR1)
    out, _ = step.communicate(timeout=60)
    assert out == "got\n" * NODES
    assert step.returncode == 0
    nothing_left(tree)


def test_a_killed_srun_leaves_nothing(tree):
    step = sleeping(tree)
    assert len(relays(tree)) >= 4
    step.kill()
    step.communicate()
    nothing_left(tree)


def test_a_killed_relay_takes_its_nodes_along_and_they_are_named(tree):
    step = sleeping(tree)
    os.kill(relays(tree)[0], signal.SIGKILL)
    _, err = step.communicate(timeout=60)
    assert step.returncode != 0
    assert "srun: error: Node failure on n" in err
    assert "berth: the " in err and "was lost" in err
    nothing_left(tree)


def test_a_program_that_is_missing_is_told_once_for_each_task(tree):
    done = tree.run(*srun("/nonexistent/program"), rc=2)
    assert done.stderr.count("execve(): /nonexistent/program: No such file or directory") == NODES


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_relays_run_as_the_user(tree):
    user = "games"  # whom Debian always has
    uid = pwd.getpwnam(user).pw_uid
    step = sleeping(tree, user=user)
    for pid in relays(tree):
        assert os.stat(f"/proc/{pid}").st_uid in (uid, 0)  # /proc shows root for what is not dumpable
        fields = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status").read().splitlines())
        assert set(fields["Uid"].split()) == {str(uid)}
    step.terminate()
    step.communicate(timeout=60)
    nothing_left(tree)


def test_attached_clients_see_output_and_send_input(tree):
    step = tree.popen("srun", "-Q", "-n2", "sh", "-c", "echo up; while read x; do echo \"$SLURM_PROCID $x\"; done",
                      stdin=subprocess.PIPE)
    for _ in range(2):
        assert step.stdout.readline() == "up\n"
    job = tree.out("squeue", "-h", "-o", "%i").split()[-1]
    layout = tree.out("sattach", "--layout", f"{job}.0")
    assert "2 tasks" in layout
    attached = tree.popen("sattach", "-l", f"{job}.0", stdin=subprocess.PIPE)
    attached.stdin.write("hello\n")
    attached.stdin.flush()
    assert sorted(attached.stdout.readline() for _ in range(2)) == ["0: 0 hello\n", "1: 1 hello\n"]
    assert sorted(step.stdout.readline() for _ in range(2)) == ["0 hello\n", "1 hello\n"]
    step.stdin.write("own\n")
    step.stdin.flush()
    assert sorted(attached.stdout.readline() for _ in range(2)) == ["0: 0 own\n", "1: 1 own\n"]
    attached.stdin.close()  # the end of its input is not the end of the step's
    step.stdin.write("again\n")
    step.stdin.flush()
    assert sorted(attached.stdout.readline() for _ in range(2)) == ["0: 0 again\n", "1: 1 again\n"]
    attached.send_signal(signal.SIGINT)  # leaves the step alone
    attached.wait(timeout=60)
    assert sorted(step.stdout.readline() for _ in range(2)) == ["0 own\n", "1 own\n"]
    assert sorted(step.stdout.readline() for _ in range(2)) == ["0 again\n", "1 again\n"]
    out, _ = step.communicate("last\n", timeout=60)
    assert sorted(out.splitlines()) == ["0 last", "1 last"]
    assert step.returncode == 0


def test_one_task_of_an_attached_step(tree):
    step = tree.popen("srun", "-Q", "-n2", "sh", "-c", "echo up; while read x; do echo \"$SLURM_PROCID $x\"; done",
                      stdin=subprocess.PIPE)
    for _ in range(2):
        assert step.stdout.readline() == "up\n"
    job = tree.out("squeue", "-h", "-o", "%i").split()[-1]
    attached = tree.popen("sattach", "--input-filter=1", "--output-filter=1", f"{job}.0", stdin=subprocess.PIPE)
    attached.stdin.write("hello\n")
    attached.stdin.flush()
    assert attached.stdout.readline() == "1 hello\n"
    assert step.stdout.readline() == "1 hello\n"
    attached.kill()
    attached.communicate()
    step.communicate(timeout=60)
    assert step.returncode == 0
    done = tree.run("sattach", f"{job}.0", rc=None)
    assert done.returncode != 0 and "sattach: error:" in done.stderr
