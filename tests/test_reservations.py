"""Advance reservations on a running cluster: made, shown, used, kept clear of, changed, ended; also over a kill of
the controller."""

import getpass
import json
import os
import pwd
import signal

import pytest

from cluster import Cluster, until

pytestmark = pytest.mark.live

ME = getpass.getuser()


def other_user():
    """A user of this machine besides this one, where one can be taken on."""
    if os.geteuid() != 0:
        return None
    return next((u.pw_name for u in pwd.getpwall() if u.pw_name == "nobody"), None)


@pytest.fixture(scope="module")
def four():
    with Cluster(emulate="4x4:a100") as c:
        yield c


@pytest.fixture
def c(four):
    yield four
    four.run("scancel", *four.out("squeue", "-h", "-o", "%A").split(), rc=None)
    until(lambda: not four.out("squeue", "-h"), what="the queue is empty")
    for line in four.out("sinfo", "-h", "-T").splitlines():
        if not line.startswith("No reservations"):
            four.run("scontrol", "delete", f"ReservationName={line.split()[0]}")


def reserve(c, *keys, rc=0):
    return c.run("scontrol", "create", "reservation", *keys, rc=rc)


def nodes(c):
    return c.out("sinfo", "-h", "-N", "-o", "%N").split()


def test_made_shown_and_deleted(c):
    n = nodes(c)
    done = reserve(c, "ReservationName=tools", "StartTime=now", "Duration=1:00:00", f"Nodes={n[0]}", f"Users={ME}",
                   "Comment=new fans")
    assert done.stdout == "Reservation created: tools\n"
    text = c.out("scontrol", "show", "reservation")
    first = text.splitlines()[0].split()
    assert first[0] == "ReservationName=tools" and first[3] == "Duration=01:00:00"
    words = dict(w.split("=", 1) for w in text.split() if "=" in w)
    assert words["Nodes"] == n[0] and words["NodeCnt"] == "1" and words["Flags"] == "SPEC_NODES"
    assert words["Users"] == ME and words["State"] == "ACTIVE" and words["Accounts"] == "(null)"
    assert len(c.out("scontrol", "-o", "show", "reservations").splitlines()) == 1
    row = c.out("sinfo", "-T").splitlines()
    assert row[0].split() == ["RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST"]
    assert row[1].split()[0:2] == ["tools", "ACTIVE"] and row[1].split()[-1] == n[0]
    data = json.loads(c.out("scontrol", "show", "reservation", "tools", "--json"))["reservations"]
    assert data[0]["name"] == "tools" and data[0]["node_list"] == n[0] and data[0]["flags"] == ["SPEC_NODES"]
    assert json.loads(c.out("sinfo", "-T", "--json"))["reservations"] == data
    # The node says so.
    assert c.out("sinfo", "-h", "-N", "-n", n[0], "-o", "%t") == "resv"
    shown = c.out("scontrol", "show", "node", n[0])
    assert "State=IDLE+RESERVED" in shown and "ReservationName=tools" in shown
    assert c.run("scontrol", "delete", "ReservationName=tools").stdout == ""
    assert c.out("scontrol", "show", "reservation") == "No reservations in the system"
    assert c.out("sinfo", "-T") == "No reservations in the system"
    until(lambda: c.out("sinfo", "-h", "-N", "-n", n[0], "-o", "%t") == "idle", what="the node is free again")
    assert "Reservation tools not found" in c.run("scontrol", "show", "reservation", "tools", rc=1).stderr


def test_a_name_is_found(c):
    first = reserve(c, "start=now+1hour", "duration=10", "nodecnt=1", f"user={ME}").stdout
    second = reserve(c, "start=now+3hours", "duration=10", "nodecnt=1", f"user={ME}").stdout
    names = [line.split(": ")[1].strip() for line in (first, second)]
    assert names[0] != names[1] and all(name.startswith(f"{ME}_") for name in names)


def test_refusals(c):
    n = nodes(c)
    job = c.submit("-w", n[1], "-t", "60", "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    reserve(c, "ReservationName=here", "StartTime=now+1hour", "Duration=60", f"Nodes={n[0]}", f"Users={ME}")
    rows = [
        ((f"Nodes={n[0]}", "Users=" + ME, "StartTime=now+90minutes", "Duration=5"), "Requested nodes are busy", "here"),
        ((f"Nodes={n[1]}", "Users=" + ME, "StartTime=now", "Duration=5"), "Requested nodes are busy", job),
        (("Nodes=nowhere", "Users=" + ME, "StartTime=now", "Duration=5"), "Invalid node name specified", "nowhere"),
        ((f"Nodes={n[2]}", "StartTime=now", "Duration=5"), "lacks users", "Users="),
        ((f"Nodes={n[2]}", "Users=nosuchuser", "StartTime=now", "Duration=5"), "Invalid user id", "nosuchuser"),
        ((f"Nodes={n[2]}", "Users=" + ME, "StartTime=now", "Duration=5", "Flags=SOON"), "Invalid Flags value", "SOON"),
        ((f"Nodes={n[2]}", "Users=" + ME, "StartTime=now", "Duration=5", "BurstBuffer=x"), "not supported", "BurstBuffer"),
        (("ReservationName=here", "Nodes=" + n[2], "Users=" + ME, "StartTime=now", "Duration=5"),
         "Duplicate reservation name", "update"),
    ]
    for keys, text, more in rows:
        done = reserve(c, *keys, rc=1)
        assert text in done.stderr and more in done.stderr, (keys, done.stderr)
        assert done.stderr.startswith("Error creating the reservation: "), done.stderr
    assert "Requested reservation is invalid" in c.run("sbatch", "--reservation=none", "--wrap", "true", rc=1).stderr


def test_jobs_inside_and_outside(c):
    n = nodes(c)
    reserve(c, "ReservationName=r", "StartTime=now", "Duration=60", f"Nodes={n[0]}", f"Users={ME}")
    inside = c.submit("--reservation=r", "-t", "5", "-o", "env.%j", "--wrap", "echo in=$SLURM_JOB_RESERVATION")
    c.wait_state(inside, "COMPLETED")
    assert (c.work / f"env.{inside}").read_text() == "in=r\n"
    assert c.field(inside, "NodeList") == n[0] and c.field(inside, "Reservation") == "r"
    assert c.out("sacct", "-n", "-X", "-P", "-j", inside, "-o", "Reservation") == "r"
    outside = c.submit("-w", n[0], "-t", "5", "--wrap", "true")
    until(lambda: c.out("squeue", "-h", "-j", outside, "-o", "%r") == "Reservation", what="a reason")
    assert c.out("squeue", "-h", "-j", outside, "--start", "-o", "%S") != "N/A"
    why = c.out("scontrol", "explain", "job", outside)
    assert f"{n[0]} is reserved (r) from " in why and "--reservation=r" in why, why
    keeper = c.submit("--reservation=r", "-t", "5", "--wrap", "sleep 600")
    c.wait_state(keeper, "RUNNING")
    assert c.out("squeue", "-h", "-R", "r", "-o", "%A %v") == f"{keeper} r"
    done = c.run("scontrol", "delete", "reservation=r", rc=1)
    assert "Requested reservation is in use" in done.stderr
    c.run("scancel", "--reservation=r", keeper)
    c.wait_end(keeper)
    until(lambda: c.call(["scontrol", "delete", "reservation=r"]).returncode == 0, what="it can be deleted")
    c.wait_state(outside, "COMPLETED")


def test_a_job_must_end_before_it_starts(c):
    n = nodes(c)
    reserve(c, "ReservationName=soon", "StartTime=now+2hours", "Duration=60", "Nodes=ALL", f"Users={ME}", "Flags=MAINT")
    short = c.submit("-w", n[0], "-t", "60", "--wrap", "true")
    c.wait_state(short, "COMPLETED")
    long_one = c.submit("-w", n[0], "-t", "180", "--wrap", "true")
    reason = "ReqNodeNotAvail, Reserved for maintenance"
    until(lambda: c.out("squeue", "-h", "-j", long_one, "-o", "%r") == reason, what="a reason")
    until(lambda: "--time=0" in c.out("scontrol", "explain", "job", long_one), what="a shorter limit is offered")
    # As much time as there is.
    least = c.submit("-w", n[0], "-t", "180", "--time-min=10", "--wrap", "sleep 600")
    c.wait_state(least, "RUNNING")
    hours, minutes, _ = c.field(least, "TimeLimit").split(":")
    assert 110 <= int(hours) * 60 + int(minutes) <= 120
    assert c.run("scontrol", "update", "reservation=soon", "StartTime=now+4hours").stdout == "Reservation updated.\n"
    c.run("scancel", least)
    c.wait_state(long_one, "COMPLETED")


def test_gpus_of_a_node(c):
    n = nodes(c)
    reserve(c, "ReservationName=two", "StartTime=now", "Duration=60", f"Nodes={n[0]}", "TRESPerNode=gres/gpu=2",
            f"Users={ME}")
    text = c.out("scontrol", "show", "reservation", "two")
    assert "gres/gpu=2" in text and f"NodeName={n[0]} CoreIDs=" in text, text
    assert c.out("sinfo", "-h", "-N", "-n", n[0], "-o", "%t") == "idle", "the other half can be used"
    outside = c.submit("-w", n[0], "--gpus=2", "--mem=100M", "-t", "5", "--wrap", "sleep 600")
    third = c.submit("-w", n[0], "--gpus=1", "--mem=100M", "-t", "5", "--wrap", "sleep 600")
    inside = c.submit("--reservation=two", "--gpus=2", "--mem=100M", "-t", "5", "--wrap", "sleep 600")
    c.wait_state(outside, "RUNNING")
    c.wait_state(inside, "RUNNING")
    assert c.job_state(third) == "PENDING"


def test_over_a_kill_of_the_controller(c):
    n = nodes(c)
    reserve(c, "ReservationName=kept", "StartTime=now", "Duration=60", f"Nodes={n[3]}", f"Users={ME}", "Flags=FLEX")
    before = c.out("scontrol", "show", "reservation")
    job = c.submit("--reservation=kept", "-w", n[3], "-t", "5", "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    os.kill(c.pid("controller"), signal.SIGKILL)
    c.start()
    assert c.out("scontrol", "show", "reservation") == before
    assert c.field(job, "Reservation") == "kept"
    until(lambda: "ReservationName=kept" in c.out("scontrol", "show", "node", n[3]), what="the node is marked")
    c.run("scontrol", "reconfigure")
    assert c.out("scontrol", "show", "reservation") == before


def test_it_ends_and_what_waits_is_held(c):
    n = nodes(c)
    reserve(c, "ReservationName=brief", "StartTime=now", "Duration=60", f"Nodes={n[0]}", f"Users={ME}")
    job = c.submit("--reservation=brief", "-t", "10", "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    waits = c.submit("--reservation=brief", "--exclusive", "-t", "10", "--wrap", "true")
    c.run("scontrol", "update", "ReservationName=brief", "EndTime=now+2seconds")
    c.wait_state(job, "TIMEOUT")
    until(lambda: c.out("squeue", "-h", "-j", waits, "-o", "%r") == "ReservationDeleted", what="it is held")
    assert c.out("scontrol", "show", "reservation") == "No reservations in the system"
    c.run("scontrol", "release", waits)
    c.wait_state(waits, "COMPLETED")


def test_only_administrators_make_them_and_only_some_use_them(c):
    user = other_user()
    if user is None:
        pytest.skip("needs a second user")
    n = nodes(c)
    done = c.run("scontrol", "create", "reservation", "StartTime=now", "Duration=5", f"Nodes={n[0]}",
                 f"Users={user}", user=user, rc=1)
    assert "Access/permission denied" in done.stderr
    reserve(c, "ReservationName=mine", "StartTime=now", "Duration=60", f"Nodes={n[0]}", f"Users=-{user}")
    done = c.run("sbatch", "--reservation=mine", "-o", "/dev/null", "--wrap", "true", user=user, rc=1)
    assert "Access denied to requested reservation" in done.stderr
    c.run("scontrol", "update", "ReservationName=mine", f"Users={user}", "Flags+=USER_DELETE")
    job = c.submit("--reservation=mine", "-o", "/dev/null", "-t", "5", "--wrap", "true", user=user)
    c.wait_state(job, "COMPLETED")
    c.run("scontrol", "delete", "ReservationName=mine", user=user)


def test_a_waiting_job_is_moved_into_one(c):
    n = nodes(c)
    reserve(c, "ReservationName=into", "StartTime=now", "Duration=60", f"Nodes={n[0]}", f"Users={ME}")
    job = c.submit("-w", n[0], "-t", "5", "--wrap", "true")
    until(lambda: c.out("squeue", "-h", "-j", job, "-o", "%r") == "Reservation", what="a reason")
    c.run("scontrol", "update", f"JobId={job}", "ReservationName=into")
    c.wait_state(job, "COMPLETED")
    assert c.field(job, "Reservation") == "into"
