"""The network of a cluster, end to end: topology.conf, --switches, --segment, and what is shown."""

import json
import subprocess

import pytest

from cluster import Cluster, bin_dir, clean_environment, until

NODES = "NodeName=n[1-8] Sockets=1 CoresPerSocket=4 RealMemory=4000 Gres=gpu:a100:4 State=UNKNOWN\n"
SLURM_CONF = (
    "ClusterName=net\nSlurmctldHost=localhost\nSelectType=select/cons_tres\n"
    "SelectTypeParameters=CR_Core_Memory\nGresTypes=gpu\nKillWait=1\n" + NODES
    + "PartitionName=all Nodes=ALL Default=YES MaxTime=60 OverSubscribe=NO\n"
)
TREE = "SwitchName=leaf1 Nodes=n[1-4]\nSwitchName=leaf2 Nodes=n[5-8] LinkSpeed=100\nSwitchName=core Switches=leaf[1-2]\n"
BLOCKS = "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\n"
YAML = """
- topology: racks
  cluster_default: true
  block:
    block_sizes: [4]
    blocks:
      - {block: b1, nodes: "n[1-4]"}
      - {block: b2, nodes: "n[5-8]"}
"""


def conf(folder, plugin, more="", **files):
    (folder / "slurm.conf").write_text(SLURM_CONF + (f"TopologyPlugin=topology/{plugin}\n" if plugin else "") + more)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = conf(tmp_path_factory.mktemp("tree"), "tree", topology_conf=TREE)
    with Cluster(emulate=folder) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    folder = conf(tmp_path_factory.mktemp("block"), "block", topology_conf=BLOCKS)
    with Cluster(emulate=folder) as cluster:
        yield cluster


def clear(c):
    c.run("scancel", "--me")
    until(lambda: c.run("squeue", "-h").stdout == "", what="an empty queue")


def nodes_of(c, job):
    c.wait_state(job, "RUNNING")
    return c.run("squeue", "-h", "-j", str(job), "-o", "%N").stdout.strip()


def hold(c, *words):
    """A job that holds nodes until it is cancelled."""
    return c.submit("--exclusive", *words, "--wrap", "sleep 600")


def test_the_tree_is_shown_as_slurm_shows_it(tree):
    assert tree.run("scontrol", "show", "topology").stdout == (
        "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-4]\n"
        "SwitchName=leaf2 Level=0 LinkSpeed=100 Nodes=n[5-8]\n"
        "SwitchName=core Level=1 LinkSpeed=1 Nodes=n[1-8] Switches=leaf[1-2]\n")
    leaf = "SwitchName=leaf2 Level=0 LinkSpeed=100 Nodes=n[5-8]\n"
    for words in (["leaf2"], ["switch=leaf2"], ["unit=leaf2"]):
        assert tree.run("scontrol", "show", "topology", *words).stdout == leaf, words
    for words in (["n7"], ["node=n7"]):
        assert tree.run("scontrol", "show", "topology", *words).stdout.startswith(leaf + "SwitchName=core "), words
    wrong = tree.run("scontrol", "show", "topology", "nobody", rc=None)
    assert wrong.returncode == 1 and "no switch, block or node named nobody" in wrong.stderr
    shown = json.loads(tree.run("scontrol", "show", "topology", "--json").stdout)
    assert [unit["name"] for unit in shown["topology"]] == ["leaf1", "leaf2", "core"]
    assert "TopologyPlugin          = topology/tree" in tree.run("scontrol", "show", "config").stdout


def test_jobs_stay_on_one_switch_and_know_where_they_are(tree):
    job = tree.submit("-N2", "--wrap", "srun sh -c 'echo $SLURM_TOPOLOGY_ADDR $SLURM_TOPOLOGY_ADDR_PATTERN'",
                      "-o", "addr.%j")
    tree.wait_state(job, "COMPLETED")
    lines = sorted((tree.work / f"addr.{job}").read_text().split("\n")[:-1])
    assert lines == ["core.leaf1.n1 switch.switch.node", "core.leaf1.n2 switch.switch.node"]
    first = hold(tree, "-N1", "-w", "n1")
    nodes_of(tree, first)
    whole = hold(tree, "-N4")
    assert nodes_of(tree, whole) == "n[5-8]"
    rest = hold(tree, "-N2")
    assert nodes_of(tree, rest) == "n[2-3]"
    clear(tree)


def test_few_switches_are_waited_for(tree):
    for node in ("n1", "n5"):
        nodes_of(tree, hold(tree, "-w", node))
    waits = hold(tree, "-N4", "--switches=1@10:00")
    until(lambda: "--switches=1 waits for one" in tree.run("scontrol", "explain", str(waits)).stdout,
          what="the reason")
    assert "no --switches" in tree.run("scontrol", "explain", str(waits)).stdout
    shown = tree.run("scontrol", "show", "job", str(waits)).stdout
    assert "Switches=1@00:05:00" in shown and "Reason=Resources" in shown  # max_switch_wait
    soon = hold(tree, "-N2", "--switches=1", "-t", "1")
    assert nodes_of(tree, soon) == "n[2-3]"
    tree.run("scancel", str(soon))
    tree.run("scontrol", "update", f"JobId={waits}", "Switches=1@0:01")
    assert nodes_of(tree, waits) == "n[2-4,6]"
    clear(tree)


def test_a_switch_that_comes_free_is_taken(tree):
    blocking = hold(tree, "-w", "n1")
    nodes_of(tree, blocking)
    nodes_of(tree, hold(tree, "-w", "n5"))
    waits = hold(tree, "-N4", "--switches=1")
    until(lambda: tree.run("squeue", "-h", "-j", str(waits), "-o", "%r").stdout.strip() == "Resources",
          what="the wait")
    tree.run("scancel", str(blocking))
    assert nodes_of(tree, waits) == "n[1-4]"
    clear(tree)


def test_blocks(blocks):
    assert blocks.run("scontrol", "show", "topology").stdout == (
        "BlockName=b1 BlockIndex=0 Nodes=n[1-4] BlockSize=4\n"
        "BlockName=b2 BlockIndex=1 Nodes=n[5-8] BlockSize=4\n"
        "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-8] BlockSize=8\n")
    for node in ("n1", "n5"):
        nodes_of(blocks, hold(blocks, "-w", node))
    waits = hold(blocks, "-N4")  # six nodes are free, but no block
    spread = hold(blocks, "-N4", "--segment=2", "-t", "1")
    assert nodes_of(blocks, spread) == "n[2-3,6-7]"
    assert blocks.job_state(waits) == "PENDING"
    assert "SegmentSize=2" in blocks.run("scontrol", "show", "job", str(spread)).stdout
    clear(blocks)
    never = blocks.run("sbatch", "-N2", "-w", "n1,n8", "--wrap", "true", rc=None)
    assert never.returncode == 1
    assert "Requested node configuration is not available" in never.stderr
    assert "stays within one block" in never.stderr
    topo = blocks.run("sbatch", "-N2", "--exclusive=topo", "--wrap", "true", rc=None)
    assert topo.returncode == 1 and "--exclusive=topo is not supported" in topo.stderr
    addr = blocks.submit("--wrap", "echo $SLURM_TOPOLOGY_ADDR $SLURM_TOPOLOGY_ADDR_PATTERN", "-o", "addr.%j")
    blocks.wait_state(addr, "COMPLETED")
    assert (blocks.work / f"addr.{addr}").read_text() == "n1 node\n"


def explain(folder, *words):
    return subprocess.run([bin_dir() / "berth", "explain", "--conf", folder, "--", "sbatch", *words], text=True,
                          capture_output=True, env=clean_environment(), timeout=60)


def test_explain_names_the_switches(tmp_path):
    folder = conf(tmp_path, "tree", topology_conf=TREE)
    run = explain(folder, "-N3", "--wrap", "true")
    assert "n[1-3]: one switch (leaf1)" in run.stdout, run.stdout + run.stderr
    assert "2 switches (leaf[1-2])" in explain(folder, "-N6", "--wrap", "true").stdout


def test_topology_yaml(tmp_path):
    folder = conf(tmp_path, "", topology_yaml=YAML)
    assert "n[1-3]: one block (b1)" in explain(folder, "-N3", "--wrap", "true").stdout
    with Cluster(emulate=folder) as cluster:
        assert cluster.run("scontrol", "show", "topology", "block=b2").stdout == \
            "BlockName=b2 BlockIndex=1 Nodes=n[5-8] BlockSize=4\n"


@pytest.mark.parametrize("plugin, text, complaint", [
    ("tree", "SwitchName=a Nodes=n[1-8]\nSwitchName=b Nodes=n8\n", "topology.conf:2: node n8 is on two switches"),
    ("tree", "SwitchName=a Nodes=n[1-9]\n", "topology.conf:1: n9 is not in slurm.conf"),
    ("tree", "SwitchName=a Nodes=n[1-6]\n", "topology.conf: n[7-8] are on no switch"),
    ("tree", "SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "the switches form a circle"),
    ("block", "BlockName=a Nodes=n[1-8]\nBlockSizes=16\n", "topology.conf:1: block a has 8 nodes"),
    ("ring", "", "TopologyPlugin=topology/ring is not supported by berth"),
])
def test_what_is_wrong_is_said_with_its_line(tmp_path, plugin, text, complaint):
    run = explain(conf(tmp_path, plugin, topology_conf=text), "--wrap", "true")
    assert run.returncode != 0 and complaint in run.stderr, run.stdout + run.stderr
