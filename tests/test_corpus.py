"""The recordings of a real Slurm, run on a live cluster with the recorded configuration (level strict)."""

import argparse
import json
import os
import pathlib
import pwd
import shutil
import sys
import tempfile

import pytest

from cluster import ROOT, Cluster, bin_dir

sys.path.insert(0, str(ROOT / "tests/corpus"))
import run_corpus  # noqa: E402

pytestmark = pytest.mark.live
CASES = sorted((ROOT / "tests/corpus/cases").glob("*.json"))
# Cases that berth answers otherwise, each with the reason; docs/conformance.md says what a user sees.
EXCEPTIONS: dict[str, str] = {}


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


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(system, path):
    cluster, machine, options = system
    case = json.loads(path.read_text())
    if case["name"] in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[case["name"]])
    if "mpirun" in json.dumps(case.get("files", {})) + case["cmd"] and shutil.which("mpirun") is None:
        pytest.skip("needs mpirun")
    if not machine.wait_idle():
        machine.cancel_all()
        assert machine.wait_idle(), f"the cluster does not come to rest\n{cluster.logs()}"
    got = run_corpus.run_case(machine, case, options)
    loose = case.get("unstable", [])
    wrong = run_corpus.diff(run_corpus.relax(case["expect"], "strict", loose),
                            run_corpus.relax(got, "strict", loose))
    assert not wrong, "\n".join(wrong)


def test_exceptions_are_explained():
    known = {json.loads(path.read_text())["name"] for path in CASES}
    text = (ROOT / "docs/conformance.md").read_text()
    for name in EXCEPTIONS:
        assert name in known, f"{name} is no case"
        assert name in text, f"docs/conformance.md does not explain {name}"
    assert len(EXCEPTIONS) <= len(CASES) * 5 // 100
