"""Connections that say nothing or next to nothing, and users who take all they can, must not keep others from working."""

import os
import pathlib
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

import flooding
import messages
from cluster import ROOT, Cluster, bin_dir, controller_socket, until

pytestmark = pytest.mark.live
IDLE, SLOW = 5000, 1000
ANSWER_SECONDS = 1.0


def room_for(wanted: int) -> int:
    """Raises this process's limit of descriptors; how many connections it leaves room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = wanted + 200
    if soft < need:
        resource.setrlimit(resource.RLIMIT_NOFILE, (need if hard == resource.RLIM_INFINITY else min(need, hard), hard))
    return max(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200)


def connect(path: str, count: int) -> list:
    peers = []
    for _ in range(count):
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        peer.connect(path)  # blocks while the controller's queue of new ones is full
        peers.append(peer)
    return peers


def timed(cluster, *words) -> float:
    start = time.monotonic()
    cluster.run(*words)
    return time.monotonic() - start


def quickest(cluster, *words) -> float:
    """The best of a few: other work on the machine slows down single ones, a flood all of them."""
    return min(timed(cluster, *words) for _ in range(5))


@pytest.fixture(scope="module")
def cluster():
    with Cluster(emulate="2x0") as c:
        yield c


def test_silent_and_slow_connections(cluster):
    share = min(1.0, room_for(IDLE + SLOW) / (IDLE + SLOW))
    path = controller_socket(cluster)
    stop = threading.Event()
    trickling = threading.Event()
    idle = connect(path, int(IDLE * share))
    slow = connect(path, int(SLOW * share))
    # A frame that promises 60,000 bytes and delivers one a second.
    head = struct.pack("<IH", 60000, 30)

    def trickle():
        for peer in slow:
            peer.setblocking(False)
        sent = 0
        while not stop.wait(1.0):
            for peer in slow:
                try:
                    peer.send(head[sent:sent + 1] if sent < len(head) else b"x")
                except OSError:
                    pass  # the controller may drop one that never says anything whole
            sent += 1
            if sent == 3:
                trickling.set()

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        assert trickling.wait(60)
        assert quickest(cluster, "sinfo") < ANSWER_SECONDS
        assert quickest(cluster, "sbatch", "-H", "-o", "/dev/null", "--wrap", "true") < ANSWER_SECONDS
        assert quickest(cluster, "squeue") < ANSWER_SECONDS
        # The nodes are still there: a flood drops strangers, not agents.
        assert cluster.out("sinfo", "-h", "-o", "%D %t") == "2 idle"
    finally:
        stop.set()
        thread.join()
        for peer in idle + slow:
            peer.close()
    assert quickest(cluster, "sinfo") < ANSWER_SECONDS


@pytest.mark.parametrize(
    "bytes_sent",
    [
        b"\xff" * 64,  # a length of 4 GiB
        struct.pack("<IH", 22, 9999) + b"x" * 20,  # no such message
        struct.pack("<IH", 22, 10) + b"\xff" * 20,  # SubmitJob that cannot be read
        b"GET / HTTP/1.1\r\n\r\n",
        os.urandom(4096),
    ],
    ids=["length", "kind", "payload", "http", "noise"],
)
def test_nonsense_is_dropped(cluster, bytes_sent):
    (peer,) = connect(controller_socket(cluster), 1)
    with peer:
        try:
            peer.sendall(bytes_sent)
            peer.shutdown(socket.SHUT_WR)
            peer.settimeout(60)
            while peer.recv(65536):
                pass  # an answer that says why, before the end
        except (BrokenPipeError, ConnectionResetError):
            pass  # dropped while it was still being sent
    assert cluster.out("sinfo", "-h", "-o", "%D %t") == "2 idle"


def resident(cluster, which) -> float:
    return flooding.memory_of(cluster.pid(which))[0]


def test_a_claim_of_four_gigabytes_costs_nothing(cluster):
    """A thousand connections claim the largest frame that can be written, or the largest that is taken, and send little of it."""
    share = min(1.0, room_for(2000) / 2000)
    before = resident(cluster, "controller")
    claims = []
    for claim in (0xFFFFFFFF, flooding.MIB * 16):
        claims.append(connect(controller_socket(cluster), int(1000 * share)))
        for peer in claims[-1]:
            peer.setblocking(False)
            try:
                peer.send(struct.pack("<IH", claim, 10) + b"x" * 1000)
            except OSError:
                pass  # sent away already
    try:
        impossible, possible = claims
        for peer in impossible:  # at once
            peer.settimeout(5)
            try:
                while peer.recv(65536):
                    pass
            except ConnectionResetError:
                pass
        cluster.run("sinfo")
        assert resident(cluster, "controller") - before < 64
    finally:
        for peer in [*impossible, *possible]:
            peer.close()


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: two other users")
GREEDY, OTHER = "nobody", "daemon"


@needs_root
@pytest.mark.parametrize("socket_of", ["controller", "agent"])
def test_one_user_keeps_no_others_from_working(cluster, socket_of):
    """bench/flood in small: connections without end, the largest requests, half messages, answers that are not read."""
    path = pathlib.Path(controller_socket(cluster))
    if socket_of == "controller":
        frames, number = flooding.largest_requests(), messages.NUMBERS["SubmitJob"]
    else:
        path, frames, number = path.parent / "node.sock", flooding.launches("node1"), messages.NUMBERS["Launch"]
    half = flooding.begun(16 * flooding.MIB, 16 * flooding.MIB - 1, number)
    with flooding.Flood(path, GREEDY, 4000, 1000, frames, half, processes=2) as flood:
        for _ in range(5):
            assert "node1" in cluster.out("sinfo", "-h", "-N")
            cluster.run("sbatch", "-o", "/dev/null", "--wrap", "true", user=OTHER)
            cluster.run("srun", "-n1", "--overcommit", "true", user=OTHER)
    assert flood.told["closed"] > 1000, flood.told  # it was sent away, again and again
    assert flood.told["bytes"] > 50 * flooding.MIB, flood.told
    for which in ("controller", "node"):
        assert flooding.memory_of(cluster.pid(which))[1] < 256, which
    for user in (GREEDY, OTHER):
        cluster.run("scancel", "-u", user, rc=None)
    until(lambda: cluster.out("sinfo", "-h", "-o", "%D %t") == "2 idle", what="idle nodes")


@needs_root
def test_names_of_nobody_hold_nobody_up(cluster):
    """Requests that name users without end, whom the name service has to look for."""
    def ask(index, count):
        with messages.Probe(controller_socket(cluster), user=65534) as peer:
            for turn in range(20):
                peer.send("CancelJobs", users=[f"u{index}x{turn}x{i}" for i in range(count)])
            refused = [messages.refusal(peer.receive()) for _ in range(20)]
            wanted = "Invalid user name: u" if count <= 64 else "users (CancelJobs): more than 64 of them"
            assert all(wanted in words for words in refused), refused[:2]

    for count in (4000, 64):
        asking = [threading.Thread(target=ask, args=(index, count)) for index in range(16)]
        for thread in asking:
            thread.start()
        try:
            for _ in range(3):
                assert timed(cluster, "sbatch", "-H", "-o", "/dev/null", "--wrap", "true") < ANSWER_SECONDS
        finally:
            for thread in asking:
                thread.join()


@needs_root
def test_sixty_four_descriptors_are_enough_to_serve_root():
    """A controller that may have few descriptors refuses users and loses nothing."""
    with Cluster(emulate="2x0") as c:
        os.kill(c.pid("controller"), signal.SIGKILL)
        c.run("sh", "-c", f"ulimit -n 64; exec {bin_dir()}/berth up --state {c.state} --emulate 2x0")
        assert resource.prlimit(c.pid("controller"), resource.RLIMIT_NOFILE) == (64, 64)
        held = c.submit("-H", "-o", "/dev/null", "--wrap", "true")
        with flooding.Flood(controller_socket(c), GREEDY, 400, 50, [(messages.frame(messages.make("Ping")), 1)],
                            processes=1) as flood:
            for _ in range(5):
                assert "node2" in c.out("sinfo", "-h", "-N")
                c.run("srun", "-n1", "true")
        assert flood.told["closed"] > 100, flood.told
        assert c.job_state(held) == "PENDING"
        c.run("scancel", held)
        c.wait_idle()


def test_a_thousand_nodes_come_back_at_once():
    """Their connections break together, when the controller is started anew."""
    load = bin_dir().parent / "bench/berth-load"
    if not load.exists():
        pytest.skip("berth-load is not built")
    done = subprocess.run([ROOT / "bench/controller", "--only", "back", "--nodes", "1000"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    assert done.returncode == 0, done.stdout
    seconds = float(re.search(r"all nodes back after a restart\s+([\d.]+) s", done.stdout)[1])
    slowest = float(re.search(r"the longest of \d+\s+([\d.]+) ms", done.stdout)[1])
    assert seconds < 10 and slowest < 2000, done.stdout
