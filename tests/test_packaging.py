"""The systemd units: systemd itself must find nothing wrong with them."""

import pathlib
import shutil
import subprocess

import pytest

from cluster import ROOT, bin_dir

UNITS = sorted((ROOT / "packaging/systemd").glob("*.service"))


def test_there_is_a_unit_for_each_daemon():
    assert [unit.stem for unit in UNITS] == ["berthctld", "berthd"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_accepts_the_unit(unit, tmp_path):
    # The programs are where they were built, not where they are installed.
    for other in UNITS:
        text = other.read_text()
        assert "/usr/sbin/" + other.stem in text
        (tmp_path / other.name).write_text(text.replace("/usr/sbin/", f"{bin_dir().resolve()}/"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / unit.name], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    ours = [line for line in done.stdout.splitlines() if "berth" in line]
    assert done.returncode == 0 and not ours, done.stdout
