"""What is fine gets no error and no warning: scripts and command lines that a real Slurm was seen to
carry out as their authors meant them."""

import shlex

import pytest
from explaining import ROOT, codes, explained

FINE = ROOT / "tests" / "lint" / "fine"
SCRIPTS = sorted(FINE.glob("*.sh"))

COMMANDS = {
    "array_cancel_one": "sbatch --array=1-3 --mem=1G --wrap 'sleep 2'",
    "array_cancel_range": "sbatch --array=1-4 --mem=1G -H --wrap 'sleep 2'",
    "array_throttle": "sbatch --array=1-5%2 --mem=1G --wrap 'sleep 20'",
    "dist_N2_n5_nopack": "srun -N2 -n5 -m nopack -p ml ./probe",
    "dist_N2_n5_pack": "srun -N2 -n5 -m pack -p ml ./probe",
    "dist_block": "srun -N2 --ntasks-per-node=4 -n8 -p ml -m block ./probe",
    "dist_block_block": "srun -N2 --ntasks-per-node=4 -n8 -p ml -m block:block ./probe",
    "dist_block_block_cyclic": "srun -N2 --ntasks-per-node=4 -n8 -p ml -m block:block:cyclic ./probe",
    "dist_block_fcyclic": "srun -N2 --ntasks-per-node=4 -n8 -p ml -m block:fcyclic ./probe",
    "dist_block_pack": "srun -N2 --ntasks-per-node=4 -n8 -p ml -m block,pack ./probe",
    "dist_cyclic_cyclic": "srun -N2 --ntasks-per-node=4 -n8 -p ml -m cyclic:cyclic ./probe",
    "dist_def_block": "srun -N2 --ntasks-per-node=4 -n8 -p ml -m '*:block' ./probe",
    "dist_plane2": "srun -N2 --ntasks-per-node=4 -n8 -p ml -m plane=2 ./probe",
    "export_all_foo1": "sbatch --mem=1G --export=ALL,FOO=1 -o o.out export.sh",
    "export_default": "sbatch --mem=1G -o o.out export.sh",
    "export_foo1": "sbatch --mem=1G --export=FOO=1 -o o.out export.sh",
    "export_nil": "sbatch --mem=1G --export=NIL -o o.out export.sh",
    "export_two": "sbatch --mem=1G --export=FOO=a,BAR -o o.out export.sh",
    "gpus_per_task_N2_tpn2": "srun -N2 --ntasks-per-node=2 --gpus-per-task=1 ./probe",
    "gpus_per_task_N2_tpn4": "srun -N2 --ntasks-per-node=4 --gpus-per-task=1 ./probe",
    "gpus_per_task_c8": "srun -n2 -c8 --gpus-per-task=1 ./probe",
    "gpus_per_task_n1": "srun -n1 --gpus-per-task=1 ./probe",
    "gpus_per_task_n2": "srun -n2 --gpus-per-task=1 ./probe",
    "gpus_per_task_n4_2": "srun -n4 --gpus-per-task=2 ./probe",
    "gpus_per_task_typed": "srun -n2 --gpus-per-task=a100:1 ./probe",
    "gpus_per_task_with_gpus": "srun --gpus=4 --gpus-per-task=1 ./probe",
    "out_bad_dir": "sbatch --mem=1G -o nodir/x.out --wrap 'echo hi'",
    "out_label": "srun --mem=1G -l -N2 -n3 -p ml sh -c 'echo a; echo b >&2'",
}


def assert_quiet(explanation):
    assert explanation["accepted"]
    assert codes(explanation, "error", "warning") == [], explanation["warnings"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_fine_script(berth, script):
    assert_quiet(explained(berth, script.name, folder=FINE))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_fine_command(berth, name):
    words = shlex.split(COMMANDS[name])
    assert_quiet(explained(berth, "--", *words, folder=FINE))


def test_few_notes(berth):
    """Notes help only when there are few of them."""
    for script in SCRIPTS:
        notes = codes(explained(berth, script.name, folder=FINE), "note")
        assert len(notes) <= 2, (script.name, notes)
