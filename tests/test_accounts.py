"""sacctmgr and sshare on a live cluster: the one built-in account, as programs ask for it."""

import pytest

from cluster import Cluster

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def cluster():
    with Cluster(emulate="1x1:a100") as c:
        c.env["USER"] = c.out("id", "-un")
        yield c


def test_every_user_belongs_to_it(cluster):
    user = cluster.env["USER"]
    assert cluster.out("sh", "-c", 'sacctmgr -n -s list user "$USER" format=account%20') == "default"
    assert cluster.out("sshare", "-U", "--format", "Account%256", "--noheader") == "default"
    assert cluster.out("sshare", "-U", "-n", "-P", "-o", "user") == user
    lines = cluster.out("sacctmgr", "-nP", "show", "assoc", "format=cluster,account,user").splitlines()
    assert "emulated|default|" in lines and f"emulated|default|{user}" in lines
    assert cluster.out("sacctmgr", "-nP", "show", "user", "nobody-of-that-name", "format=user") == ""


def test_the_cluster_is_the_one_of_slurm_conf(cluster):
    name = cluster.out("sh", "-c", "scontrol show config | sed -n 's/^ClusterName *= //p'")
    assert cluster.out("sacctmgr", "-nP", "list", "clusters", "format=cluster") == name
    assert cluster.run("sshare", "-M", "elsewhere", rc=1).stdout == ""


def test_jobs_may_name_it(cluster):
    job = cluster.submit("-A", "default", "--qos", "normal", "-o", "/dev/null", "--wrap", "true")
    cluster.wait_state(job, "COMPLETED")
    assert cluster.out("sacct", "-nXP", "-j", job, "-o", "Account,QOS") == "default|normal"


def test_nothing_can_be_changed(cluster):
    for words in (["add", "account", "physics"], ["-i", "modify", "user", "set", "fairshare=2"], ["delete", "user", "root"]):
        done = cluster.run("sacctmgr", *words, rc=1)
        assert done.stdout == "" and "there is one built-in account, default" in done.stderr
