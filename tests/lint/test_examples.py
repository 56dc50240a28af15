"""Every small script of examples/lint triggers the rule it is named after, on the line of its
mistake, and docs/lint.md describes that rule."""

import re

import pytest
from explaining import ROOT, codes, explained

EXAMPLES = ROOT / "examples" / "lint"
SCRIPTS = sorted(EXAMPLES.glob("B*.sh"))
DOCUMENTED = re.findall(r'^### <a id="(B\d+)">', (ROOT / "docs" / "lint.md").read_text(), re.M)

# Rules that need more than a script; see the tests below and examples/lint/README.md.
WITHOUT_SCRIPT = {"B110", "B115", "B215", "B698"}


def test_every_rule_has_a_script():
    assert {script.stem for script in SCRIPTS} | WITHOUT_SCRIPT == set(DOCUMENTED)
    assert len(DOCUMENTED) >= 30


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example_triggers_its_rule(berth, script):
    explanation = explained(berth, script.name, folder=EXAMPLES)
    assert script.stem in codes(explanation), codes(explanation)


def test_environment(berth):
    explanation = explained(
        berth, "B605.sh", folder=EXAMPLES, variables={"SBATCH_NTASKS_PER_NODE": "2"}
    )
    assert "B215" not in codes(explanation)  # not a variable that sbatch reads
    explanation = explained(
        berth, "B604.sh", folder=EXAMPLES, variables={"SBATCH_TIMELIMIT": "1"}
    )
    assert "B215" in codes(explanation)
    assert "B604" not in codes(explanation)


def test_command_lines(berth):
    assert "B115" in codes(explained(berth, "--", "srun", "--gpus=4", "--gpus-per-task=1", "./app"))
    refused = explained(berth, "--", "srun", "--gres=gpu:1:tesla:v100", "./app")
    assert not refused["accepted"]
    assert refused["warnings"], "a refusal is explained"
