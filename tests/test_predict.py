"""What `berth explain` predicts against recordings of a real Slurm (tests/corpus)."""
import json
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PREDICT = ROOT / "tools" / "predict"


def run_predict(berth, *args):
    return subprocess.run([PREDICT, "--berth", berth, *args], stdout=subprocess.PIPE, text=True,
                          timeout=300, check=False)


@pytest.fixture(scope="module")
def recorded(berth):
    return run_predict(berth, ROOT / "tests" / "corpus")


def test_recordings_are_predicted(recorded):
    result = recorded
    last = result.stdout.splitlines()[-1]
    right, total = map(int, re.match(r"(\d+) of (\d+) predicted", last).groups())
    assert total >= 200, "cases were not recognised: " + last
    assert result.returncode == 0 and right >= 0.97 * total, result.stdout


def test_every_miss_is_explained(recorded):
    conformance = (ROOT / "docs" / "conformance.md").read_text()
    for name in re.findall(r"^MISS  (\S+):", recorded.stdout, re.M):
        assert "`%s`" % name in conformance, name + " is not explained in docs/conformance.md"


def test_a_wrong_recording_is_a_miss(berth, tmp_path):
    case = json.loads((ROOT / "tests/corpus/cases/gres_3.json").read_text())
    case["expect"]["probes"][0]["cvd"] = "0,1,2"
    (tmp_path / "wrong.json").write_text(json.dumps(case))
    result = run_predict(berth, "--conf", ROOT / "tests/conf/corpus", tmp_path)
    assert result.returncode == 1
    assert "CUDA_VISIBLE_DEVICES '0,2,3', recorded '0,1,2'" in result.stdout
