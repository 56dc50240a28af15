"""Kill schedules over several hosts (schedules.py): a few here, 500 in `make soak`."""

import pytest

import schedules

pytestmark = pytest.mark.live


def test_schedules():
    trouble = schedules.run_schedules(range(1, 5))
    assert trouble is None, trouble
