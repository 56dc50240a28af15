"""Many tiny jobs leave nothing behind (tests/soak/jobs.py): 300 here; 10,000, and flat memory, in `make soak`."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "soak"))
import jobs  # noqa: E402


@pytest.mark.live
def test_many_jobs_leave_nothing():
    assert jobs.run(300, 200) == []
