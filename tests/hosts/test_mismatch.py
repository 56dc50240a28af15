"""Nodes that are not what slurm.conf says, machines that have not joined, other versions, and where secrets are not."""

import base64
import os
import pathlib

import pytest

import cluster
from hosts import Hosts
from messages import Probe, refusal

pytestmark = pytest.mark.live


def node(hosts, name):
    return hosts[0].run("scontrol", "-o", "show", "node", name).stdout


@pytest.fixture(scope="module")
def hosts():
    """h1 has less memory than it is told to have; h2 has a slurm.conf of its own; h3 has not joined."""
    with Hosts(4) as h:
        nodes = "NodeName=h[1-3] CPUs=2 RealMemory=1000 State=UNKNOWN"
        assert nodes in h.text
        for host in h.hosts:
            text = host.conf.read_text()
            lines = ("NodeName=h1 CPUs=2 RealMemory=99000000 State=UNKNOWN\n"
                     "NodeName=h[2-3] CPUs=2 RealMemory=1000 State=UNKNOWN")
            host.conf.write_text(text.replace(nodes, lines))
        own = h[2].conf.read_text()
        h[2].conf.write_text(own.replace("h[2-3] CPUs=2 RealMemory=1000", "h[2-3] CPUs=64 RealMemory=500000 Gres=gpu:8") +
                             "\nGresTypes=gpu\nProlog=/nowhere/prolog\n")
        h.start_controller()
        for index in (1, 2):
            h.join(index)
            h.start_agent(index)
        h.start_agent(3)
        cluster.until(lambda: "State=IDLE" in node(h, "h2"), what=f"h2{h[2].logs()}")
        yield h


def test_a_node_with_less_than_slurm_conf_says_gets_no_jobs(hosts):
    cluster.until(lambda: "INVALID_REG" in node(hosts, "h1"), what="the state of h1")
    shown = node(hosts, "h1")
    assert "Reason=Low RealMemory (reported:" in shown and "99000000" in shown, shown
    job = hosts[0].run("sbatch", "--parsable", "-w", "h1", "-o", "/dev/null", "--wrap", "true").stdout.strip()
    assert hosts[0].run("srun", "-w", "h2", "hostname").stdout == "h2\n"  # it was looked at meanwhile
    assert hosts[0].run("squeue", "-h", "-j", job, "-o", "%T").stdout.strip() == "PENDING"
    hosts[0].run("scancel", job)


def test_what_a_nodes_own_slurm_conf_says_of_it_changes_nothing(hosts):
    shown = node(hosts, "h2")
    assert "CPUTot=2 " in shown and "RealMemory=1000 " in shown and "gpu" not in shown, shown
    assert hosts[0].run("srun", "-w", "h2", "-n2", "hostname").stdout == "h2\nh2\n"


def test_a_machine_that_has_not_joined_is_no_node(hosts):
    assert hosts[3].agent.poll() is None or hosts[3].agent.returncode != 0
    cluster.until(lambda: "berth join" in hosts[3].logs(), what=f"what has to be done{hosts[3].logs()}")
    assert "State=IDLE" not in node(hosts, "h3")


def test_another_protocol_is_refused_in_words(hosts):
    token = hosts[0].run("scontrol", "token").stdout.strip().removeprefix("SLURM_JWT=")
    for protocol in (0, 2, 2**32 - 1):
        with Probe("h0:6817", hosts[0].home / "berth-authority.pem", within=hosts[2].within()) as peer:
            answer = peer.ask("Hello", protocol=protocol, program="squeue", token=token)
            assert str(protocol) in refusal(answer) and "1" in refusal(answer), answer
            assert peer.receive() is None


def secrets(hosts):
    """What must be nowhere: of keys as bytes, in hex and in base64; of PEM files a line of the key."""
    found = {"a join token": hosts.secret_token.encode(), "a user's token": hosts.user_token.encode()}
    key = (hosts[0].home / "state/cluster.key").read_bytes()
    for name, form in (("bytes", key), ("hex", key.hex().encode()), ("HEX", key.hex().upper().encode()),
                       ("base64", base64.b64encode(key).rstrip(b"="))):
        found[f"the cluster's key as {name}"] = form
    for file in (hosts[0].home / "state/authority.pem", hosts.identity_file(1), hosts.identity_file(2)):
        text = file.read_text()
        assert file.stat().st_mode & 0o077 == 0, file
        body = text[text.index("PRIVATE KEY-----"):].splitlines()[1]
        found[str(file)] = body.encode()
    return found


def test_no_secret_is_where_others_can_read(hosts):
    """Command lines and environments of all processes while jobs, steps and tokens are made, and all logs."""
    hosts[0].run("scontrol", "setdebug", "debug3", check=False)
    hosts.secret_token = hosts[0].run("scontrol", "token", "node=h3").stdout.strip()
    hosts.user_token = hosts[0].run("scontrol", "token", "username=nobody").stdout.strip().removeprefix("SLURM_JWT=")
    hosts[3].run("berth", "join", "-", stdin=hosts.secret_token + "\n")
    hosts[0].spawn("srun", "-w", "h2", "sleep", "300", log="srun.log")
    cluster.until(lambda: hosts[0].run("squeue", "-h", "-s").stdout, what=f"a step{hosts[0].logs()}")
    known = secrets(hosts)
    assert len(known) == 9
    looked_at = 0
    for process in pathlib.Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        for file in ("cmdline", "environ"):
            try:
                text = (process / file).read_bytes()
            except OSError:
                continue
            looked_at += 1
            for name, secret in known.items():
                assert secret not in text, (name, process, file, (process / "cmdline").read_bytes())
    assert looked_at > 20
    logs = [file for host in hosts.hosts for file in host.home.glob("*.log")]
    assert len(logs) >= 4
    for file in logs:
        for name, secret in known.items():
            assert secret not in file.read_bytes(), (name, file)
    # Nor can another user look into the daemons.
    for pid in (hosts.controller.pid, hosts[2].agent.pid):
        for file in ("environ", "mem", "maps", "fd/0"):
            done = hosts[0].run("head", "-c1", f"/proc/{pid}/{file}", user="nobody", check=False)
            assert done.returncode != 0, (pid, file)
    hosts[0].run("scancel", "-u", "root")
