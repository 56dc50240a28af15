"""ClusterShell's groups from Slurm: the file it ships as an example, put into use as its manual says."""

import pathlib
import shutil

import pytest

EXAMPLE = pathlib.Path("/etc/clustershell/groups.conf.d/slurm.conf.example")

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def nodeset(cluster):
    """nodeset(words): the lines it prints. A job runs on two of the nodes."""
    folder = cluster.work / "clustershell"
    (folder / "groups.conf.d").mkdir(parents=True)
    shutil.copy(EXAMPLE, folder / "groups.conf.d" / "slurm.conf")
    (folder / "groups.conf").write_text(f"[Main]\ndefault: slurmpart\nconfdir: {folder}/groups.conf.d\n")
    cluster.env["CLUSTERSHELL_CFGDIR"] = str(folder)
    cluster.job = cluster.submit("-N2", "-w", "node[2-3]", "-o", "/dev/null", "--wrap", "sleep 1000")
    cluster.wait_state(cluster.job, "RUNNING")

    def run(*words):
        done = cluster.run("nodeset", *words)
        assert done.stderr == "", done.stderr
        return done.stdout.splitlines()
    return run


def test_partitions_are_groups(nodeset):
    assert nodeset("-s", "slurmpart", "-l") == ["@slurmpart:main"]
    assert nodeset("-f", "@slurmpart:main") == ["node[1-4]"]
    assert nodeset("-f", "@sp:main!node2", "-x", "node4") == ["node[1,3]"]
    assert nodeset("-f", "-a") == ["node[1-4]"]
    assert nodeset("-s", "sp", "-r", "node[1-4]") == ["@sp:main"]


def test_states_are_groups(nodeset):
    assert sorted(nodeset("-s", "slurmstate", "-ll")) == ["@slurmstate:idle node[1,4]", "@slurmstate:mixed node[2-3]"]
    assert nodeset("-c", "@st:idle") == ["2"]
    assert nodeset("-f", "@st:mixed") == ["node[2-3]"]
    assert nodeset("-s", "st", "-l", "node2") == ["@st:mixed"]


def test_jobs_and_users_are_groups(cluster, nodeset):
    user = cluster.env["USER"]
    assert nodeset("-s", "slurmjob", "-l") == [f"@slurmjob:{cluster.job}"]
    assert nodeset("-f", f"@sj:{cluster.job}") == ["node[2-3]"]
    assert nodeset("-s", "sj", "-l", "node3") == [f"@sj:{cluster.job}"]
    assert nodeset("-s", "slurmuser", "-l") == [f"@slurmuser:{user}"]
    assert nodeset("-f", f"@su:{user}") == ["node[2-3]"]
    assert nodeset("-s", "su", "-l", "node2") == [f"@su:{user}"]


def test_a_drained_node_changes_its_group(cluster, nodeset):
    cluster.run("scontrol", "update", "NodeName=node1", "State=DRAIN", "Reason=test")
    assert nodeset("-f", "@slurmstate:drained") == ["node1"]
    assert nodeset("-f", "@slurmstate:idle") == ["node4"]
    cluster.run("scontrol", "update", "NodeName=node1", "State=RESUME")
    assert nodeset("-f", "@slurmstate:idle") == ["node[1,4]"]


def test_groups_name_the_nodes_of_a_job(cluster, nodeset):
    chosen = nodeset("-f", "@st:idle")[0]
    job = cluster.submit("-w", chosen, "-N2", "-o", cluster.work / "names", "--wrap", "srun printenv SLURMD_NODENAME")
    cluster.wait_state(job, "COMPLETED")
    assert sorted((cluster.work / "names").read_text().split()) == ["node1", "node4"]
