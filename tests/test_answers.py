"""Long answers come in pages: the controller holds no more than one, and answers others between two of them."""

import pathlib
import re
import socket
import struct
import subprocess
import threading
import time

import pytest

import messages
from cluster import SECONDS, Cluster, controller_socket

pytestmark = pytest.mark.live

ARRAYS, ELEMENTS = 12, 100_001
MEMORY_MB = 256
ANSWER_SECONDS = 1.0

CONF = f"""\
ClusterName=answers
SlurmctldHost=localhost
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MaxArraySize={ELEMENTS}
MaxJobCount=2000000
NodeName=n1 Sockets=1 CoresPerSocket=2 RealMemory=1000
PartitionName=all Nodes=n1 Default=YES
"""


def peak_mb(pid) -> float:
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", text)[1]) / 1024


def lines_of(cluster, *words) -> int:
    """Of an output that is too long to be held."""
    count = 0
    with subprocess.Popen(words, env=cluster.env, cwd=cluster.work, stdout=subprocess.PIPE) as process:
        while block := process.stdout.read(1 << 20):
            count += block.count(b"\n")
    assert process.returncode == 0, words
    return count


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    (folder / "slurm.conf").write_text(CONF)
    with Cluster(emulate=folder) as c:
        for _ in range(ARRAYS):
            c.submit("-H", f"--array=0-{ELEMENTS - 1}", "-o", "/dev/null", "--wrap", "true")
        yield c


def test_twelve_large_arrays_element_by_element(cluster):
    stop = threading.Event()
    took = []

    def others():
        while not stop.is_set():
            start = time.monotonic()
            cluster.run("sinfo")
            took.append(time.monotonic() - start)

    thread = threading.Thread(target=others)
    thread.start()
    try:
        assert lines_of(cluster, "squeue", "-r", "-h") == ARRAYS * ELEMENTS
    finally:
        stop.set()
        thread.join()
    assert len(took) > 10 and sorted(took)[int(len(took) * 0.99)] < ANSWER_SECONDS, sorted(took)[-5:]
    assert lines_of(cluster, "sacct", "-a", "-n", "--array", "-X", "-o", "jobid") == ARRAYS * ELEMENTS
    assert len(re.findall(r"^JobId=", cluster.out("scontrol", "show", "job"), re.MULTILINE)) == ARRAYS
    assert cluster.out("squeue", "-h", "-r", "-j", "1_77777", "-o", "%i %T") == "1_77777 PENDING"
    assert peak_mb(cluster.pid("controller")) < MEMORY_MB


def test_who_reads_slowly_costs_one_page(cluster):
    """He asks for all of it a few times and takes nothing."""
    ask = messages.frame(messages.make("ListJobs", split_arrays=True))
    pid = cluster.pid("controller")
    rss = lambda: int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1024  # noqa: E731
    before = rss()
    peers = []
    for _ in range(50):
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(controller_socket(cluster))
        peer.sendall(ask)
        peers.append(peer)
    for peer in peers:  # the beginning of the first page: it has been made
        peer.settimeout(SECONDS)
        length, kind = struct.unpack("<IH", peer.recv(6, socket.MSG_WAITALL))
        assert kind == messages.NUMBERS["JobsReply"] and length < 1 << 20
    cluster.run("sinfo")
    assert rss() - before < 50
    for peer in peers:
        peer.close()
    assert peak_mb(pid) < MEMORY_MB
