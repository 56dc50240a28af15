"""What a user's process may do on a node, and that every job can be ended."""

import os

import pytest

from cluster import Cluster, until

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: jobs of another user"),
]

USER = "nobody"
CONF = """\
ClusterName=unkillable
SlurmctldHost=localhost
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=10
KillWait=1
UnkillableStepTimeout=2
{more}NodeName=n[1-2] Sockets=1 CoresPerSocket=4 RealMemory=4000
PartitionName=main Nodes=ALL Default=YES
"""


def conf_in(folder, more=""):
    (folder / "slurm.conf").write_text(CONF.format(more=more))
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(emulate=conf_in(tmp_path_factory.mktemp("conf"))) as c:
        yield c


# ---- niceness and limits ------------------------------------------------------------------------

def in_a_hurry(*words):
    """A command of an ordinary user that root has given the best niceness there is, and so asks for it."""
    return ["nice", "-n", "-20", "setpriv", f"--reuid={USER}", "--clear-groups", "--", *words]


def niceness_of_jobs(c):
    script = c.run(*in_a_hurry("sbatch", "--parsable", "-o", f"{c.work}/nice.%j", "--wrap", "nice; srun -n1 nice"))
    job = script.stdout.strip()
    c.wait_state(job, "COMPLETED")
    return {"srun": c.run(*in_a_hurry("srun", "-n1", "nice")), "sbatch": (c.work / f"nice.{job}").read_text()}


def test_niceness_is_the_daemons_unless_the_configuration_says_so(cluster):
    own = os.getpriority(os.PRIO_PROCESS, cluster.pid("node"))
    seen = niceness_of_jobs(cluster)
    assert seen["srun"].stdout.split() == [str(own)] and not seen["srun"].stderr, seen
    assert seen["sbatch"].split() == [str(own)] * 2, seen
    assert cluster.out("nice", "-n", "7", "srun", "-n1", "nice") == str(own)


def test_a_user_asks_for_no_better_niceness_than_the_daemons(tmp_path):
    with Cluster(emulate=conf_in(tmp_path, "PropagatePrioProcess=1\n")) as c:
        own = os.getpriority(os.PRIO_PROCESS, c.pid("node"))
        seen = niceness_of_jobs(c)
        assert seen["srun"].stdout.split() == [str(own)], seen
        assert f"Can't propagate a niceness of -20 from submit host: it is {own} here" in seen["srun"].stderr
        assert [line for line in seen["sbatch"].splitlines() if line.lstrip("-").isdigit()] == [str(own)] * 2, seen
        # A worse one is his to take, and root's word counts.
        assert c.out("nice", "-n", "7", "srun", "-n1", "nice", user=USER) == str(own + 7)
        assert c.out("nice", "-n", "-20", "srun", "-n1", "nice") == "-20"
