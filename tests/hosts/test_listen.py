"""berth up --listen and berth join: a cluster of two machines without a slurm.conf of one's own."""

import base64
import re
import subprocess

import pytest

import cluster
from hosts import Hosts, end
from messages import Probe, make, message_class, refusal

pytestmark = pytest.mark.live
NOBODY = 65534


@pytest.fixture
def hosts():
    """Machines on which nothing is set up; the network of a Hosts is all that is used of it."""
    with Hosts(3, munge=()) as h:
        for host in h.hosts:
            host.conf.unlink()
            # Nobody's directory: clusters of root's on this machine must not be found.
            host.state = host.home / "berth"
            host.run("sh", "-c", "mkdir -p /var/lib/berth && mount -t tmpfs none /var/lib/berth")
        yield h


def run(host, *words, **more):
    return host.run("env", "-u", "SLURM_CONF", *words, **more)


def up(host, *words):
    done = run(host, "berth", "up", "--state", host.state, *words, check=False)
    host.conf = host.state / "slurm.conf"
    return done


def tokens(text):
    return dict(re.findall(r"^  (\S+):  echo (\S+) \| berth join -$", text, re.M))


def test_two_machines(hosts):
    head, other, third = hosts.hosts
    try:
        done = up(head, "--listen", "h1,h2")
        assert done.returncode == 0, done.stdout + done.stderr
        made = tokens(done.stdout)
        assert set(made) == {"h1", "h2"}

        done = run(other, "berth", "join", "-", "--state", other.state, stdin=made["h1"] + "\n")
        assert "this machine is node h1 of cluster local" in done.stdout
        other.conf = other.state / "slurm.conf"
        head.run("sinfo")
        cluster.until(lambda: head.run("srun", "-N2", "hostname", check=False).stdout.split(), what="both nodes")
        assert sorted(head.run("srun", "-N2", "hostname").stdout.split()) == ["h0", "h1"]
        # A user's commands work in his job there.
        shown = head.run("srun", "-w", "h1", "env", f"SLURM_CONF={other.conf}", "squeue", "-h", "-o", "%T", user=NOBODY)
        assert shown.stdout.strip() == "RUNNING"

        # The token is spent; the one of h2 makes no h1; nothing is made by one that is not known.
        again = run(third, "berth", "join", made["h1"], "--state", third.state, check=False)
        assert again.returncode != 0 and "was used before" in again.stderr
        assert head.run("sinfo", "-h", "-N", "-o", "%N").stdout.split() == ["h0", "h1"]

        # Asked again it says what is missing.
        assert set(tokens(up(head, "--listen", "h1,h2").stdout)) == {"h2"}
        refused = head.run("scontrol", "token", "newnode=h1", check=False)
        assert refused.returncode != 0 and "is a node of this cluster already" in refused.stderr + refused.stdout
        refused = head.run("scontrol", "token", "newnode=x1;id", check=False)
        assert refused.returncode != 0 and "cannot be the name of a node" in refused.stderr + refused.stdout

        # The controller comes and goes, and the node it made with a token stays.
        head.run("berth", "down", "--state", head.state)
        assert up(head, "--listen", "h1,h2").returncode == 0
        cluster.until(lambda: head.run("sinfo", "-h", "-n", "h1", "-o", "%T").stdout.strip() == "idle", what="h1")
    finally:
        for host in hosts.hosts:
            run(host, "berth", "down", "--state", host.state, check=False)


def test_what_is_wrong_is_said(hosts):
    host = hosts[0]
    done = run(host, "berth", "up", "--listen", "h1", "--emulate", "2x0", "--state", host.state, check=False)
    assert done.returncode != 0 and "a pretended cluster has no other machines" in done.stderr
    done = run(host, "berth", "join", "nonsense", "--state", host.state, check=False)
    assert done.returncode != 0 and "this is no token to join with" in done.stderr
    done = run(host, "berth", "join", "nonsense", "--state", host.state, "-f", "/etc/x.conf", check=False)
    assert done.returncode != 0 and "--state is for a machine without a slurm.conf" in done.stderr


def wish(folder, name):
    """A request for a certificate, and the file of its key."""
    key, made = folder / f"{name}.key", folder / f"{name}.wish"
    subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                    "-out", made, "-subj", "/CN=x"], check=True, capture_output=True)
    return made.read_bytes(), key.read_text()


def test_a_join_that_comes_to_nothing_spends_nothing(tmp_path):
    """Nothing is made for a wish that is none; when the controller dies meanwhile, or the answer is lost, the same question is answered."""
    with Hosts(2, munge=()) as h:
        def ask(text):
            with Probe("h0:6817", h[0].home / "berth-authority.pem", within=h[1].within()) as peer:
                return peer.ask("JoinNode", id=token.id, secret=token.secret, wish=text,
                                hardware=make("Hardware", sockets=1, cores_per_socket=2, threads_per_core=1, memory_mb=1000))

        def known():
            return h[0].run("scontrol", "show", "node", "x1", check=False).returncode == 0

        h.start_controller()
        text = h[0].run("scontrol", "token", "newnode=x1").stdout.strip().removeprefix("berth-join-")
        token = message_class("JoinToken").FromString(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        mine, key = wish(tmp_path, "mine")
        assert refusal(ask(b"no wish")) and not known()
        for point, made in (("before_commit", False), ("after_commit", True)):
            end(h.controller)
            h.start_controller(BERTH_CRASH_AT=point)
            assert ask(mine) is None
            assert h.controller.wait(cluster.SECONDS) != 0
            h.start_controller()
            assert known() == made
        first = ask(mine)[1].certificate
        assert first.startswith(b"-----BEGIN CERTIFICATE-----")
        identity = tmp_path / "identity.pem"
        identity.write_text(key + first.decode())
        with Probe("h0:6817", h[0].home / "berth-authority.pem", "identity", identity, within=h[1].within()) as agent:
            name, reply = agent.ask("RegisterNodes", address=make("NodeAddress", host="h1", port=6818),
                                    nodes=[make("NodeReport", name="x1", sockets=1, cores_per_socket=2, threads_per_core=1, memory_mb=1000)])
            assert name == "Registered" and not reply.nodes[0].HasField("refusal"), reply
            assert ask(mine)[1].certificate == first
            assert "used before" in refusal(ask(wish(tmp_path, "other")[0]))
            # Nobody's identity has become void by that.
            agent.send("Beat", number=5, ask=True)
            while (answer := agent.receive())[0] != "Beat":
                pass
