"""What the repository promises about itself: its arrows are checked, its README shows real output."""

import os
import pathlib
import re
import shutil
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


@pytest.mark.skipif(not (shutil.which("ccache") and shutil.which("g++-12")), reason="there is no ccache, or no g++-12")
def test_a_precompiled_header_is_never_an_older_one(tmp_path):
    """As CMake calls the compiler behind ccache: there is one already, with something else in it."""
    header = tmp_path / "pch.hxx"
    (tmp_path / "pch.hxx.cxx").write_text("")
    (tmp_path / "use.cpp").write_text("int f(A a) { return a.MEMBER; }\n")
    environment = dict(os.environ, CCACHE_DIR=str(tmp_path / "cache"),
                       CCACHE_SLOPPINESS=re.search(r"CCACHE_SLOPPINESS=(\S+)", (ROOT / "CMakeLists.txt").read_text())[1])
    compiler = ["ccache", "g++-12", "-fpch-preprocess", "-Winvalid-pch", "-include", str(header)]

    def build(member):
        header.write_text(f"struct A {{ int {member}; }};\n")
        subprocess.run([ROOT / "cmake/write-anew", *compiler, "-x", "c++-header", "-o", f"{header}.gch", "-c",
                        "pch.hxx.cxx"], cwd=tmp_path, env=environment, check=True)
        subprocess.run([*compiler, f"-DMEMBER={member}", "-c", "use.cpp", "-o", "use.o"], cwd=tmp_path,
                       env=environment, check=True)

    build("one")
    build("two")
    (tmp_path / "pch.hxx.gch").unlink()
    build("one")
    build("three")
    rules = (ROOT / "build/CMakeFiles/rules.ninja").read_text()
    assert "ccache" not in rules or "write-anew" in rules


# split() gives parts of the text it is given. GCC 12 ends a temporary in the head of a range-for before the first
# round (Clang 19 does not, so its sanitizers see nothing): the text needs a name. These return views, not texts.
VIEWS = ("trim", "without_key", "substr")
SPLIT_OF_A_TEMPORARY = re.compile(r"for \([^;]*: *(?:\w+::)*split\w*\((?:\w+::)*(\w+\.value_or|\w+)\(")


def test_no_loop_over_parts_of_a_temporary():
    found = []
    for path in sorted((ROOT / "src").rglob("*.cpp")) + sorted((ROOT / "src").rglob("*.h")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = SPLIT_OF_A_TEMPORARY.search(line)
            if match and match[1] not in VIEWS:
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("line, bad", [
    ("for (const std::string_view name : text::split(text_of(request), ',')) {", True),
    ('for (const auto word : wire::split_job_list(value.value_or(""))) {', True),
    ("for (const std::string_view part : text::split(detail.cpu_ids(), ',')) {", False),
    ("for (const std::string_view word : text::split(text::trim(line), ' ')) {", False),
])
def test_a_loop_over_parts_of_a_temporary_is_found(line, bad):
    match = SPLIT_OF_A_TEMPORARY.search(line)
    assert bool(match and match[1] not in VIEWS) == bad


# ---- docs/trust.md names tests ------------------------------------------------------------------

TRUST = (ROOT / "docs/trust.md").read_text()
NAMED = sorted(set(re.findall(r"`(\w+\.(?:py|cpp))::([\w.]+)`", TRUST)))


def has_test(file, name):
    found = sorted((ROOT / "tests").rglob(file)) if file.endswith(".py") else sorted((ROOT / "src").glob(f"*/{file}"))
    if file.endswith(".py"):
        wanted = rf"^def {name}\("
    else:
        suite, _, case = name.partition(".")
        wanted = rf"^TEST(_F|_P)?\({suite},\s*{case}\)"
    return any(re.search(wanted, path.read_text(), re.MULTILINE) for path in found)


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_trust_names_is_there(file, name):
    assert has_test(file, name)


def test_a_test_that_is_not_there_is_noticed():
    assert not has_test("test_repository.py", "test_that_nobody_wrote") and not has_test("quota_test.cpp", "Quota.ThatNobodyWrote")


def test_trust_has_every_row():
    """T1–T25, F1–F24, P1–P7, and the holes that reviews found; a row names a test or says in words why there is none."""
    rows = dict(re.findall(r"^\| ([A-Z]\d[^|]*?) \|(.*)$", TRUST, re.MULTILINE))
    there = set()
    for key in rows:
        for part in key.split(", "):
            first, _, last = part.partition("–")
            letter, low = first[0], int(first[1:])
            there |= {f"{letter}{n}" for n in range(low, int(last[1:] if last else low) + 1)}
    wanted = {f"{letter}{n}" for letter, most in (("T", 25), ("F", 24), ("P", 7), ("C", 3), ("H", 14), ("M", 8)) for n in range(1, most + 1)}
    assert there == wanted
    for key, text in rows.items():
        assert "::" in text or "**" in text or re.search(r"\b(see )?[HMT]\d", text), key


@pytest.mark.parametrize("fuzzer", sorted(set(re.findall(r"`fuzz_(\w+)`", TRUST))))
def test_a_fuzzer_that_trust_names_is_there(fuzzer):
    assert list((ROOT / "src").glob(f"*/{fuzzer}_fuzz.cpp"))


def test_pages_link_to_pages_that_are_there():
    wrong = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                wrong.append(f"{page.relative_to(ROOT)}: {target}")
    assert not wrong
