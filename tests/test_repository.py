"""What the repository promises about itself: its arrows are checked, its README shows real output."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def check_arrows(root: pathlib.Path) -> subprocess.CompletedProcess:
    return subprocess.run([ROOT / "tools/check-arrows", root], capture_output=True, text=True)


@pytest.fixture
def tree(tmp_path):
    """A tree with this repository's table of modules; write(path, text) adds a file to its src/."""
    (tmp_path / "cmake").mkdir()
    (tmp_path / "cmake/modules.txt").write_text((ROOT / "cmake/modules.txt").read_text())
    (tmp_path / "src").mkdir()

    def write(path: str, text: str) -> pathlib.Path:
        file = tmp_path / "src" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return tmp_path

    return write


def test_arrows_of_this_tree():
    run = check_arrows(ROOT)
    assert run.returncode == 0, run.stdout


def test_allowed_include_passes(tree):
    root = tree("place/fit.cpp", '#include "place/fit.h"\n#include "request/job.h"\n#include <vector>\n')
    assert check_arrows(root).returncode == 0


@pytest.mark.parametrize(
    ("path", "line", "complaint"),
    [
        ("base/ids.h", '#include "text/size.h"', "base must not use text"),
        ("place/fit.cpp", '  #  include "explain/render.h"', "place must not use explain"),
        ("place/fit_test.cpp", '#include "lint/rules.h"', "place must not use lint"),
        ("conf/slurm_conf.cpp", '#include "helpers.h"', "does not begin with a module's name"),
        ("place/fit.cpp", "#include <fstream>", "place is pure and must not include <fstream>"),
        ("cluster/node.h", "#include <sys/socket.h>", "must not include <sys/socket.h>"),
        ("helpers/x.h", "", "not in a module"),
    ],
)
def test_bad_include_is_found(tree, path, line, complaint):
    run = check_arrows(tree(path, f"#include <string>\n{line}\n"))
    assert run.returncode == 1
    assert complaint in run.stdout
    assert f"src/{path}" in run.stdout


def test_a_test_of_a_pure_module_may_read_files(tree):
    assert check_arrows(tree("place/fit_test.cpp", "#include <fstream>\n")).returncode == 0


def test_a_table_with_a_cycle_is_refused(tree):
    root = tree("base/a.h", "")
    (root / "cmake/modules.txt").write_text("base: text\ntext: base\n")
    run = check_arrows(root)
    assert run.returncode == 1
    assert "not listed above it" in run.stderr


def test_readme_shows_what_berth_prints(berth):
    run = subprocess.run([ROOT / "tools/update-readme", "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
