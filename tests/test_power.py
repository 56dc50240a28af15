"""Power saving on a running cluster: pretended nodes go off when idle and come back for jobs, by the site's programs."""

import json

import pytest

from cluster import Cluster, until

pytestmark = pytest.mark.live

CONF = """\
ClusterName=watt
SlurmctldHost=localhost
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=1
MinJobAge=600
NodeName=n[1-3] CPUs=4 RealMemory=4000
NodeName=c1 CPUs=4 RealMemory=4000 State=CLOUD
PartitionName=all Nodes=n[1-3] Default=YES
PartitionName=cloud Nodes=c1 PowerDownOnIdle=YES
SuspendTimeout=1
"""

SUSPEND = """\
#!/bin/sh
echo "$1" >> "$(dirname "$0")/suspended"
exec berth power off "$1"
"""
RESUME = """\
#!/bin/sh
here=$(dirname "$0")
echo "$1" >> "$here/resumed"
cp "$SLURM_RESUME_FILE" "$here/resume.json"
[ -e "$here/broken" ] || exec berth power on "$1"
"""
FAIL = """\
#!/bin/sh
echo "$1" >> "$(dirname "$0")/failed"
"""


@pytest.fixture
def site(tmp_path):
    """A function that starts a cluster with these keys; its programs and what they note are in c.programs."""
    running = []

    def start(**keys):
        programs = tmp_path / "programs"
        programs.mkdir()
        for name, text in (("suspend", SUSPEND), ("resume", RESUME), ("fail", FAIL)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        given = dict(SuspendTime="INFINITE", ResumeTimeout=30, SuspendProgram=programs / "suspend",
                     ResumeProgram=programs / "resume", ResumeFailProgram=programs / "fail")
        given.update(keys)
        folder = tmp_path / "conf"
        folder.mkdir()
        (folder / "slurm.conf").write_text(CONF + "".join(f"{k}={v}\n" for k, v in given.items()))
        c = Cluster(emulate=folder)
        c.programs = programs
        c.__enter__()
        running.append(c)
        return c

    yield start
    for c in running:
        c.__exit__(None, None, None)


def state(c, node):
    return c.out("sinfo", "-h", "-N", "-p", "all,cloud", "-n", node, "-o", "%t")


def becomes(c, node, *words):
    until(lambda: state(c, node) in words, what=f"{node} {words}; it is {state(c, node)}\n{c.logs()}")


def switched_off(c, node):
    c.run("scontrol", "power", "down", node)
    becomes(c, node, "idle~")


def test_idle_nodes_go_and_a_job_brings_them_back(site):
    c = site(SuspendTime=1, SuspendExcNodes="n1")
    becomes(c, "n2", "idle~")
    becomes(c, "n3", "idle~")
    assert state(c, "n1") == "idle"
    assert c.out("sinfo", "-h", "-t", "powered_down", "-o", "%N", "-p", "all") == "n[2-3]"
    assert "State=IDLE+POWERED_DOWN" in c.out("scontrol", "show", "node", "n2")
    assert "SuspendTime=1" in c.out("scontrol", "show", "node", "n2")
    # A node that is up is used before one that is off.
    first = c.submit("-o", "/dev/null", "--wrap", "sleep 300")
    c.wait_state(first, "RUNNING")
    assert c.field(first, "NodeList") == "n1"
    job = c.submit("-N2", "-c4", "--extra=x", "-o", "two.out", "--wrap", "srun -l printenv SLURMD_NODENAME")
    assert c.wait_end(job) == "COMPLETED"
    assert sorted((c.work / "two.out").read_text().splitlines()) == ["0: n2", "1: n3"]
    told = json.loads((c.programs / "resume.json").read_text())
    assert told["all_nodes_resume"] == "n[2-3]"
    assert [(j["job_id"], j["nodes_resume"], j["extra"], j["partition"]) for j in told["jobs"]] == [
        (int(job), "n[2-3]", "x", "all")]
    becomes(c, "n3", "idle~")  # and away again
    c.run("scancel", first)


def test_a_job_waits_for_its_node_and_says_so(site):
    c = site()
    switched_off(c, "n2")
    (c.programs / "broken").touch()  # nobody switches it on for now
    job = c.submit("-w", "n2", "-t", "10", "-o", "/dev/null", "--wrap", "true")
    c.wait_state(job, "CONFIGURING")
    assert state(c, "n2") == "mix#"
    why = c.out("scontrol", "explain", "job", job)
    assert "waiting for n2 to power up, since " in why and "at most until " in why
    # It goes on after a restart of the controller.
    c.restart_controller()
    assert c.job_state(job) == "CONFIGURING"
    c.run("berth", "power", "on", "n2")
    assert c.wait_end(job) == "COMPLETED"
    assert (c.programs / "resumed").read_text() == "n2\n"
    assert state(c, "n2") == "idle"


def test_a_node_that_does_not_come_is_down_and_the_job_goes_elsewhere(site):
    c = site(ResumeTimeout=2)
    for node in ("n1", "n2", "n3"):
        switched_off(c, node)
    (c.programs / "broken").touch()
    job = c.submit("-o", "/dev/null", "--wrap", "true")
    becomes(c, "n1", "down~")
    assert "Reason=ResumeTimeout reached" in c.out("scontrol", "show", "node", "n1")
    c.wait_state(job, "PENDING")
    assert (c.field(job, "Restarts"), c.field(job, "Reason")) == ("1", "BeginTime")
    until(lambda: (c.programs / "failed").exists(), what="ResumeFailProgram")
    assert (c.programs / "failed").read_text() == "n1\n"
    (c.programs / "broken").unlink()
    c.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    assert c.wait_end(job) == "COMPLETED"
    assert c.field(job, "NodeList") == "n2"
    c.run("scontrol", "update", "NodeName=n1", "State=RESUME")
    assert state(c, "n1") == "idle~"


def test_a_cloud_node_is_there_only_for_jobs(site):
    c = site(SuspendTime=600)
    assert "State=IDLE+CLOUD+POWERED_DOWN" in c.out("scontrol", "show", "node", "c1")
    job = c.submit("-p", "cloud", "-o", "cloud.out", "--wrap", "hostname")
    assert c.wait_end(job) == "COMPLETED"
    becomes(c, "c1", "idle~")  # PowerDownOnIdle
    assert (c.programs / "suspended").read_text() == "c1\n"


def test_words_of_scontrol(site):
    c = site()
    job = c.submit("-w", "n1", "-o", "/dev/null", "--wrap", "sleep 300")
    c.wait_state(job, "RUNNING")
    c.run("scontrol", "update", "NodeName=n1", "State=POWER_DOWN")
    assert state(c, "n1") == "mix!"
    c.run("scontrol", "power", "up", "n1")
    assert state(c, "n1") == "mix"
    c.run("scontrol", "power", "down", "asap", "n1")
    assert state(c, "n1") == "drng!"
    c.run("scancel", job)
    becomes(c, "n1", "idle~")
    c.run("scontrol", "power", "up", "n1")
    becomes(c, "n1", "idle")
    again = c.submit("-w", "n1", "-o", "/dev/null", "--wrap", "sleep 300")
    c.wait_state(again, "RUNNING")
    c.run("scontrol", "power", "down", "force", "n1")
    becomes(c, "n1", "idle~")
    assert c.job_state(again) == "PENDING"
    c.run("scancel", again)
    refused = c.run("scontrol", "power", "sideways", "n1", rc=1)
    assert "scontrol power up NODES" in refused.stderr


def test_without_programs_nothing_is_switched():
    with Cluster(emulate="2x4") as c:
        refused = c.run("scontrol", "power", "down", "node1", rc=1)
        assert "SuspendProgram and ResumeProgram" in refused.stderr
