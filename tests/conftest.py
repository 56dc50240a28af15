"""Shared by all end-to-end tests: where the built programs are (BERTH_BIN, else build/bin)."""

import os
import pathlib

import pytest
from _pytest.runner import runtestprotocol

# Needs packages that `make test` does not install: `make test-clients`.
collect_ignore = ["clients"]

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def berth() -> str:
    """Path of the berth program under test."""
    program = ROOT / os.environ.get("BERTH_BIN", "build/bin") / "berth"
    assert program.is_file(), f"{program} is missing: run `make build`, or set BERTH_BIN"
    return str(program)


def pytest_configure(config):
    config.addinivalue_line("markers", "live: runs daemons; tried a second time before it counts as failed")


# Tests on running daemons share two cores with everything else on the machine. One that fails is run once
# more; failing twice fails, and every first failure is printed at the end so that none goes unseen.
_first_failures = []


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    if not item.get_closest_marker("live"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(report.failed for report in reports):
        _first_failures.append((item.nodeid, [r.longreprtext for r in reports if r.failed][0]))
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter):
    for nodeid, text in _first_failures:
        terminalreporter.section(f"failed at first: {nodeid}")
        terminalreporter.write_line(text[-6000:])
