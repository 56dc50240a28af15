"""Kill schedules (tests/crash/schedule.py): 20 here, 500 in `make soak`. Seeds that once found something are
always among them."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "crash"))
import schedule  # noqa: E402

KNOWN = [int(s) for s in (pathlib.Path(__file__).parent / "crash/seeds.txt").read_text().split()]
COUNT = 20
SEEDS = sorted(set(KNOWN) | set(range(1, COUNT + 1 - len(KNOWN))))
BIN = pathlib.Path(os.environ.get("BERTH_BIN", schedule.ROOT / "build" / "bin")).resolve()


@pytest.mark.live
@pytest.mark.parametrize("seed", SEEDS)
def test_schedule(seed):
    trouble = schedule.run_schedule(seed, BIN)
    assert trouble is None, trouble
