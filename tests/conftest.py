"""Shared by all end-to-end tests: where the built programs are (BERTH_BIN, else build/bin)."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def berth() -> str:
    """Path of the berth program under test."""
    program = ROOT / os.environ.get("BERTH_BIN", "build/bin") / "berth"
    assert program.is_file(), f"{program} is missing: run `make build`, or set BERTH_BIN"
    return str(program)
