"""Programs of others that drive Slurm, unmodified: a cluster of four pretended nodes for each of their tests.

`make test-clients` installs them (tools/client-packages.txt). They find berth's commands first in PATH; a Slurm
that a package brought along is never asked.
"""

import pathlib

import pytest

from cluster import Cluster, bin_dir


@pytest.fixture(scope="module")
def cluster():
    with Cluster(emulate="4x4:a100") as c:
        # As after a login: some of them insist on it.
        c.env["USER"] = c.env["LOGNAME"] = c.out("id", "-un")
        assert pathlib.Path(c.out("sh", "-c", "command -v sbatch")) == bin_dir() / "sbatch"
        yield c
