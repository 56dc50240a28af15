"""Licences over time on a running cluster: who waits for one has a planned start and keeps nobody back."""

import pytest

from cluster import Cluster, until

pytestmark = pytest.mark.live

CONF = """\
ClusterName=lic
SlurmctldHost=localhost
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
Licenses=matlab:2,ansys:1
NodeName=n[1-2] CPUs=4 RealMemory=4000
PartitionName=all Nodes=ALL Default=YES MaxTime=1-0
"""
SLEEP = ("-o", "/dev/null", "--wrap", "sleep 300")


@pytest.fixture
def c(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "slurm.conf").write_text(CONF)
    with Cluster(emulate=tmp_path / "conf") as cluster:
        yield cluster


def test_a_job_that_waits_for_a_licence(c):
    holder = c.submit("-L", "matlab:2", "-t", "60", *SLEEP)
    c.wait_state(holder, "RUNNING")
    assert "LicenseName=matlab\n    Total=2 Used=2 Free=0" in c.out("scontrol", "show", "licenses")
    waits = c.submit("-L", "matlab", "-t", "60", *SLEEP)
    until(lambda: c.field(waits, "Reason") == "Licenses", what="Licenses")
    other = c.submit("-t", "600", *SLEEP)
    c.wait_state(other, "RUNNING")
    # Planned for when the holder's limit ends, and said so.
    until(lambda: c.field(waits, "StartTime") == c.field(holder, "EndTime"), what="a planned start")
    assert "2 of 2 licences matlab are in use, asked 1" in c.out("scontrol", "explain", "job", waits)
    c.run("scancel", holder)
    c.wait_state(waits, "RUNNING")
    assert c.field(waits, "LicensesAlloc") == "matlab:1"


def test_one_of_several(c):
    jobs = [c.submit("-L", "ansys|matlab:2", *SLEEP) for _ in range(3)]
    for job in jobs[:2]:
        c.wait_state(job, "RUNNING")
    assert [c.field(job, "LicensesAlloc") for job in jobs[:2]] == ["ansys:1", "matlab:2"]
    until(lambda: c.field(jobs[2], "Reason") == "Licenses", what="Licenses")
    refused = c.run("sbatch", "-L", "matlab:3", *SLEEP, rc=1)
    assert "Invalid license specification" in refused.stderr
    assert "3 of matlab asked, Licenses= in slurm.conf has 2" in refused.stderr
    refused = c.run("sbatch", "-L", "ansys|matlab:x", *SLEEP, rc=1)
    assert "Invalid license specification" in refused.stderr
    assert "matlab:x is not name:count" in refused.stderr
