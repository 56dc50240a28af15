"""What others see of a job: that it is there, not what was typed, nor its script and environment (TRUST T6)."""

import os

import pytest

from cluster import Cluster, controller_socket, until
from messages import Probe, make

pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="several users need root")]
ALICE, BOB = "nobody", "daemon"
ALICE_UID, BOB_UID = 65534, 1
CANARY = "canary-5d1e"  # with a letter behind it for where it was put
CONF = """ClusterName=private
SlurmctldHost=localhost
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
NodeName=n[1-2] CPUs=8 RealMemory=8000
PartitionName=main Nodes=ALL Default=YES
"""


@pytest.fixture(scope="module", params=["", "SlurmctldParameters=show_command_lines\n"], ids=["private", "shown"])
def jobs(request, tmp_path_factory):
    """Jobs of alice's with a canary in all that she typed: a script, a --wrap, an srun with steps, an array, one that is over."""
    conf = tmp_path_factory.mktemp("conf")
    (conf / "slurm.conf").write_text(CONF + request.param)
    (conf / "gres.conf").write_text("")
    with Cluster(emulate=conf) as c:
        c.shown = bool(request.param)
        script = c.work / "job.sh"
        script.write_text(f"#!/bin/sh\n# {CANARY}s\nsrun -n1 sh -c 'sleep 300' {CANARY}c\n")
        script.chmod(0o755)
        env = {"KEY": f"{CANARY}e"}
        c.jobs = {
            "script": c.submit("-J", "known", "-o", "/dev/null", script, f"{CANARY}a", user=ALICE, env=env),
            "wrap": c.submit("-o", "/dev/null", "--wrap", f"sleep 300; : {CANARY}w", user=ALICE, env=env),
            "array": c.submit("-H", "--array=1-3", "-o", "/dev/null", "--wrap", f": {CANARY}w", user=ALICE),
            "over": c.submit("-o", "/dev/null", "--wrap", f"srun true {CANARY}c", user=ALICE, env=env),
            "own": c.submit("-H", "-J", "bobs", "-o", "/dev/null", "--wrap", f": {CANARY}-of-bob", user=BOB),
        }
        c.srun = c.popen("srun", "-J", "direct", "sh", "-c", "sleep 300", f"{CANARY}c", user=ALICE)
        until(lambda: c.out("squeue", "-h", "-s", "-o", "%i", user=ALICE).count(".") >= 2, what="steps")
        c.wait_end(c.jobs["over"])
        yield c
        c.run("scancel", "--user", ALICE)
        c.run("scancel", c.jobs["own"])
        c.srun.communicate(timeout=60)


def questions(c):
    job, array = c.jobs["script"], c.jobs["array"]
    yield from (["squeue"], ["squeue", "-a", "-r", "-o", "%all"], ["squeue", "-o", "%i %j %o %Z %u %T"], ["squeue", "-s"],
                ["squeue", "-O", "JobID,Command:200,WorkDir:100,StdOut:100,STDIN,STDERR,Comment,Name"], ["squeue", "--json"], ["squeue", "-s", "--json"],
                ["squeue", "-s", "-O", "StepID,StepName,UserName"], ["squeue", "--yaml"],
                ["scontrol", "show", "job"], ["scontrol", "-d", "-o", "show", "job", job], ["scontrol", "show", "job", array],
                ["scontrol", "show", "job", "--json"], ["scontrol", "show", "step"], ["scontrol", "show", "step", f"{job}.0"],
                ["scontrol", "write", "batch_script", job, "-"],
                ["scontrol", "show", "node"], ["scontrol", "show", "partition"], ["scontrol", "listpids", job],
                ["sacct", "-a"], ["sacct", "-a", "-o", "ALL", "-P"], ["sacct", "-a", "-o", "JobID,SubmitLine%200,WorkDir,Comment"],
                ["sacct", "-a", "--json"], ["sacct", "-a", "-D", "-l"],
                ["sacct", "-j", job, "-B"], ["sacct", "-j", job, "--env-vars"], ["sacct", "-a", "-B"], ["sacct", "-a", "--env-vars"],
                ["sstat", "-a", job], ["sprio", "-l"], ["sdiag"], ["sinfo", "-N", "-l"], ["berth", "explain", job], ["scontrol", "explain", array],
                ["sattach", "--layout", f"{job}.0"], ["scontrol", "show", "config"], ["sshare", "-a"])


def answers(c, user):
    """All that the commands print to a user."""
    out = {}
    for words in questions(c):
        done = c.run(*words, rc=None, user=user)
        out[" ".join(words)] = done.stdout + done.stderr
    return out


def found(text, letters):
    return {letter for letter in letters if CANARY + letter in text}


def test_others_are_not_shown_what_was_typed(jobs):
    c = jobs
    for words, text in answers(c, BOB).items():
        allowed = set("acw") if c.shown else set()
        assert found(text, "acesw") <= allowed, f"{words}:\n{text}"
    # What is shown is enough to know who has what.
    listed = c.out("squeue", "-h", "-o", "%i|%u|%j|%T|%C|%N|%Z", user=BOB)
    assert f"{c.jobs['script']}|{ALICE}|known|RUNNING|1|n" in listed and f"|{c.work}" in listed
    assert f"{c.jobs['over']}|COMPLETED" in c.out("sacct", "-anPX", "-o", "JobID,State", user=BOB)
    assert "StdOut=/dev/null" in c.out("scontrol", "show", "job", c.jobs["script"], user=BOB)
    # His own are.
    mine = c.out("scontrol", "show", "job", c.jobs["own"], user=BOB) + c.out("sacct", "-n", "-o", "SubmitLine%200", user=BOB)
    assert mine.count(CANARY + "-of-bob") == 2


@pytest.mark.parametrize("user", [ALICE, None])
def test_the_owner_and_root_are_shown_all(jobs, user):
    c = jobs
    told = answers(c, user)
    for words, letters in (("squeue -a -r -o %all", "ac"), ("squeue --json", "acw"), ("scontrol show job", "acw"),
                           ("scontrol show job --json", "acw"), 
                           ("sacct -a -o ALL -P", "acw"), ("sacct -a --json", "acw"), (f"sacct -j {c.jobs['script']} -B", "s"),
                           (f"sacct -j {c.jobs['script']} --env-vars", "e"),
                           (f"scontrol write batch_script {c.jobs['script']} -", "s")):
        assert found(told[words], letters) == set(letters), f"{words}:\n{told[words]}"


def all_that_is_said(c, uid, kind, fields):
    said = b""
    with Probe(controller_socket(c), user=uid) as peer:
        peer.send(kind, **fields)
        while (answer := peer.receive()) is not None:
            said += answer[1].SerializeToString()
            if not getattr(answer[1], "more", False):
                break
    assert said, kind
    return said.decode(errors="replace")


def test_nor_does_the_protocol_tell(jobs):
    """The same of the messages themselves, with all that can be asked for."""
    c = jobs
    number = int(c.jobs["script"])
    name = make("JobName", id=number)
    every = dict(states=["all"], with_ended=True, with_steps=True, with_detail=True, with_hidden=True)
    history = dict(with_steps=True, with_script=True, with_environment=True)
    asked = [("ListJobs", every, "acw"), ("ListJobs", dict(every, split_arrays=True), "acw"), ("ListJobs", dict(every, ids=[name]), "ac"),
             ("ListHistory", dict(history, all_users=True, duplicates=True), "acwse"),
             ("ListHistory", dict(history, ids=[name], users=[ALICE]), "acse"),
             ("MeasureSteps", dict(steps=[name], all_steps=True), "c"), ("GetScript", dict(job_id=number), "s"),
             ("ExplainJob", dict(job=name), "")]
    for kind, fields, private in asked:
        allowed = set("acw") if c.shown else set()
        assert found(all_that_is_said(c, BOB_UID, kind, fields), "acesw") <= allowed, (kind, fields)
        assert found(all_that_is_said(c, ALICE_UID, kind, fields), "acesw") >= set(private), (kind, fields)
