"""Users of a node reach the controller by way of its agent, and take no more of the agent than of the controller."""

import struct
import threading

import pytest

import cluster
import flooding
from hosts import Hosts
from messages import NUMBERS, Probe, make, refusal

pytestmark = pytest.mark.live
NOBODY = 65534
MIB = 1 << 20


@pytest.fixture(scope="module")
def hosts():
    """A job of nobody's runs on h1, whose agent vouches for him."""
    with Hosts(2, munge=()) as h:
        h.start()
        job = h[0].run("sbatch", "--parsable", "-w", "h1", "-o", "/dev/null", "--wrap", "sleep 600", user=NOBODY).stdout.strip()
        cluster.until(lambda: h[0].run("squeue", "-h", "-j", job, "-o", "%T").stdout.strip() == "RUNNING", what="the job")
        yield h


def called(hosts):
    """A connection to the controller by way of the agent."""
    peer = Probe(hosts.node_socket(1), user=NOBODY, within=hosts[1].within())
    return peer.send("CallController", program="x")


def half(size, sent):
    return struct.pack("<IH", size, NUMBERS["SubmitJob"]) + bytes(sent)


def test_half_messages_take_little_memory_of_the_agent(hosts):
    peers = [called(hosts) for _ in range(40)]
    feeders = [threading.Thread(target=peer.send, args=(half(15 * MIB, 14 * MIB),)) for peer in peers]
    try:
        with called(hosts) as other:
            assert other.ask("Ping")[0] == "Pong"
        for feeder in feeders:
            feeder.start()
        # Some are held, and the others are not read until these are over.
        seen = []

        def nothing_moves():
            seen.append(flooding.memory_of(hosts[1].agent.pid)[0])
            return len(seen) > 30 and seen[-1] > seen[0] + 15 and max(seen[-30:]) - min(seen[-30:]) < 1

        cluster.until(nothing_moves, what="an agent that takes no more")
        assert flooding.memory_of(hosts[1].agent.pid)[1] < 200
        assert hosts[1].run("squeue", "-h", user=NOBODY).returncode == 0
    finally:
        for peer in peers:
            peer.process.kill()
        for peer, feeder in zip(peers, feeders, strict=True):
            feeder.join()
            peer.close()


def test_half_a_message_has_a_deadline(hosts):
    with called(hosts) as peer:
        assert peer.ask("Ping")[0] == "Pong"
        peer.send(half(64 << 10, 1000))
        answer = peer.receive()
        assert "the message was begun and not finished in time" in refusal(answer), answer
        assert peer.receive() is None


def test_answers_that_are_not_read_take_little_memory_of_the_agent(hosts):
    """He submits a large script, and asks for it on many connections without reading."""
    before = flooding.memory_of(hosts[1].agent.pid)[0]
    asked = make("Asked", command="sbatch", words=["-H", "job.sh"], script="#!/bin/sh\n" + "#" * (4 * MIB - 20), directory="/", host="h1")
    with called(hosts) as peer:
        job = peer.ask("SubmitJob", asked=asked, token="large")[1].job_id
        assert job
        assert len(peer.ask("GetScript", job_id=job)[1].script) > 4 * MIB - 20
    peers = [called(hosts) for _ in range(40)]
    try:
        for peer in peers:
            peer.send("GetScript", job_id=job)
        with called(hosts) as other:
            assert other.ask("Ping")[0] == "Pong"
        assert hosts[1].run("squeue", "-h", user=NOBODY).returncode == 0
        assert flooding.memory_of(hosts[1].agent.pid)[1] - before < 200
    finally:
        for peer in peers:
            peer.close()
        hosts[0].run("scancel", str(job))
