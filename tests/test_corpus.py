"""The recordings of a real Slurm, run on a live cluster with the recorded configuration (level strict)."""

import argparse
import json
import os
import pathlib
import pwd
import shutil
import socket
import sys
import tempfile

import pytest

from cluster import ROOT, Cluster, bin_dir

sys.path.insert(0, str(ROOT / "tests/corpus"))
import run_corpus  # noqa: E402

CASES = sorted((ROOT / "tests/corpus/cases").glob("*.json"))
# Cases that berth answers otherwise, each with the reason; docs/conformance.md says what a user sees.
EXCEPTIONS: dict[str, str] = {
    "array_cancel_one": "the elements run before the cancellation comes",
    "backfill_gpu": "the small job is started at once beside the waiting one",
    "dep_aftercorr": "the first array starts at once, so ids are given in another order",
    "q_squeue_running": "sinfo shows CPUs as taken at once",
}


@pytest.fixture(scope="module")
def system():
    with Cluster(emulate=ROOT / "tests/conf/corpus") as c:
        run_corpus.HERE = c.own  # recordings show its conf/slurm.conf
        names = {entry.pw_name for entry in pwd.getpwall()}
        me = pwd.getpwuid(os.geteuid()).pw_name
        user = "alice" if os.geteuid() == 0 and "alice" in names else me
        work = tempfile.mkdtemp(prefix="berth-corpus-", dir="/tmp")
        os.chmod(work, 0o755)
        options = argparse.Namespace(bin=str(bin_dir()), conf=str(c.conf), user=user, work=work, keep=False,
                                     probe=str(ROOT / "tests/corpus/probe"), last_id=999)
        yield c, run_corpus.Sys(options), options
        shutil.rmtree(work, ignore_errors=True)


def skipped(case: dict, user: str) -> bool:
    if case["name"] in EXCEPTIONS:
        return True
    text = json.dumps(case)
    if "mpirun" in text and shutil.which("mpirun") is None:
        return True
    if "SLURM_SUBMIT_HOST=vm" in text and socket.gethostname() != "vm":
        return True
    # Recorded as alice, uid 1001; cases that show it need her.
    return user != "alice" and ("alice" in text or "1001" in text)


def run_once(system, case: dict) -> list[str]:
    cluster, machine, options = system
    if not machine.wait_idle():
        machine.cancel_all()
        assert machine.wait_idle(), f"the cluster does not come to rest\n{cluster.logs()}"
    got = run_corpus.run_case(machine, case, options)
    loose = case.get("unstable", [])
    return run_corpus.diff(run_corpus.relax(case["expect"], "strict", loose),
                           run_corpus.relax(got, "strict", loose))


@pytest.mark.live
def test_cases(system):
    """All that are not exceptions. What fails is tried once more: some recordings watch jobs that take
    two seconds, on a machine that may be busy."""
    options = system[2]
    ran, failed = 0, []
    for path in CASES:
        case = json.loads(path.read_text())
        if skipped(case, options.user):
            continue
        ran += 1
        wrong = run_once(system, case)
        if wrong:
            wrong = run_once(system, case)
        if wrong:
            failed.append(case["name"] + "\n  " + "\n  ".join(line[:300] for line in wrong[:6]))
    print(f"{ran - len(failed)} of {ran} cases")
    assert ran > 30
    assert len(failed) <= ran // 50, "\n".join(failed)


def test_exceptions_are_explained():
    known = {json.loads(path.read_text())["name"] for path in CASES}
    text = (ROOT / "docs/conformance.md").read_text()
    for name in EXCEPTIONS:
        assert name in known, f"{name} is no case"
        assert name in text, f"docs/conformance.md does not explain {name}"
    assert len(EXCEPTIONS) <= len(CASES) * 5 // 100
