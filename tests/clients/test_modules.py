"""`module load` in batch scripts, as on any cluster: by the function of the shell that submitted, in a login shell,
by BASH_ENV, by sourcing the profile. With environment-modules or with lmod, whichever is installed: as packages
they exclude each other."""

import pathlib

import pytest

from cluster import bin_dir

PROFILES = [p for p in map(pathlib.Path, ("/etc/profile.d/modules.sh", "/etc/profile.d/lmod.sh")) if p.exists()]

# The script of a question about --ntasks and PyTorch, with what it runs made visible.
SCRIPT = """\
#SBATCH --ntasks=4
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:1
#SBATCH --job-name=pytorch-single-gpu

BEFORE
module load cuda/11.6  # Adjust to your CUDA version
echo "script $CUDA_HOME $(command -v nvcc)"
srun sh -c 'echo "$SLURMD_NODENAME $CUDA_HOME $(nvcc)"'
module unload cuda/11.6
echo "after ${CUDA_HOME-unset}"
"""

pytestmark = [pytest.mark.live, pytest.mark.skipif(not PROFILES, reason="needs environment-modules or lmod")]


@pytest.fixture(scope="module")
def site(cluster):
    """A module cuda/11.6, and a home whose login shells know it and berth's commands."""
    home = pathlib.Path(cluster.env["HOME"])
    toolkit = home / "cuda-11.6"
    (toolkit / "bin").mkdir(parents=True)
    (toolkit / "bin" / "nvcc").write_text("#!/bin/sh\necho release 11.6\n")
    (toolkit / "bin" / "nvcc").chmod(0o755)
    modules = home / "modulefiles"
    (modules / "cuda").mkdir(parents=True)
    (modules / "cuda" / "11.6").write_text(
        f"#%Module1.0\nsetenv CUDA_HOME {toolkit}\nprepend-path PATH {toolkit}/bin\n")
    # /etc/profile sets PATH anew.
    (home / ".bash_profile").write_text(f"module use {modules}\nPATH={bin_dir()}:$PATH\n")
    cluster.env.pop("CUDA_HOME", None)
    return toolkit


def expected(toolkit):
    return sorted([f"script {toolkit} {toolkit}/bin/nvcc", "after unset",
                   *(f"node{n} {toolkit} release 11.6" for n in range(1, 5))])


def run(cluster, first_lines, *submit, before="", env=None):
    """Submits as a login shell does (or another command), and returns the lines of the output."""
    script = cluster.work / "job.sh"
    script.write_text(first_lines + SCRIPT.replace("BEFORE", before))
    out = cluster.work / "job.out"
    out.unlink(missing_ok=True)
    done = cluster.run(*submit, "sbatch", "--wait", "-o", out, script, rc=None, env=env)
    text = out.read_text() if out.exists() else ""
    assert done.returncode == 0, done.stdout + done.stderr + text
    return sorted(line for line in text.splitlines() if line)


# "$@" of a login shell: what follows is submitted by it.
LOGIN = ("bash", "-l", "-c", '"$@"', "bash")


def test_the_function_of_the_shell_that_submits(cluster, site):
    assert run(cluster, "#!/bin/bash\n", *LOGIN) == expected(site)


def test_a_script_that_is_a_login_shell(cluster, site):
    assert run(cluster, "#!/bin/bash -l\n") == expected(site)


def test_a_login_script_with_nothing_exported(cluster, site):
    assert run(cluster, "#!/bin/bash -l\n#SBATCH --export=NONE\n", before="export SLURM_EXPORT_ENV=ALL") == \
        expected(site)


def test_bash_env(cluster, site):
    modules = site.parent / "modulefiles"
    start = site.parent / "bash_env"
    start.write_text(f". {PROFILES[0]}\nmodule use {modules}\n")
    assert run(cluster, "#!/bin/bash\n", env={"BASH_ENV": str(start)}) == expected(site)


def test_the_profile_sourced_in_the_script(cluster, site):
    before = f". {PROFILES[0]}\nmodule use {site.parent / 'modulefiles'}\n"
    assert run(cluster, "#!/bin/bash\n", before=before) == expected(site)


def test_modules_loaded_before_submitting(cluster, site):
    """What the login shell had loaded is there in the tasks, unless --export says otherwise."""
    words = ("bash", "-l", "-c", 'module load cuda/11.6; "$@"', "bash")
    out = cluster.out(*words, "srun", "-N2", "-n2", "sh", "-c", 'echo "$CUDA_HOME $(nvcc) $LOADEDMODULES"')
    assert out.splitlines() == [f"{site} release 11.6 cuda/11.6"] * 2
    out = cluster.out(*words, "srun", "--export=NONE", "-n1", "/bin/sh", "-c", 'echo "${CUDA_HOME-unset}"')
    assert out == "unset"


def test_a_module_that_is_not_there(cluster, site):
    """module says so and the script goes on, as everywhere; with `set -e` the job fails."""
    script = cluster.work / "absent.sh"
    script.write_text("#!/bin/bash -l\nset -e\nmodule load absent/1.0\necho went on\n")
    out = cluster.work / "absent.out"
    job = cluster.submit("-o", out, script)
    cluster.wait_state(job, "FAILED")
    assert "absent/1.0" in out.read_text() and "went on" not in out.read_text()
