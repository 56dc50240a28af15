"""`berth explain` from the outside: scripts and command lines in, text, JSON and exit codes out."""

import json
import os
import pathlib
import re
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/conf/corpus"
TASK_FIELDS = {"rank", "node", "local_id", "cpu_mask", "gpus", "cuda_visible_devices", "env"}


def environment(**more) -> dict[str, str]:
    mine = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH", "SRUN", "SALLOC"))}
    return mine | more


@pytest.fixture
def explain(berth, tmp_path):
    """explain("--json", …, script=text) runs berth explain; a script is written to job.sh first."""

    def run(*words, script=None, emulate="gpu[1-2]:cpus=16:mem=64G:gpus=a100x4", stdin=None, env=None):
        command = [berth, "explain"]
        if emulate:
            command += ["--emulate", emulate]
        command += [str(word) for word in words]
        if script is not None:
            (tmp_path / "job.sh").write_text(script)
            command.append("job.sh")
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, input=stdin, timeout=60,
            env=env or environment(),
        )

    return run


def batch(directives: str, body: str) -> str:
    return f"#!/bin/bash\n#SBATCH {directives}\n{body}\n"


# ---- text


@pytest.mark.parametrize(
    ("directives", "body", "code", "fragments"),
    [
        (
            "-N2 --ntasks-per-node=2 --gres=gpu:4 -t 10",
            "srun python train.py",
            0,
            [
                "job.sh asks for  2 nodes × 4 GPUs = 8 GPUs, 2 tasks per node = 4 tasks, "
                "no binding: every task sees all 4, 10 min, partition main",
                "it would get     gpu[1-2]: CPUs 0,8  GPUs 0-3 a100",
                "line 3: srun python train.py",
                "step 0, starts at once",
                "     1  gpu1      1  8     0,1,2,3  0,1,2,3",
                "warning B104, line 2:",
            ],
        ),
        (
            "-n4 -c4 --gres=gpu:4 --gpus-per-task=1 -t 60 --mem-per-cpu=1443",
            "for i in $(seq 5); do srun --exclusive --gres=gpu:1 --ntasks=1 app $i & done\nwait",
            0,
            ["5 steps, 4 at once, 1 waits", "at once\n     4     0  gpu1", "after step 0"],
        ),
        (
            "-N1 -n2 -t 10",
            "srun -n4 a",
            1,
            [
                "line 3: srun -n4 a",
                "fails",
                "srun: error: Unable to create step for job 1: More processors requested than permitted",
            ],
        ),
        (
            "--gres=gpu:9 -t 10",
            "srun a",
            1,
            [
                "it is refused, exit code 1:",
                "  sbatch: error: Batch job submission failed: Requested node configuration is not available",
                "closest: gpu1 has 4 GPUs, asked 9",
            ],
        ),
        (
            "-N2 --ntasks-per-node=2 --gpus-per-task=1 -t 10",
            "mpirun ./app",
            0,
            ["4 ranks of mpirun (daemons are step 0)", "not set", "warning B107"],
        ),
        (
            "-N2 --ntasks-per-node=1 --gpus-per-node=4 -t 10",
            "torchrun --nproc_per_node=4 t.py",
            0,
            ["4 processes, no step", "it runs on gpu1 only, 1 of the 2 nodes", "warning B401"],
        ),
        ("-N1 --gres=gpu:1 -t 10", "python x.py", 0, ["no launcher line found", "on gpu1"]),
        ("-n1 --array=0-3 -t 10", "srun a", 0, ["an array of 4 jobs"]),
        ("-n2 -t 10", "if [ -f x ]; then srun a; fi", 0, ["it may not run: line 3: inside an if"]),
        ("-n2 -t 10", "srun -n$(nproc) a", 0, ["cannot be planned", "the value of -n$(nproc) is not known"]),
        ("-n2 -t 10", "srun -n1 a &\nsrun -n1 b\nwait", 0, ["waits until step 0 ends", "held by step 0"]),
    ],
)
def test_text(explain, directives, body, code, fragments):
    run = explain(script=batch(directives, body))
    assert run.returncode == code, run.stdout + run.stderr
    for fragment in fragments:
        assert fragment in run.stdout, run.stdout
    assert "\033" not in run.stdout


@pytest.mark.parametrize(
    ("words", "code", "fragments"),
    [
        (["srun", "-N2", "--gpus-per-node=1", "a"], 0, ["srun asks for  2 nodes × 1 GPU = 2 GPUs", "gpu2"]),
        (["salloc", "-N1"], 0, ["salloc asks for  1 node", "salloc starts a shell on this machine"]),
        (["salloc", "-n2", "srun", "a"], 0, ["srun a ", "step 0"]),
        (["sbatch", "-n2", "-t1", "--wrap=srun a"], 0, ["sbatch asks for  1 node, 2 tasks", "srun a"]),
        (["srun", "--gres=gpu:h100:1", "a"], 1, ["there is no gpu of type 'h100'"]),
        (["srun", "--no-such-option", "a"], 1, ["srun is refused, exit code 255:", "unrecognized option"]),
        (["srun", "-N", "4294967296", "a"], 1, ["srun is refused", "4294967296"]),
        (["srun", "--gres=gpu:1e99", "a"], 1, ["it is refused", "there is no gpu of type '1e99'"]),
        (["srun", "-N3", "a"], 1, ["it is accepted, and would not start"]),
    ],
)
def test_commands(explain, words, code, fragments):
    run = explain("--", *words)
    assert run.returncode == code, run.stdout + run.stderr
    for fragment in fragments:
        assert fragment in run.stdout, run.stdout


def test_long_tables_are_shortened_unless_all(explain):
    script = batch("-N2 -n128 -O -t 10", "srun a")
    short = explain(script=script).stdout
    assert "52 of 128 ranks shown" in short and len(short.splitlines()) < 80
    assert len(explain("--all", script=script).stdout.splitlines()) > 130


def test_script_arguments_reach_the_script(explain, tmp_path):
    (tmp_path / "job.sh").write_text(batch("-n4 -t 10", 'srun -n$1 "$2"'))
    run = explain("job.sh", "3", "two words")
    assert "srun -n3 'two words'" in run.stdout
    assert len(re.findall(r"^ +\d+  gpu1", run.stdout, re.M)) == 3


# ---- JSON


def test_json_has_the_documented_shape(explain):
    run = explain("--json", script=batch("-N2 --ntasks-per-node=2 --gpus-per-task=1 -t 10", "srun a"))
    assert run.returncode == 0
    answer = json.loads(run.stdout)
    assert answer["accepted"] is True and answer["error"] is None
    nodes = answer["job"]["nodes"]
    assert [(n["name"], n["cpus"], n["cpu_mask"], n["gpus"]) for n in nodes] == [
        ("gpu1", 2, "0x3", [0, 1]),
        ("gpu2", 2, "0x3", [0, 1]),
    ]
    assert all(isinstance(n["mem_mb"], int) for n in nodes)
    assert answer["job"]["env"]["SLURM_JOB_NODELIST"] == "gpu[1-2]"
    assert answer["job"]["env"]["SLURM_TASKS_PER_NODE"] == "2(x2)"
    (step,) = answer["steps"]
    assert (step["id"], step["line"], step["command"], step["waits_for"]) == (0, 3, "srun a", [])
    tasks = step["tasks"]
    assert all(TASK_FIELDS <= task.keys() for task in tasks)
    assert [(t["rank"], t["node"], t["local_id"], t["cpu_mask"], t["gpus"], t["cuda_visible_devices"]) for t in tasks] == [
        (0, "gpu1", 0, "0x1", [0], "0"),
        (1, "gpu1", 1, "0x2", [1], "1"),
        (2, "gpu2", 0, "0x1", [0], "0"),
        (3, "gpu2", 1, "0x2", [1], "1"),
    ]
    assert tasks[3]["env"]["SLURM_PROCID"] == "3"
    assert tasks[3]["env"]["CUDA_VISIBLE_DEVICES"] == "1"
    for warning in answer["warnings"]:
        assert {"code", "line", "text", "hint"} <= warning.keys()


def test_json_of_a_refusal(explain):
    run = explain("--json", "--", "srun", "--gres=gpu:9", "a")
    assert run.returncode == 1
    answer = json.loads(run.stdout)
    assert answer["accepted"] is False and answer["verdict"] == "never"
    error = answer["error"]
    assert error["exit_code"] == 1
    assert error["text"] == "Unable to allocate resources: Requested node configuration is not available"
    assert error["lines"] == ["srun: error: " + error["text"]]
    assert "asked 9" in error["hint"]
    assert answer["job"]["nodes"] == [] and answer["steps"] == []
    assert any(w["level"] == "error" for w in answer["warnings"])


def test_json_of_a_refused_step(explain):
    answer = json.loads(explain("--json", script=batch("-n2 -t 10", "srun -n4 a\nsrun b")).stdout)
    assert answer["accepted"] is True
    assert answer["steps"][0]["id"] is None and answer["steps"][0]["start"] == "refused"
    assert answer["steps"][0]["error"]["exit_code"] == 1
    assert answer["steps"][1]["id"] == 0


def test_json_of_waiting_steps(explain):
    body = "for i in 1 2 3; do srun -n1 --exact --gres=gpu:2 a & done\nwait"
    answer = json.loads(explain("--json", script=batch("-n4 --gres=gpu:4 -t 10", body)).stdout)
    assert [s["waits_for"] for s in answer["steps"]] == [[], [], [0]]
    assert [s["beside"] for s in answer["steps"]] == [[], [0], [1]]
    assert [s["start"] for s in answer["steps"]] == ["at_once", "at_once", "waits"]


def test_json_replaces_bytes_that_are_not_utf8(berth, tmp_path):
    (tmp_path / "job.sh").write_bytes(b"#!/bin/bash\n#SBATCH -n1 -t 1 -J \xff\xfe\nsrun a \xff\n")
    run = subprocess.run([berth, "explain", "--emulate", "1x1:a100", "--json", "job.sh"], cwd=tmp_path,
                         capture_output=True, env=environment())
    answer = json.loads(run.stdout.decode("utf-8"))
    assert answer["steps"][0]["command"] == "srun a \N{REPLACEMENT CHARACTER}"


# ---- where things come from


def test_conf_directory_file_and_variable(explain, tmp_path):
    script = batch("-N1 -n2 --gres=gpu:tesla_v100:2 -t 10", "srun a")
    for words in (["--conf", CORPUS], ["--conf", CORPUS / "slurm.conf"], [f"--conf={CORPUS}/"]):
        run = explain(*words, script=script, emulate=None)
        assert run.returncode == 0, run.stderr
        assert "gpu5: CPUs" in run.stdout
        # Keys that are not used are counted in one line, and named when asked for.
        assert run.stderr.startswith("berth: slurm.conf: ") and run.stderr.count("\n") == 1
        assert run.stderr.endswith("1 key that Slurm has is not used by berth: CredType (line 7)\n")
    for path in CORPUS.glob("*.conf"):
        (tmp_path / path.name).write_text(path.read_text())
    with open(tmp_path / "slurm.conf", "a") as conf:
        conf.write("MessageTimeout=20\nJobAcctGatherParams=UsePss\nVSizeFactor=1\n")
    run = explain("--conf", tmp_path, script=script, emulate=None)
    assert run.stderr.endswith(", … (all: berth explain --verbose)\n")
    run = explain("--conf", tmp_path, "--verbose", script=script, emulate=None)
    assert "VSizeFactor (line " in run.stderr and "--verbose" not in run.stderr
    run = explain(script=script, emulate=None, env=environment(SLURM_CONF=str(CORPUS / "slurm.conf")))
    assert "gpu5: CPUs" in run.stdout


BUSY = ROOT / "tests/conf/samples/scontrol_d_show_job.txt"  # GPUs 0 and 1 of gpu1 and gpu2 are taken


@pytest.mark.parametrize(
    ("words", "verdict", "fragments"),
    [
        (["-w", "gpu1", "--gres=gpu:2", "--mem=1G"], "now", ["gpu1: CPUs 8  GPUs 2-3 a100  1G"]),
        (["-w", "gpu1", "--gres=gpu:3", "--mem=1G"], "later",
         ["it would wait: it fits this cluster, but not what is free now (Resources)", "when it is free"]),
        (["-w", "gpu1", "--gres=gpu:5"], "never", ["it is refused"]),
    ],
)
def test_busy(explain, words, verdict, fragments):
    options = ["--conf", CORPUS, "--busy", BUSY]
    run = explain(*options, "--", "srun", *words, "a", emulate=None)
    for fragment in fragments:
        assert fragment in run.stdout, run.stdout
    answer = json.loads(explain(*options, "--json", "--", "srun", *words, "a", emulate=None).stdout)
    assert answer["verdict"] == verdict
    assert answer["accepted"] is (verdict != "never")
    assert answer["job"]["assumes_idle"] is (verdict == "later")


def test_no_cluster_says_what_to_do(explain):
    if os.path.exists("/etc/slurm/slurm.conf"):
        pytest.skip("this machine has a slurm.conf")
    run = explain(script=batch("-n1", "srun a"), emulate=None)
    assert run.returncode == 1 and run.stdout == ""
    assert "--emulate 2x4:a100" in run.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--conf", "/nonexistent", "job.sh"], "cannot read /nonexistent: No such file or directory"),
        (["--conf", ".", "job.sh"], "cannot read ./slurm.conf: No such file or directory"),
        (["--emulate", "gpu[1-", "job.sh"], "gpu[1-"),
        (["--emulate", "2x4:a100", "--conf", "/etc", "job.sh"], "exclude each other"),
        (["--emulate", "2x4:a100", "missing.sh"], "cannot read missing.sh: No such file or directory"),
        (["--emulate", "2x4:a100", "."], "Is a directory"),
        (["--emulate", "2x4:a100", "--busy", "missing", "job.sh"], "cannot read missing: No such file"),
        (["--emulate", "2x4:a100", "--busy", "job.sh", "job.sh"], "--busy job.sh names neither a job nor a node"),
        (["--emulate", "2x4:a100"], "nothing to explain"),
        (["--jsn", "job.sh"], "do you mean --json?"),
        (["--emulate", "2x4:a100", "--", "squeue"], "squeue is not a command berth explains"),
    ],
)
def test_bad_arguments(explain, tmp_path, words, text):
    (tmp_path / "job.sh").write_text(batch("-n1", "srun a"))
    run = explain(*words, emulate=None)
    assert run.returncode == 1
    assert run.stdout == ""
    assert text in run.stderr
    assert all(line.startswith("berth: ") for line in run.stderr.splitlines())


def test_standard_input(explain):
    script = batch("-n2 -t 10", "srun a")
    assert "the script asks for" in explain("-", stdin=script).stdout
    assert "step 0" in explain("--", "sbatch", "-n1", stdin=script).stdout


def test_variables_are_input(explain):
    run = explain("--", "srun", "a", env=environment(SLURM_NTASKS="3"))
    assert "3 tasks" in run.stdout
    run = explain(script=batch("-t 10", "srun a"), env=environment(SBATCH_GPUS_PER_NODE="2", SBATCH_TIMELIMIT="5"))
    assert "× 2 GPUs" in run.stdout
    # Those of an enclosing job describe that job.
    run = explain("--", "srun", "a", env=environment(SLURM_NTASKS="3", SLURM_JOB_ID="7"))
    assert "3 tasks" not in run.stdout and run.returncode == 0


def test_host_files(explain, tmp_path):
    (tmp_path / "hosts").write_text("gpu2\ngpu1\ngpu2\n")
    run = explain("--json", "--", "srun", "-n3", "-m", "arbitrary", "-w", "./hosts", "a")
    assert [t["node"] for t in json.loads(run.stdout)["steps"][0]["tasks"]] == ["gpu2", "gpu1", "gpu2"]


# ---- bad input


def test_hostile_scripts(explain, tmp_path):
    start = time.monotonic()
    scripts = {
        "binary": b"\x7fELF" + bytes(range(256)) * 50,
        "long": b"#!/bin/bash\n" + b"#" * (5 << 20),
        "empty": b"",
        "quotes": b"#!/bin/bash\n#SBATCH -n1\nsrun 'a\n",
        "loop": b"#!/bin/bash\n#SBATCH -n1 -t 1\nwhile :; do srun a & done\n",
        "many": b"#!/bin/bash\n#SBATCH -n1 -t 1\nfor i in $(seq 100000); do srun -n1 a & done\n",
        "deep": b"#!/bin/bash\n#SBATCH -n1 -t 1\n" + b"(" * 100000,
    }
    for name, content in scripts.items():
        (tmp_path / name).write_bytes(content)
        run = explain(name)
        assert run.returncode in (0, 1), name
        if name in ("binary", "long"):
            assert run.stdout == "" and run.stderr.count("\n") == 1, run.stderr
        if name in ("binary", "long", "empty"):
            assert run.returncode == 1
    assert time.monotonic() - start < 60


def test_hundred_megabytes_are_not_read(explain, tmp_path):
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(100 << 20)
    run = explain("huge")
    assert run.returncode == 1
    assert run.stderr == "berth: huge is longer than 4 MiB\n"


# ---- the program


def test_version_and_help(berth):
    run = subprocess.run([berth, "--version"], capture_output=True, text=True)
    assert run.stdout == "berth 0.1.0 (speaks slurm 26.11.0)\n"
    for words in (["help"], ["--help"], ["explain", "--help"]):
        run = subprocess.run([berth, *words], capture_output=True, text=True)
        assert run.returncode == 0 and "berth explain" in run.stdout
    for words in ([], ["frobnicate"]):
        run = subprocess.run([berth, *words], capture_output=True, text=True)
        assert run.returncode == 1 and run.stdout == "" and run.stderr


def test_closed_output_is_an_error(berth, tmp_path):
    (tmp_path / "job.sh").write_text(batch("-n1 -t 1", "srun a"))
    with open("/dev/full", "w") as full:
        run = subprocess.run([berth, "explain", "--emulate", "1x1:a100", "job.sh"], cwd=tmp_path, stdout=full,
                             stderr=subprocess.PIPE, text=True, env=environment())
    assert run.returncode == 1 and run.stderr == "berth: cannot write the answer\n"


# ---- the documentation


def documented(kind: str) -> str:
    page = (ROOT / "docs/explain.md").read_text()
    return re.search(rf"```{kind}\n(.*?)```", page, re.S).group(1)


def cut_to(shown, real):
    """`real` with the entries of each env that `shown` has: the page leaves most variables out."""
    if isinstance(shown, dict) and isinstance(real, dict):
        out = {}
        for key, value in real.items():
            if key == "env" and isinstance(shown.get(key), dict):
                out[key] = {k: v for k, v in value.items() if k in shown[key]}
            else:
                out[key] = cut_to(shown.get(key), value)
        return out
    if isinstance(shown, list) and isinstance(real, list) and len(shown) == len(real):
        return [cut_to(a, b) for a, b in zip(shown, real)]
    return real


def test_documented_examples_are_real(berth):
    script = "examples/distinct-gpus.sh"
    options = ["--emulate", "2x4:a100"]
    text = subprocess.run([berth, "explain", *options, script], cwd=ROOT, capture_output=True, text=True,
                          env=environment())
    assert documented("text").removeprefix(f"$ berth explain --emulate 2x4:a100 {script}\n") == text.stdout
    answer = subprocess.run([berth, "explain", "--json", *options, script], cwd=ROOT, capture_output=True,
                            text=True, env=environment())
    shown = json.loads(documented("json"))
    assert cut_to(shown, json.loads(answer.stdout)) == shown
