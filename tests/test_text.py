"""What one user writes reaches no other's terminal as it is, and no log: escape sequences, new lines, text turned round."""

import json
import os
import re
import subprocess
import sys

import pytest

import messages
from cluster import SECONDS, Cluster, as_user, controller_socket

pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

ALICE, BOB = "daemon", "nobody"  # two users of every machine
FORGED = "error: forged by alice"
# ESC, CR, LF, TAB, BEL, DEL, C1 as UTF-8 and as a byte, text turned round, a line separator, half a character.
NASTY = (b"x\x1b[2J\x1b]0;owned\x07\r\n[2026-01-01T00:00:00.000] " + FORGED.encode() +
         b"\n\t\x7f\xc2\x9b31m\x9b32m\xe2\x80\xaetxt.\xe2\x80\xa8\xffend")
ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffd]")

OPTIONS = ["--job-name", "--comment", "--account", "--qos", "--wckey", "--extra", "--output", "--error", "--input",
           "--chdir", "--mail-user", "--constraint", "--prefer", "--batch", "--licenses", "--partition", "--reservation",
           "--nodelist", "--exclude", "--dependency", "--gres", "--tres-bind", "--network", "--container", "--signal",
           "--begin", "--time", "--mem", "--hint", "--export", "--cluster-constraint", "--admin-comment"]


def call(cluster, *words, user=None, rc=0):
    """Both outputs of a command as text, in which bytes that are not UTF-8 stand as U+FFFD."""
    done = subprocess.run(words, env=cluster.env, cwd=cluster.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=SECONDS, **as_user(user))
    assert rc is None or done.returncode == rc, (words, done)
    return (done.stdout + done.stderr).decode(errors="replace")


@pytest.fixture(scope="module")
def cluster():
    with Cluster(emulate="1x2:a100") as c:
        yield c


def check(text, what, tabs=False):
    found = ACTING.search(text.replace("\t", " ") if tabs else text)
    assert not found, f"{what}: {text[max(0, found.start() - 60):found.end() + 60]!r}"
    for line in text.split("\n"):
        assert not line.lstrip().startswith(("[2026-01-01T00:00:00.000]", FORGED)), f"{what}: a forged line: {line!r}"


def test_text_of_one_user_on_the_terminal_of_another(cluster):
    jobs = []
    for option in OPTIONS:  # each by itself: most values are refused, and the refusal names them
        text = call(cluster, "sbatch", "--parsable", "-H", option.encode() + b"=" + NASTY, "--wrap", b"true " + NASTY,
                    user=ALICE, rc=None)
        check(text, option)
        if text[:1].isdigit():
            jobs.append((option, text.split()[0]))
    accepted = {option for option, _ in jobs}
    assert {"--job-name", "--comment", "--output"} <= accepted, accepted
    # What ran is in other places than what waits; a step has a name of its own.
    ran = call(cluster, "sbatch", "--parsable", b"--job-name=" + NASTY, b"--comment=" + NASTY, "-o", "/dev/null", "--wrap",
               b"srun --job-name='" + NASTY + b"' sleep 0.1; exit 3", user=ALICE).split()[0]
    assert cluster.wait_end(ran) == "FAILED"
    runs = call(cluster, "sbatch", "--parsable", b"--job-name=" + NASTY, "-o", "/dev/null", "--wrap", "sleep 300",
                user=ALICE).split()[0]
    cluster.wait_state(runs, "RUNNING")
    waits = call(cluster, "sbatch", "--parsable", "--exclusive", b"--job-name=" + NASTY, "--wrap", "true",
                 user=ALICE).split()[0]
    call(cluster, "scontrol", "update", "nodename=node1", b"reason=" + NASTY, b"comment=" + NASTY, b"extra=" + NASTY)
    call(cluster, "scontrol", "create", b"reservation=" + NASTY, "nodes=node1", "users=root", "duration=10",
         "starttime=now+10days", rc=None)

    every = "%" + "|%".join("aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ")
    queries = [
        ["squeue"], ["squeue", "-l"], ["squeue", "-s"], ["squeue", "--start"], ["squeue", "-o", "%all"], ["squeue", "-o", every],
        ["squeue", "-O", "Name:200,Comment:300,Command:200,StdOut:200,WorkDir:200,Reason:200,Account,QOS,WCKey:99,Feature"],
        ["squeue", "--json"], ["squeue", "--why"], ["squeue", "--why", "--json"], ["squeue", "-s", "--json"],
        ["squeue", "-S", "j"], ["sinfo"], ["sinfo", "-R"], ["sinfo", "-N", "-l"], ["sinfo", "-o", "%all"], ["sinfo", "--json"],
        ["sinfo", "-T"], ["sacct", "-a"], ["sacct", "-a", "-o", "ALL"], ["sacct", "-a", "-P", "-o", "ALL"],
        ["sacct", "-a", "--json"], ["sacct", "-a", "-p", "-X", "-o", "jobname,comment,submitline,workdir,account"],
        ["sprio"], ["sprio", "-l"], ["sshare", "-a"], ["sdiag"], ["sdiag", "--json"], ["sacctmgr", "show", "users"],
        ["sstat", "-a", "-j", runs], ["sstat", "-a", "-P", "-o", "ALL", "-j", runs],
        ["scontrol", "show", "jobs"], ["scontrol", "-d", "show", "jobs"], ["scontrol", "-o", "show", "jobs"],
        ["scontrol", "--json", "show", "jobs"], ["scontrol", "show", "steps"], ["scontrol", "show", "nodes"],
        ["scontrol", "show", "partitions"], ["scontrol", "show", "reservations"], ["scontrol", "show", "config"],
        ["scontrol", "show", "licenses"], ["scontrol", "show", "topology"], ["scontrol", "completing"],
        ["scontrol", "listjobs"], ["scontrol", "explain", "job", waits], ["scontrol", "--json", "explain", "job", waits],
        ["berth", "efficiency", ran], ["berth", "status", "--state", str(cluster.state)], ["scancel", "-v", waits],
        ["scontrol", "update", f"jobid={waits}", "comment=x"], ["scontrol", "hold", runs],
    ]
    seen = 0
    for words in queries:
        text = call(cluster, *words, user=BOB, rc=None)
        check(text, " ".join(words), tabs=words[0] == "sdiag")  # whose lines begin with one
        if "--json" in words and text.startswith(("{", "[")):
            json.loads(text)
        seen += r"\x1b[2J" in text or r"\u001b[2J" in text
    assert seen > 12, "the text is not where it was expected"
    for log in (cluster.state / "log").iterdir():
        check(log.read_bytes().decode(errors="replace"), log.name)
    cluster.run("scancel", "-u", ALICE)


def test_a_script_is_a_file_for_a_file_and_text_for_a_terminal(cluster):
    script = b"#!/bin/sh\n# \x1b[2J\xff\n\ttrue\n"
    job = subprocess.run(["sbatch", "--parsable", "-H"], env=cluster.env, cwd=cluster.work, input=script,
                         stdout=subprocess.PIPE, check=True, **as_user(ALICE)).stdout.decode().strip()
    written = cluster.work / "written"
    with open(written, "wb") as out:
        subprocess.run(["scontrol", "write", "batch_script", job, "-"], env=cluster.env, stdout=out, check=True)
    assert written.read_bytes() == script
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", buffering=0) as screen:
        subprocess.run(["scontrol", "write", "batch_script", job, "-"], env=cluster.env, stdout=theirs, check=True)
        seen = screen.read(1000).replace(b"\r\n", b"\n")
        os.close(theirs)
    assert seen == b"#!/bin/sh\n# \\x1b[2J\\xff\n\ttrue\n"
    assert rb"# \x1b[2J\xff".decode() in call(cluster, "sacct", "-B", "-j", job)


def test_a_flood_of_refused_requests_writes_few_lines(cluster):
    """Each of these is refused with a line in the log; only so many of a user's are written in a minute."""
    log = cluster.state / "log" / "controller.log"
    before = len(log.read_bytes())
    flood = f"""
import socket
for _ in range(500):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect({controller_socket(cluster)!r})
        peer.sendall({messages.raw_frame(messages.NUMBERS["StepEnded"])!r})
        while peer.recv(4096):
            pass
"""
    subprocess.run([sys.executable, "-c", flood], check=True, timeout=SECONDS, **as_user(BOB))
    cluster.run("scontrol", "setdebug", "info")
    lines = log.read_bytes()[before:].decode().splitlines()
    assert 1 <= sum("sent StepEnded" in line for line in lines) <= 30
    assert any("log level info" in line for line in lines), "a line of another source is lost"
    assert len(lines) < 60, lines
