"""Many tiny jobs leave nothing behind (tests/soak/jobs.py): 300 here, 10,000 and flat memory with BERTH_SOAK=1."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "soak"))
import jobs  # noqa: E402


@pytest.mark.live
def test_many_jobs_leave_nothing():
    soak = bool(os.environ.get("BERTH_SOAK"))
    assert jobs.run(10000 if soak else 300, 1000 if soak else 200) == []
