"""Connections that say nothing or next to nothing must not slow down others."""

import os
import resource
import socket
import struct
import threading
import time

import pytest

from cluster import Cluster, controller_socket

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
