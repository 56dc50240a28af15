"""What somebody on the network, or with somebody's credential, gets: nothing."""

import random
import subprocess
import sys
import time

import pytest

import cluster
from hosts import NODE_PORT, PORT, Hosts
from messages import Probe, frame, make, refusal
from wiretap import Between, Tap

pytestmark = pytest.mark.live
NOBODY = 65534
CANARY = "canary-7f3a-of-alice"


@pytest.fixture(scope="module")
def hosts():
    # Munge is believed from everywhere: what refuses a credential here is what it was made for.
    with Hosts(3, keys="SlurmctldParameters=munge_from_nodes,munge_admins\n") as h:
        h.start()
        yield h


def squeue(hosts):
    return hosts[0].run("squeue", "-h", "-o", "%j").stdout.split()


def through(hosts, port):
    """A slurm.conf by which commands of h2 speak to a port of h1."""
    folder = hosts.directory / f"between{port}"
    folder.mkdir()
    conf = folder / "slurm.conf"
    text = hosts[2].conf.read_text().replace("SlurmctldHost=h0", "SlurmctldHost=h1")
    conf.write_text(text.replace(f"SlurmctldPort={PORT}", f"SlurmctldPort={port}"))
    (folder / "berth-authority.pem").write_text((hosts[0].home / "berth-authority.pem").read_text())
    return str(conf)


def token(hosts):
    return hosts[0].run("scontrol", "token", "username=nobody").stdout.strip().removeprefix("SLURM_JWT=")


def test_nothing_of_a_job_is_in_the_clear(hosts, tmp_path):
    """Script, environment, arguments, input, output and files: none of it can be read on the network."""
    script = hosts.directory / "job.sh"
    script.write_text(f"#!/bin/sh\n# {CANARY}\nsrun -w h2 echo argument {CANARY}\n")
    with Tap(hosts, tmp_path / "tap") as tap:
        before = len(tap.bytes())
        job = hosts[0].run("sbatch", "--parsable", "-N2", "-o", "/dev/null", f"--comment={CANARY}",
                           f"--export=ALL,SECRET={CANARY}", script).stdout.strip()
        cluster.until(lambda: job not in hosts[0].run("squeue", "-h", "-o", "%i").stdout.split(), what="the end of the job")
        done = hosts[0].run("srun", "-w", "h1", "sh", "-c", f"cat; echo $SECRET; SLURM_CONF={hosts[1].conf} squeue -o %k", stdin=CANARY + "\n", user=NOBODY,
                            SECRET=CANARY)
        assert done.stdout.count(CANARY) >= 2
        file = hosts.directory / "file"
        file.write_text(CANARY * 1000)
        hosts[0].run("salloc", "-N2", "sbcast", "-f", str(file), "/tmp/berth-canary-file")
        said = tap.bytes()
        assert len(said) - before > 10_000  # it did listen
        assert b"\x17\x03\x03" in said  # TLS records
        assert CANARY.encode() not in said
    for host in hosts.hosts[1:]:
        host.run("rm", "-f", "/tmp/berth-canary-file")


def test_what_was_heard_is_good_for_nothing(hosts, tmp_path):
    """All that a command said, sent once more, at once and after a restart of the controller: nothing comes of it."""
    jwt = token(hosts)
    kept = tmp_path / "kept"
    with Between(hosts[1], 7901, ("h0", PORT), kept):
        hosts[2].run("sbatch", "-H", "-J", "once", "--wrap", "true", user=NOBODY, SLURM_CONF=through(hosts, 7901), SLURM_JWT=jwt)
    said = kept.read_bytes()
    assert len(said) > 500 and squeue(hosts) == ["once"]
    send = ("import socket, sys\n"
            "data = open(sys.argv[1], 'rb').read()\n"
            "with socket.create_connection((sys.argv[2], int(sys.argv[3]))) as peer:\n"
            "    peer.settimeout(20)\n"
            "    try:\n"
            "        peer.sendall(data)\n"
            "        while peer.recv(65536): pass\n"
            "    except ConnectionError: pass\n")
    for restart in (False, True):
        if restart:
            cluster_end(hosts)
            hosts.start_controller()
            hosts.wait_idle(2)
        for host, port in (("h0", PORT), ("h1", NODE_PORT), ("h2", NODE_PORT)):
            hosts[1].run(sys.executable, "-c", send, str(kept), host, str(port))
        assert squeue(hosts) == ["once"]
    hosts[0].run("scancel", "-n", "once")


def cluster_end(hosts):
    hosts.controller.kill()
    hosts.controller.wait()


def test_a_changed_bit_is_refused(hosts, tmp_path):
    """One bit of what a command says is changed on its way: it is told, and no other job comes of it."""
    jwt = token(hosts)
    kept = tmp_path / "kept"
    random.seed(19)
    refused = 0
    with Between(hosts[1], 7909, ("h0", PORT), kept):
        hosts[2].run("sbatch", "-H", "-J", "whole", "--wrap", "true", user=NOBODY, SLURM_CONF=through(hosts, 7909), SLURM_JWT=jwt)
    length = len(kept.read_bytes())
    hosts[0].run("scancel", "-n", "whole")
    for number in range(16):
        name = f"bit{number}"
        port = 7910 + number
        with Between(hosts[1], port, ("h0", PORT), kept, flip=random.randrange(length)):
            # A bit of a length makes the controller wait for more; it gives up after its deadline, the test before it.
            try:
                done = hosts[2].run("sbatch", "-H", "-J", name, "--wrap", "true", user=NOBODY, check=False, timeout=4,
                                    SLURM_CONF=through(hosts, port), SLURM_JWT=jwt)
                refused += done.returncode != 0
            except subprocess.TimeoutExpired:
                refused += 1
        names = squeue(hosts)
        assert len(names) == len(set(names)) and set(names) <= {f"bit{n}" for n in range(number + 1)}, names
    # A command tries once more when its connection breaks: that one is not changed, and gives the one job.
    assert refused + len(squeue(hosts)) >= 16
    hosts[0].run("scancel", "-u", "nobody")


def test_a_munge_credential_is_good_for_its_session_only(hosts, tmp_path):
    """Root's own credential, as a daemon that was lied to could have it: in any other session it is nobody's."""
    authority = hosts[0].home / "berth-authority.pem"
    file = tmp_path / "hello"
    for within in (hosts[0].within(), hosts[1].within()):
        file.unlink(missing_ok=True)
        with Probe("h0:6817", authority, "munge-to", file, within=hosts[0].within()):
            cluster.until(lambda: file.exists() and file.stat().st_size > 100, what="the Hello")
            with Probe("h0:6817", authority, within=within) as peer:
                peer.send(file.read_bytes())
                answer = peer.ask("RevokeNodes", nodes="h2")
                assert "made for something else" in refusal(answer), answer
    hosts.wait_idle(2)


@pytest.mark.parametrize("payload", ["", "berth caller to controller\n", "berth caller to controller\n\n"])
def test_a_credential_that_was_made_for_something_else_is_refused(hosts, payload):
    made = subprocess.run(hosts[0].within() + ["munge", "-s", payload], capture_output=True, text=True, check=True).stdout.strip()
    with Probe("h0:6817", hosts[0].home / "berth-authority.pem", within=hosts[0].within()) as peer:
        peer.send("Hello", protocol=1, program="scontrol", credential=made)
        answer = peer.ask("RevokeNodes", nodes="h2")
        assert answer is None or refusal(answer), answer
    hosts.wait_idle(2)


def test_plain_frames_over_tcp_are_answered_by_nobody(hosts):
    """As the daemons spoke before: a Hello, and what follows, without TLS."""
    for host, port in (("h0", PORT), ("h1", NODE_PORT)):
        script = ("import socket, sys\n"
                  f"peer = socket.create_connection(({host!r}, {port})); peer.settimeout(20)\n"
                  f"peer.sendall(bytes.fromhex({(frame(make('Hello', protocol=1)) + frame(make('Ping'))).hex()!r}))\n"
                  "said = b''\n"
                  "try:\n"
                  "    while part := peer.recv(4096): said += part\n"
                  "except OSError: pass\n"
                  "print(said[:1].hex())\n")
        # An alert of TLS (0x15), or the end.
        assert hosts[2].run(sys.executable, "-c", script).stdout.strip() in ("", "15")


def test_a_stranger_costs_a_deadline_and_no_more(hosts):
    """Who connects and says nothing is sent away; the others are served meanwhile."""
    count = 600
    script = ("import socket, sys, time\n"
              f"peers = [socket.create_connection(('h0', {PORT})) for _ in range({count})]\n"
              "print('ready', flush=True)\n"
              "left = set(peers); end = time.monotonic() + 30\n"
              "while left and time.monotonic() < end:\n"
              "    for peer in list(left):\n"
              "        peer.settimeout(0.01)\n"
              "        try:\n"
              "            if not peer.recv(100): left.discard(peer)\n"
              "        except TimeoutError: pass\n"
              "        except OSError: left.discard(peer)\n"
              "print(len(left), flush=True)\n")
    flood = subprocess.Popen(hosts[1].within() + [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert flood.stdout.readline() == "ready\n"
        began = time.monotonic()
        hosts[2].run("squeue", SLURM_JWT=token(hosts))
        assert time.monotonic() - began < 10
        assert flood.stdout.readline() == "0\n"
    finally:
        flood.kill()
        flood.wait()
        flood.stdout.close()
    memory = int(next(line for line in open(f"/proc/{hosts.controller.pid}/status") if line.startswith("VmRSS")).split()[1])
    assert memory < 100_000, memory


def test_who_listens_where_an_agent_should_gets_no_secret(hosts, tmp_path):
    """Somebody takes the address of h2 towards h1, and the controller has not noticed: srun and sbcast tell him nothing."""
    kept = tmp_path / "kept"
    kept.touch()
    address = hosts[2].address
    script = ("import socket, threading\n"
              f"listener = socket.create_server(({address!r}, {NODE_PORT})); print('ready', flush=True)\n"
              f"record = open({str(kept)!r}, 'wb', buffering=0)\n"
              "def serve(peer):\n"
              "    try:\n"
              "        while part := peer.recv(65536):\n"
              "            record.write(part)\n"
              "            peer.sendall(bytes.fromhex('160303007a020000760303') + b'x' * 112)  # begins like a ServerHello\n"
              "    except OSError: pass\n"
              "while True: threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()\n")
    proof = {"SLURM_JWT": token(hosts), "SECRET": CANARY, "user": NOBODY}
    job = hosts[1].run("salloc", "--no-shell", "-N2", "-J", "lure", **proof).stderr.split("allocation ")[1].split()[0]
    file = hosts.directory / "secret"
    file.write_text(CANARY * 100)
    mac = hosts[2].run("cat", "/sys/class/net/eth0/address").stdout.strip()
    on_switch = ["nsenter", "-t", str(hosts.switch.pid), "--net", "--"]
    his = subprocess.run([*on_switch, "ip", "-br", "link", "show", "br0"], check=True, capture_output=True, text=True).stdout.split()[2]
    hosts.cut(2)
    # The controller goes on speaking to the machine that it knows, and hears nothing from it.
    hosts[0].run("ip", "neigh", "replace", address, "lladdr", mac, "dev", "eth0", "nud", "permanent")
    hosts[1].run("ip", "neigh", "replace", address, "lladdr", his, "dev", "eth0", "nud", "permanent")
    hosts.on_switch("ip", "addr", "add", f"{address}/24", "dev", "br0")
    impostor = subprocess.Popen([*on_switch, sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert impostor.stdout.readline() == "ready\n"
        for words in (["srun", "--jobid", job, "-w", "h2", "-N1", "-n1", "echo", CANARY],
                      ["sbcast", "-f", "--jobid", job, str(file), "/tmp/berth-canary-file"]):
            before = kept.stat().st_size
            process = subprocess.Popen([*hosts[1].within(), "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                                        "--", *words], env=hosts[1].environment(SECRET=CANARY, SLURM_JWT=proof["SLURM_JWT"]),
                                       text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            cluster.until(lambda least=before + 100: kept.stat().st_size > least, what=f"a call of {words[0]}")
            process.terminate()
            process.communicate(timeout=cluster.SECONDS)
            assert process.returncode != 0
        assert CANARY.encode() not in kept.read_bytes()
    finally:
        impostor.kill()
        impostor.wait()
        impostor.stdout.close()
        hosts.on_switch("ip", "addr", "del", f"{address}/24", "dev", "br0")
        for index in (0, 1):
            hosts[index].run("ip", "neigh", "del", address, "dev", "eth0")
        hosts.mend(2)
        hosts[0].run("scancel", job)
        hosts.wait_idle(2)


def test_a_token_is_short_makes_no_other_and_can_be_revoked(hosts):
    """What it is good for ends with it; a longer one is root's to give."""
    too_long = hosts[0].run("scontrol", "token", "lifespan=1801", user=NOBODY, check=False)
    assert too_long.returncode != 0 and "cannot live for 1801 seconds" in too_long.stderr
    assert hosts[0].run("scontrol", "token", "username=nobody", "lifespan=86400").stdout.startswith("SLURM_JWT=")
    jwt = hosts[0].run("scontrol", "token", user=NOBODY).stdout.strip().removeprefix("SLURM_JWT=")
    root = hosts[0].run("scontrol", "token").stdout.strip().removeprefix("SLURM_JWT=")
    for mine, words in ((jwt, ["token"]), (root, ["token"]), (root, ["token", "node=h1"]), (root, ["token", "username=daemon"])):
        done = hosts[2].run("scontrol", *words, check=False, SLURM_JWT=mine)
        assert done.returncode != 0 and "Access/permission denied" in done.stderr, done.stderr
    hosts[2].run("squeue", SLURM_JWT=jwt)
    daemon = hosts[0].run("scontrol", "token", "username=daemon").stdout.strip().removeprefix("SLURM_JWT=")
    refused = hosts[2].run("scontrol", "revoke", "username=nobody", check=False, SLURM_JWT=jwt)
    assert refused.returncode != 0 and "Access/permission denied" in refused.stderr
    with Probe("h0:6817", hosts[0].home / "berth-authority.pem", within=hosts[2].within()) as peer:
        peer.send("Hello", protocol=1, program="squeue", token=jwt)
        assert peer.ask("Ping")[0] == "Pong"
        hosts[0].run("scontrol", "revoke", "username=nobody")
        peer.until_closed()  # what was opened with it ends
    for restart in (False, True):
        if restart:
            cluster_end(hosts)
            hosts.start_controller()
        done = hosts[2].run("squeue", check=False, SLURM_JWT=jwt)
        assert done.returncode != 0 and "the token was revoked" in done.stderr, done.stderr
        hosts[2].run("squeue", SLURM_JWT=daemon)  # another's
        hosts[2].run("squeue", SLURM_JWT=token(hosts))  # a new one
    hosts.wait_idle(2)
