"""`berth simulate` on small traces of each format: the figures, the page, two configurations side by side."""
import json
import pathlib
import re
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent / "simulate"


def simulate(berth, *args, code=0):
    result = subprocess.run([berth, "simulate", *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, timeout=120, check=False)
    assert result.returncode == code, result.stderr
    return result


def figures(berth, *args):
    return json.loads(simulate(berth, *args, "--json", "-").stdout)


def check_page(path, runs):
    page = path.read_text()
    # Nothing is fetched from anywhere.
    assert not re.search(r"(?i)\b(src|href|url|import|action|data)\s*[=(]", page)
    assert "http" not in page
    assert page.count("<svg") >= 4
    assert page.count('class="line0"') == page.count("<svg")
    assert page.count('class="line1"') == (page.count("<svg") if runs == 2 else 0)
    assert page.count("time since the first submission") >= 3
    assert "prefers-color-scheme:dark" in page


def test_swf(berth, tmp_path):
    page = tmp_path / "page.html"
    out = figures(berth, "--emulate", "n1:cpus=8:mem=8G", "--trace", HERE / "small.swf", "--html", page)
    assert out["trace"]["format"] == "swf"
    assert out["trace"]["not_used"] == 1
    assert "small.swf:8: no run time" in out["trace"]["not_used_first"][0]
    [run] = out["runs"]
    # 8 CPUs until 100; then the second job, with the fourth beside it; the third after the second.
    assert run["jobs"]["completed"] == 4 and run["jobs"]["backfilled"] == 1
    assert run["makespan_seconds"] == 180
    assert run["wait_seconds"] == {"count": 4, "mean": 72.5, "median": 70, "p95": 130, "max": 130}
    assert run["allocated"]["cpu"] == pytest.approx((800 + 200 + 240 + 80) / (8 * 180))
    check_page(page, 1)


def test_sacct(berth):
    [run] = figures(berth, "--emulate", "n[1-2]:cpus=8:mem=64G:gpus=a100x4", "--trace", HERE / "small.sacct")["runs"]
    assert run["gpus"] == 8
    assert run["jobs"] == {"submitted": 3, "started": 3, "backfilled": 1, "completed": 2, "timed_out": 1,
                           "ended_otherwise": 0, "started_again": 0, "preemptions": 0, "refused": 0,
                           "never_started": 0}
    # The first has one node until 10:10; the second needs both and waits; the array element goes first and ends at its
    # limit, 10:07.
    assert run["wait_seconds"]["max"] == 540
    assert run["makespan_seconds"] == 900
    assert [size["gpus"] for size in run["by_gpus"]] == ["1", "3-4", "5-8"]
    assert any("partition" in note for note in run["notes"])


def test_openb(berth):
    out = figures(berth, "--nodes", HERE / "nodes.csv", "--trace", HERE / "pods.csv")
    assert out["trace"]["not_used"] == 1
    [run] = out["runs"]
    assert run["jobs"]["completed"] == 6
    assert run["wait_seconds"]["max"] == 0
    # 1 + 0.5 + 0.5 GPUs for 1000 s, 2 + 2 for 500 s, of 10 GPUs for 1010 s.
    assert run["allocated"]["gpu"] == pytest.approx(4000 / 10100)
    assert any("A10" in note for note in run["notes"])


def test_two_configurations_side_by_side(berth, tmp_path):
    page = tmp_path / "page.html"
    args = ["--emulate", "4x8:a100", "--synthetic", "jobs=400,load=1.1", "--seed", "3", "--against-set",
            "PartitionName=main Nodes=ALL Default=YES State=UP MaxTime=INFINITE OverSubscribe=EXCLUSIVE",
            "--html", page]
    out = figures(berth, *args)
    first, second = out["runs"]
    assert first["jobs"]["completed"] == second["jobs"]["completed"] == 400
    assert second["wait_seconds"]["mean"] > first["wait_seconds"]["mean"], "whole nodes hold fewer jobs"
    check_page(page, 2)
    text = simulate(berth, *args).stdout
    assert re.search(r"^makespan +\S+ +\S+ +\+\S+$", text, re.M), text


def test_the_same_seed_gives_the_same_bytes(berth):
    args = ["--emulate", "8x4:a100", "--synthetic", "jobs=500,load=0.9", "--json", "-"]
    first = simulate(berth, *args, "--seed", 5).stdout
    assert first == simulate(berth, *args, "--seed", 5).stdout
    assert first != simulate(berth, *args, "--seed", 6).stdout


@pytest.mark.parametrize("args, says", [
    (["--emulate", "2x2:a100"], "--trace FILE and --synthetic"),
    (["--trace", "x"], "--conf DIR, --emulate SPEC and --nodes"),
    (["--emulate", "2x2:a100", "--trace", "/nowhere"], "/nowhere"),
    (["--emulate", "2x2:a100", "--trace", HERE / "nodes.csv"], "not a trace that is known"),
    (["--emulate", "2x2:a100", "--synthetic", "jobs=x"], "jobs=x"),
    (["--emulate", "2x2:a100", "--trace", HERE / "small.swf", "--format", "csv"], "swf, sacct or openb"),
    (["--emulate", "2x2:a100", "--trace", HERE / "small.swf", "--set", "x"], "KEY=VALUE"),
])
def test_what_is_wrong_is_said(berth, args, says):
    assert says in simulate(berth, *args, code=1).stderr


def test_help(berth):
    assert "--trace FILE" in simulate(berth, "--help").stdout
    assert "simulate" in subprocess.run([berth, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
