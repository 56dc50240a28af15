"""Why is my job not starting: scontrol explain, squeue --why, planned starts."""

import json

import pytest

from cluster import Cluster

pytestmark = pytest.mark.live


def submit(c, *words):
    return c.submit(*words, "--wrap", "sleep 60")


def test_explain_names_holder_and_change():
    with Cluster(emulate="2x4:a100") as c:
        first = submit(c, "-N2", "--gpus-per-node=4", "-t", "30")
        c.wait_state(first, "RUNNING")
        second = submit(c, "-N1", "--gpus=4", "-t", "60")
        text = c.run("scontrol", "explain", "job", second).stdout
        assert text.startswith(f"job {second}  PENDING (Resources), number 1 of 1 in the queue\n"), text
        assert f"job {first} of " in text
        assert "at the latest, on node1" in text
        why = json.loads(c.run("scontrol", "--json", "explain", "job", second).stdout)
        assert why["reason"] == "Resources"
        assert [holder["job"] for holder in why["waits_for"]] == [int(first)]
        assert why["planned_start"] > 0
        assert c.run("squeue", "--why", "-j", second).stdout == text
        rows = json.loads(c.run("squeue", "--why", "--json").stdout)
        assert [row["job"] for row in rows] == [second]


def test_explain_of_held_running_and_unknown_jobs():
    with Cluster(emulate="1x2:a100") as c:
        held = submit(c, "-H", "-n1")
        assert f"it is held: scontrol release {held}" in c.run("scontrol", "explain", "job", held).stdout
        running = submit(c, "-n1")
        c.wait_state(running, "RUNNING")
        assert "it does not wait" in c.run("scontrol", "explain", running).stdout
        unknown = c.run("scontrol", "explain", "job", "99", rc=1)
        assert "Invalid job id specified" in unknown.stderr


def test_a_shorter_limit_is_found():
    with Cluster(emulate="2x4:a100") as c:
        first = submit(c, "-w", "node1", "--exclusive", "-t", "60")
        c.wait_state(first, "RUNNING")
        submit(c, "-N2", "--exclusive", "-t", "60")
        third = submit(c, "-w", "node2", "-n1", "--exclusive", "-t", "2:00:00")
        why = json.loads(c.run("scontrol", "--json", "explain", "job", third).stdout)
        options = [change["option"] for change in why["would_start_with"]]
        assert any(option.startswith("--time=") for option in options), why


def test_sbatch_explain_submits_nothing_and_tells_what_would_happen():
    with Cluster(emulate="1x4:a100") as c:
        words = ["-n1", "--gpus=3", "-t", "30", "--wrap", "sleep 60"]
        assert c.run("sbatch", "--explain", *words).stdout == "it would start now, on node1\n"
        first = submit(c, *words[:-2])
        c.wait_state(first, "RUNNING")
        text = c.run("sbatch", "--explain", *words).stdout
        assert text.startswith("it would wait (Resources), number 1 of 1 in the queue\n"), text
        assert f"job {first} of " in text
        assert "with --gpus=1 (on node1)" in text
        why = json.loads(c.run("sbatch", "--explain=json", *words).stdout)
        assert why["reason"] == "Resources" and why["planned_nodes"] == "node1"
        assert c.run("squeue", "-h", "-o", "%i").stdout.split() == [first]
        wrong = c.run("sbatch", "--explain=yaml", *words, rc=1)
        assert "--explain=yaml: give --explain or --explain=json" in wrong.stderr
