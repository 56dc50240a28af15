"""The scripts of the seed documents: what berth says about each (golden texts; BERTH_UPDATE=1 writes
them anew), that it agrees with what a real Slurm was seen to do, and that it names the documents'
mistakes."""

import os

import pytest
from explaining import ROOT, codes, explained, run

SEEDS = ROOT / "examples" / "seeds"
SCRIPTS = sorted(SEEDS.glob("*.sh"))

ALL = "0,1,2,3"

# script → (errors and warnings, GPUs of each node of the job, tasks of each step as
# (rank, node, local id, CUDA_VISIBLE_DEVICES)); recorded on Slurm 26.11.
RECORDED = {
    "000-1-gres-srun": (["B501", "B105"], [4, 4], [[]]),
    "000-2-gpus-per-task": (
        [], [2, 2],
        [[(0, "gpu1", 0, "0"), (1, "gpu1", 1, "1"), (2, "gpu2", 0, "0"), (3, "gpu2", 1, "1")]],
    ),
    "000-3-gres-mpirun": (
        ["B104", "B105"], [4, 4],
        [[(0, "gpu1", 0, ALL), (1, "gpu1", 1, ALL), (2, "gpu2", 0, ALL), (3, "gpu2", 1, ALL)]],
    ),
    "000-4-gpus-per-task-mpirun": (
        ["B107"], [2, 2],
        [[(0, "gpu1", 0, None), (1, "gpu1", 1, None), (2, "gpu2", 0, None), (3, "gpu2", 1, None)]],
    ),
    "001-1-one-gpu": ([], [1], []),
    "001-2-two-nodes": (
        ["B104", "B105"], [4, 4],
        [[(0, "gpu1", 0, ALL), (1, "gpu1", 1, ALL), (2, "gpu2", 0, ALL), (3, "gpu2", 1, ALL)]],
    ),
    "001-3-gpu-type": (["B101"], [], []),
    "002-1-one-gpu-a-node": (["B401"], [1, 1, 1, 1], [[(0, "gpu1", 0, "0")]]),
    "002-2-four-gpus-a-node": (
        ["B301", "B401"], [4, 4, 4, 4], [[(r, "gpu1", r, ALL) for r in range(4)]],
    ),
    "002-3-sixteen-tasks": (["B401"], [4, 4, 4, 4], [[(r, "gpu1", r, ALL) for r in range(4)]]),
    "003-1-one-program": ([], [1], [[(0, "gpu1", 0, "0")]]),
    "003-2-four-programs": ([], [4], [[(0, "gpu1", 0, gpu)] for gpu in "0123"]),
    "003-3-short-form": ([], [4], [[(0, "gpu1", 0, gpu)] for gpu in "0123"]),
}


def test_every_script_is_here():
    assert [script.stem for script in SCRIPTS] == sorted(RECORDED)
    goldens = sorted(path.stem for path in (SEEDS / "golden").glob("*.txt"))
    assert goldens == sorted(RECORDED), "a golden text is missing or left over"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_golden(berth, script):
    text = run(berth, script.name, folder=SEEDS).stdout
    golden = SEEDS / "golden" / f"{script.stem}.txt"
    if os.environ.get("BERTH_UPDATE"):
        golden.write_text(text)
    assert text == golden.read_text(), "run the test with BERTH_UPDATE=1 when the change is meant"


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_agrees_with_the_recording(berth, name):
    found, gpus, steps = RECORDED[name]
    explanation = explained(berth, f"{name}.sh", folder=SEEDS)
    assert codes(explanation, "error", "warning") == found
    job = explanation.get("job") or {}
    assert [len(node["gpus"]) for node in job.get("nodes") or []] == gpus
    shown = [
        [(t["rank"], t["node"], t["local_id"], t["cuda_visible_devices"]) for t in step["tasks"]]
        for step in explanation.get("steps") or []
    ]
    # Which of four equal steps comes first is a matter of milliseconds.
    assert sorted(shown, key=str) == sorted(steps, key=str)


def test_the_refusals_are_slurms(berth):
    refused = explained(berth, "001-3-gpu-type.sh", folder=SEEDS)
    assert not refused["accepted"]
    assert refused["error"]["text"] == "Invalid Trackable RESource (TRES) specification"
    assert refused["error"]["exit_code"] == 1
    failing = explained(berth, "000-1-gres-srun.sh", folder=SEEDS)
    assert failing["accepted"]
    assert "More processors requested than permitted" in failing["steps"][0]["error"]["text"]


def test_the_right_spelling_is_given(berth):
    refused = explained(berth, "001-3-gpu-type.sh", folder=SEEDS)
    assert refused["warnings"][0]["hint"] == "#SBATCH --gres=gpu:tesla_v100:1"
