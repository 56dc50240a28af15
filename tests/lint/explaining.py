"""Running `berth explain` on the recorded cluster, for the tests of this folder."""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONF = ROOT / "tests" / "conf" / "corpus"


def run(berth: str, *arguments: str, folder: pathlib.Path = ROOT, variables=None):
    """The finished `berth explain` with these arguments; an environment without surprises."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **(variables or {})}
    return subprocess.run(
        [berth, "explain", "--conf", str(CONF), *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=20, check=False,
    )


def explained(berth: str, *arguments: str, **more) -> dict:
    """What --json says."""
    done = run(berth, "--json", *arguments, **more)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def codes(explanation: dict, *levels: str) -> list[str]:
    return [w["code"] for w in explanation["warnings"] if not levels or w["level"] in levels]
