"""A copy of a machine, with its certificate and its name: refused as long as the machine is there, and told of."""

import shutil
import signal

import pytest

import cluster
from hosts import Hosts, end

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def hosts():
    with Hosts(3) as h:
        h.start()
        end(h[2].agent)
        yield h


def state(hosts, name):
    return hosts[0].run("sinfo", "-h", "-n", name, "-o", "%t").stdout.strip()


def start_copy(hosts, log):
    """h2 has the spool of h1, as if it was made from the same image, and takes itself for h1."""
    spool = hosts[2].home / "copied"
    shutil.rmtree(spool, ignore_errors=True)
    spool.mkdir(mode=0o755)
    for name in ("identity.pem", "epoch", "store-memory"):
        shutil.copy(hosts[1].home / "spool" / name, spool / name)
    (hosts[2].home / log).unlink(missing_ok=True)
    return hosts[2].spawn(cluster.bin_dir() / "berthd", "-f", hosts[2].conf, "-N", "h1", "--spool", spool, "--foreground",
                          log=log)


def text(hosts, index, log, after=0):
    path = hosts[index].home / log
    return path.read_text()[after:] if path.exists() else ""


def ran_on(hosts):
    return hosts[0].run("srun", "--mem=100", "-w", "h1", "hostname", check=False).stdout


def test_a_copy_is_refused_while_its_original_is_there(hosts):
    job = hosts[0].run("sbatch", "--parsable", "--mem=100", "-w", "h1", "-o", "/dev/null", "--wrap", "sleep 600").stdout.strip()
    cluster.until(lambda: state(hosts, "h1") == "mix", what="the job on h1")
    copy = start_copy(hosts, "copy.log")
    cluster.until(lambda: "node h1 was not accepted" in text(hosts, 2, "copy.log"), what="the refusal")
    assert "served by another agent, at 10.113.7.11 (h1:6818" in text(hosts, 2, "copy.log")
    assert "`berth join` gives it a name of its own" in text(hosts, 2, "copy.log")
    assert "node h1 may not register from 10.113.7.12" in text(hosts, 0, "berthctld.log")
    cluster.until(lambda: "another agent wanted to register as node h1, from 10.113.7.12" in text(hosts, 1, "berthd.log"),
                  what="h1 is told")
    # h1 goes on: its job, and new ones.
    assert ran_on(hosts) == "h1\n"
    assert hosts[0].run("squeue", "-h", "-j", job, "-o", "%T").stdout.strip() == "RUNNING"
    end(copy)
    hosts[0].run("scancel", job)


def test_a_restarted_agent_is_taken_at_once_and_a_replaced_machine_when_the_first_counts_as_gone(hosts):
    cluster.until(lambda: "*" not in state(hosts, "h1"), what="h1 is there")
    after = len(text(hosts, 0, "berthctld.log"))
    hosts.cut(1)  # nothing says that the connection of the first agent is dead
    end(hosts[1].agent, signal.SIGKILL)
    hosts.mend(1)
    hosts.start_agent(1)
    cluster.until(lambda: "1 of 1 nodes registered by the agent at 10.113.7.11" in text(hosts, 0, "berthctld.log", after),
                  seconds=15, what="h1 has registered again")
    assert "may not register" not in text(hosts, 0, "berthctld.log", after)
    assert ran_on(hosts) == "h1\n"

    after, told = len(text(hosts, 0, "berthctld.log")), len(text(hosts, 1, "berthd.log"))
    hosts.cut(1)
    copy = start_copy(hosts, "successor.log")
    cluster.until(lambda: "node h1 was not accepted" in text(hosts, 2, "successor.log"), what="the refusal")
    taken = "1 of 1 nodes registered by the agent at 10.113.7.12"
    cluster.until(lambda: taken in text(hosts, 0, "berthctld.log", after), seconds=2 * cluster.SECONDS, what="h1 counts as gone")
    log = text(hosts, 0, "berthctld.log", after)
    assert log.index("may not register from 10.113.7.12") < log.index("lost the agent of h1") < log.index(taken)
    # The first one comes back: now it is the second.
    hosts.mend(1)
    cluster.until(lambda: "served by another agent, at 10.113.7.12" in text(hosts, 1, "berthd.log", told),
                  seconds=2 * cluster.SECONDS, what="the first is refused")
    end(copy)
    cluster.until(lambda: ran_on(hosts) == "h1\n", what="h1 itself")
