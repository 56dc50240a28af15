"""Root of one node has its certificate and all it knows. It may lie about its own jobs, and learns and harms nothing else."""

import os
import signal
import struct
import subprocess
import threading
import time

import pytest

import cluster
import flooding
from hosts import Hosts
from messages import NUMBERS, Probe, frame, make, raw_frame, refusal

pytestmark = pytest.mark.live
NOBODY, DAEMON = 65534, 1
ANSWER_SECONDS = 1.0
BATCH = 0xFFFFFFFB
MOST = 2**32 - 1


@pytest.fixture(scope="module")
def hosts():
    """h1 is the stolen node, and its agent is gone; a job of nobody's runs on it, and another one on h2."""
    with Hosts(3) as h:
        h.start()
        h.lure = job_on(h, "h1")
        h.victim = job_on(h, "h2")
        h.hosts[1].agent.send_signal(signal.SIGKILL)
        h.hosts[1].agent.wait()
        cluster.until(lambda: "*" in h[0].run("sinfo", "-h", "-n", "h1", "-o", "%t").stdout, what="the loss of h1")
        yield h


def job_on(hosts, node):
    job = hosts[0].run("sbatch", "--parsable", "--no-requeue", "--mem=100", "-w", node, "-o", "/dev/null",
                       "--wrap", "sleep 600", user=NOBODY).stdout.strip()
    cluster.until(lambda: state(hosts, job) == "RUNNING", what=f"job {job}")
    return int(job)


def state(hosts, job):
    return hosts[0].run("squeue", "-h", "-j", str(job), "-o", "%T", check=False).stdout.strip()


def thief(hosts, node=1):
    """A connection with the certificate of a node, from its machine."""
    return Probe("h0:6817", hosts[0].home / "berth-authority.pem", "identity", hosts.identity_file(node),
                 within=hosts[node].within())


def vouch(peer, uid=NOBODY):
    peer.send("Hello", protocol=1, program="squeue", vouched_uid=uid, vouched_gid=uid)


def booted():
    with open("/proc/stat") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("btime"))


def report(node, **more):
    return make("NodeReport", name=node, sockets=1, cores_per_socket=2, threads_per_core=1, memory_mb=1000,
                boot_time=booted(), host=node, **more)


def registered(peer, *reports, **fields):
    """The verdicts on what it says it is."""
    peer.send("RegisterNodes", nodes=list(reports), address=make("NodeAddress", host="h1", port=6818), **fields)
    while True:
        answer = peer.receive()
        assert answer is not None, peer.why()
        if answer[0] == "Registered":
            return {v.name.decode(): v for v in answer[1].nodes}


def still_there(hosts, peer=None):
    """The controller lives, h2 and its job are as they were."""
    if peer is not None:  # everything that was sent has been looked at
        peer.send("Beat", number=99, ask=True)
        while (answer := peer.receive()) is not None and answer[0] != "Beat":
            pass
    assert hosts.controller.poll() is None, hosts[0].logs()
    assert state(hosts, hosts.victim) == "RUNNING", hosts[0].logs()
    assert hosts.state_of("h2") in ("mixed", "allocated"), hosts[0].logs()
    reason = hosts[0].run("sinfo", "-h", "-n", "h2", "-o", "%E").stdout.strip()
    assert reason == "none", reason


# First, while its job is still there: a registration without it ends it.
@pytest.mark.parametrize("uid", [0, DAEMON, MOST])
def test_it_vouches_only_for_users_of_its_jobs(hosts, uid):
    with thief(hosts) as peer:
        answer = peer.ask("Hello", protocol=1, program="scontrol", vouched_uid=uid, vouched_gid=uid)
        assert ("has no job on h1" if uid else "no node says that a caller is an administrator") in refusal(answer)
        assert peer.receive() is None


def test_who_it_vouches_for_gets_no_token(hosts):
    """A token would outlive his job, and the node's identity."""
    with thief(hosts) as peer:
        vouch(peer)
        for lifespan in (0, 60, 366 * 86400):
            answer = peer.ask("MakeTokens", lifespan=lifespan)
            assert "Access/permission denied" in refusal(answer) and not getattr(answer[1], "tokens", ()), answer
    still_there(hosts)


@pytest.mark.parametrize("gid", [0, DAEMON, MOST])
def test_nobody_gets_a_group_by_its_word(hosts, gid):
    with thief(hosts) as peer:
        peer.send("Hello", protocol=1, program="sbatch", vouched_uid=NOBODY, vouched_gid=gid)
        asked = make("Asked", command="sbatch", words=["-H", "job.sh"], script="#!/bin/sh\nid\n", directory="/", host="h1")
        answer = peer.ask("SubmitJob", asked=asked, token=f"group{gid}")
    shown = hosts[0].run("scontrol", "show", "job", str(answer[1].job_id)).stdout
    assert "UserId=nobody(65534) GroupId=nogroup(65534)" in shown, shown


def test_a_user_it_vouches_for_is_no_administrator_and_gets_no_more_than_he_may(hosts):
    with thief(hosts) as peer:
        peer.send("Hello", protocol=1, program="scontrol", vouched_uid=NOBODY, vouched_gid=0)
        answer = peer.ask("RevokeNodes", nodes="h2")
        assert "Access/permission denied" in refusal(answer)
        assert "Access/permission denied" in refusal(peer.ask("MakeTokens", nodes="h2"))
        # Once a user's, the connection is no node's any more.
        peer.send("RegisterNodes", nodes=[report("h1")])
        assert peer.receive() is None
    still_there(hosts)


def test_it_does_not_vouch_on_the_connection_of_its_agent(hosts):
    """Which has no limits: a user's requests there would have none either."""
    with thief(hosts) as peer:
        registered(peer, report("h1", jobs=[make("HeldJob", job_id=hosts.lure, attempt=1)]))
        assert state(hosts, hosts.lure) in ("RUNNING", "COMPLETING")
        vouch(peer)
        peer.send("Ping")
        assert all(name != "Pong" for name, _ in peer.until_closed())
    still_there(hosts)


def test_it_is_nobody_but_itself(hosts):
    for node in ("h2", "nowhere"):
        with thief(hosts) as peer:
            verdicts = registered(peer, report(node))
            assert f"does not speak for node {node}" in verdicts[node].refusal.lines[0].text.decode()
            assert not verdicts[node].key
            assert peer.receive() is None  # it is no agent, and goes
    still_there(hosts)
    assert hosts[0].run("srun", "-w", "h2", "-n1", "--overlap", "hostname", user=NOBODY,
                        SLURM_JOB_ID=str(hosts.victim)).stdout == "h2\n"


def assert_turned_away(peer):
    answer = peer.receive()
    assert answer is not None and "revoked or replaced" in refusal(answer), answer
    assert peer.receive() is None


def descriptors(hosts):
    return len(os.listdir(f"/proc/{hosts.controller.pid}/fd"))


def test_a_registration_of_nothing_makes_no_agent(hosts):
    before = descriptors(hosts)
    peers = [thief(hosts) for _ in range(20)]
    for peer in peers:
        peer.send("RegisterNodes", address=make("NodeAddress", host="x", port=1))
    for peer in peers:
        assert [name for name, _ in peer.until_closed()] == ["Registered"]
        peer.close()
    cluster.until(lambda: descriptors(hosts) <= before, what="the end of their connections")


def test_a_registration_of_more_than_its_certificate_says_is_refused(hosts):
    with thief(hosts) as peer:
        answer = peer.ask("RegisterNodes", nodes=[report("h1"), report("h1")])
        assert "a registration of 2 nodes by a machine whose certificate speaks for 1" in refusal(answer)
        assert peer.receive() is None
    still_there(hosts)


def test_it_has_one_registered_connection(hosts):
    first, second = thief(hosts), thief(hosts)
    with first, second:
        fields = {"instance": "the same process"}
        assert not registered(first, report("h1"), **fields)["h1"].HasField("refusal")
        assert not registered(second, report("h1"), **fields)["h1"].HasField("refusal")
        first.until_closed()
        still_there(hosts, second)


def begun(hosts, size):
    """A registration that is begun and not finished."""
    peer = thief(hosts)
    head = struct.pack("<IH", size, NUMBERS["RegisterNodes"])
    peer.feeder = threading.Thread(target=peer.send, args=(head + bytes(size - (1 << 20)),))
    peer.feeder.start()
    return peer


def test_half_messages_take_little_memory(hosts):
    """Twelve of 15 MiB each; one that is larger than a machine may send before it is an agent is not begun at all."""
    with begun(hosts, 40 << 20) as peer:
        assert peer.receive() is None
        peer.feeder.join()
    before, most = flooding.memory_of(hosts.controller.pid)[0], 0
    peers = [begun(hosts, 15 << 20) for _ in range(12)]
    try:
        gone = lambda: [p for p in peers if p.process.poll() is not None]  # noqa: E731
        def settled():
            nonlocal most
            most = max(most, flooding.memory_of(hosts.controller.pid)[0])
            return len(gone()) >= 6
        cluster.until(settled, what="the end of some of them")
        assert most - before < 100, (before, most)
        still_there(hosts)
    finally:
        for peer in peers:
            peer.process.kill()
            peer.feeder.join()
            peer.close()


def test_who_asks_for_nothing_goes(hosts):
    with thief(hosts) as peer:
        began = time.monotonic()
        answer = peer.receive()
        assert "nothing was asked in time" in refusal(answer), answer
        assert peer.receive() is None and time.monotonic() - began > 5


def seconds_of(hosts, *words):
    start = time.monotonic()
    done = hosts[0].run(*words)
    return time.monotonic() - start, done.stdout


@pytest.mark.parametrize("what, field", [
    (lambda: make("NodeTrouble", node="h1", reason="x" * (60 << 20)), "reason (NodeTrouble)"),
    (lambda: make("JobGpus", node="h1", job_id=1, gpus=[make("GpuUse", index=i) for i in range(65536)]), "gpus (JobGpus)"),
    (lambda: make("RegisterNodes", nodes=[report("h1", os="x" * (20 << 20))]), "os (NodeReport)"),
    (lambda: raw_frame(NUMBERS["RegisterNodes"], b"\x0a\x00" * 1_500_000), "nodes (RegisterNodes)"),
], ids=["reason", "gpus", "os", "nodes"])
def test_what_is_too_large_is_refused_before_it_is_read(hosts, what, field):
    with thief(hosts) as peer:
        registered(peer, report("h1"))
        feeder = threading.Thread(target=peer.send, args=(what(),))
        feeder.start()
        refusals = [refusal(answer) for answer in peer.until_closed()]
        assert any(field in words for words in refusals), (refusals, hosts[0].logs()[-2000:])
        feeder.join()
    assert seconds_of(hosts, "sinfo")[0] < ANSWER_SECONDS
    still_there(hosts)


def test_what_is_kept_of_what_it_says_is_little(hosts):
    """The largest words that are taken, of everything that is shown."""
    with thief(hosts) as peer:
        gpus_out = [make("GpuOut", index=i, why="w" * 1000) for i in range(1000)]
        peer.send("RegisterNodes", version="v" * 128, address=make("NodeAddress", host="h1", port=6818),
                  nodes=[report("h1", os="o" * 1024, arch="a" * 128, gpus_out=gpus_out)])
        peer.send("NodeTrouble", node="h1", reason="r" * 16384)
        still_there(hosts, peer)
        spent, shown = seconds_of(hosts, "sinfo", "-h", "-n", "h1", "-o", "%E")
        assert spent < ANSWER_SECONDS and "rrr" in shown and len(shown) < 1100, len(shown)
        spent, shown = seconds_of(hosts, "scontrol", "show", "node")
        assert spent < ANSWER_SECONDS and len(shown) < 1 << 20, len(shown)
    assert max(map(len, hosts[0].logs().splitlines())) < 4096
    hosts[0].run("scontrol", "update", "nodename=h1", "state=resume", check=False)


def test_a_flood_of_its_messages_holds_nobody_up(hosts):
    before = flooding.memory_of(hosts.controller.pid)[0]
    with thief(hosts) as peer:
        registered(peer, report("h1"))
        gpus = frame(make("JobGpus", node="h1", job_id=hosts.lure, attempt=1,
                          gpus=[make("GpuUse", index=i, busy_sum=1) for i in range(1000)]))
        beats = frame(make("Beat", number=1, ask=False))
        stop = threading.Event()

        def flood():
            while not stop.is_set():
                peer.send(gpus * 100 + beats * 20000)

        feeder = threading.Thread(target=flood)
        feeder.start()
        try:
            for _ in range(5):
                assert seconds_of(hosts, "sinfo")[0] < ANSWER_SECONDS
                assert seconds_of(hosts, "sbatch", "-H", "-o", "/dev/null", "--wrap", "true")[0] < ANSWER_SECONDS
        finally:
            stop.set()
            feeder.join()
        assert flooding.memory_of(hosts.controller.pid)[0] - before < 100
    hosts[0].run("scancel", "-u", "root", check=False)
    still_there(hosts)


def lies(hosts):
    """What it says of the job on h2, as h2 and as itself."""
    for node in ("h2", "h1"):
        about = {"node": node, "job_id": hosts.victim}
        for attempt in (0, 1, 2):
            yield make("JobGone", attempt=attempt, **about)
            yield make("JobGone", attempt=attempt, trouble="Kill task failed", pids=[1], **about)
            yield make("JobBegun", attempt=attempt, prolog_failed=True,
                       refusal=make("Refusal", code="io", exit_code=1), **about)
            yield make("StepEnded", attempt=attempt, step_id=BATCH, ranks=[0], statuses=[256], **about)
            yield make("StepEnded", attempt=attempt, step_id=BATCH, system_failure=True, stuck_pids=[1], **about)
            yield make("StepEnded", attempt=attempt, step_id=0, ranks=[MOST], statuses=[0], **about)
            yield make("JobGpus", attempt=attempt, gpus=[make("GpuUse", node="h2", index=MOST, busy_sum=1)], **about)
            yield make("JobGpuIdle", attempt=attempt, idle_ms=10**15, **about)
        yield make("MeasuredOnNode", number=1, node=node)
    yield make("NodeTrouble", node="h2", reason="on fire")
    yield make("GpuHealth", node="h2", out=[make("GpuOut", index=MOST, why="gone")])


def forged_spec(hosts, node, **more):
    fields = dict(job_id=hosts.victim, attempt=1, step_id=7, node=node, uid=NOBODY, gid=NOBODY, ntasks=MOST,
                  nonce="n", tasks=[make("TaskSpec", rank=MOST)], name="forged", epoch=1)
    return make("StepSpec", **{**fields, **more}).SerializeToString()


def test_it_says_nothing_about_the_jobs_of_others(hosts):
    with thief(hosts) as peer:
        registered(peer, report("h1"))
        for lie in lies(hosts):
            peer.send(lie)
        for node in ("h1", "h2"):
            peer.send("StepStarted", node=node, spec=forged_spec(hosts, node))
            peer.send("StepStarted", node=node, spec=forged_spec(hosts, node, job_id=hosts.lure))
            peer.send("StepStarted", node=node, spec=forged_spec(hosts, node, step_id=BATCH))
        still_there(hosts, peer)
    shown = hosts[0].run("squeue", "-h", "-s", "-o", "%i %j", check=False).stdout
    assert "forged" not in shown, shown


def test_steps_that_no_controller_made_are_not_believed_at_registration(hosts):
    forged = make("RunningStep", spec=forged_spec(hosts, "h1", job_id=hosts.lure))
    with thief(hosts) as peer:
        registered(peer, report("h1", steps=[forged] * 1000,
                                jobs=[make("HeldJob", job_id=hosts.victim, attempt=1, ending=True),
                                      make("HeldJob", job_id=MOST, attempt=MOST)]))
        still_there(hosts, peer)
    assert "forged" not in hosts[0].run("squeue", "-h", "-s", "-o", "%j", check=False).stdout


@pytest.mark.parametrize("number", [0, 1, 2**31, MOST])
def test_numbers_without_measure_crash_nobody(hosts, number):
    with thief(hosts) as peer:
        peer.send("RegisterNodes", epoch=0, address=make("NodeAddress", unix_path="/run/x" * 1000, host="h" * 3000, port=number),
                  nodes=[make("NodeReport", name="h1", sockets=number, cores_per_socket=number, threads_per_core=number,
                              memory_mb=number * 2**31, tmp_disk_mb=number * 2**31, boot_time=number,
                              gres=[make("GresFound", name="gpu", type="x" * 1000, count=number * 2**31)] * 100,
                              gpus=[make("GpuFound", file="/dev/null", sockets=[number], links=[-1])] * 100,
                              gpus_out=[make("GpuOut", index=number, why="w" * 10000)] * 100,
                              jobs=[make("HeldJob", job_id=number, attempt=number)])])
        while (answer := peer.receive()) is not None and answer[0] != "Registered":
            pass
        peer.send("Beat", number=number, load=1e308, free_memory_mb=number, ask=True)
        while (answer := peer.receive()) is not None and answer[0] != "Beat":
            pass
    still_there(hosts)


def test_it_asks_for_nothing_that_users_ask_for(hosts):
    """Its certificate is no user's: nothing is shown, changed or given."""
    asked = ["SubmitJob", "CancelJobs", "GetScript", "GetAccess", "Change", "MakeTokens", "RevokeNodes", "Reconfigure",
             "Shutdown", "ListJobs", "ShowConfig", "CreateStep", "ActOnJobs"]
    for name in asked:
        with thief(hosts) as peer:
            answer = peer.ask(name)
            assert answer is None or (answer[0] == "Done" and "Access/permission denied" in refusal(answer)), (name, answer)
        with thief(hosts) as peer:
            registered(peer, report("h1"))
            answer = peer.ask(name)
            assert answer is None or (answer[0] == "Done" and "Access/permission denied" in refusal(answer)), (name, answer)
    still_there(hosts)


def test_a_new_certificate_is_for_the_same_node(hosts, tmp_path):
    subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                    f"{tmp_path}/key", "-out", f"{tmp_path}/wish", "-subj", "/CN=h2", "-addext",
                    "subjectAltName=DNS:h2,DNS:h0"], check=True, capture_output=True)
    before = hosts.identity_file(1).read_text()
    with thief(hosts) as peer:
        answer = peer.ask("RenewIdentity", wish=open(f"{tmp_path}/wish", "rb").read())
        certificate = answer[1].certificate.decode()
    (tmp_path / "new.pem").write_text(open(f"{tmp_path}/key").read() + certificate)
    with Probe("h0:6817", hosts[0].home / "berth-authority.pem", "identity", tmp_path / "new.pem",
               within=hosts[1].within()) as peer:
        assert registered(peer, report("h2"))["h2"].HasField("refusal")
    with Probe("h0:6817", hosts[0].home / "berth-authority.pem", "identity", tmp_path / "new.pem",
               within=hosts[1].within()) as peer:
        assert not registered(peer, report("h1"))["h1"].HasField("refusal")
    # The old certificate went with the first use of the new one.
    with thief(hosts) as peer:
        assert_turned_away(peer)
    authority = (hosts[0].home / "berth-authority.pem").read_text()
    hosts.identity_file(1).write_text((tmp_path / "new.pem").read_text() + authority)
    assert before != hosts.identity_file(1).read_text()
    still_there(hosts)


def test_its_key_signs_nothing_for_another_node(hosts):
    """With the key of h1: tickets for h2 on its unix socket, and a session with it over TCP."""
    import hashlib
    import hmac
    with thief(hosts) as peer:
        key = registered(peer, report("h1"))["h1"].key
    assert len(key) == 32
    canary = hosts.directory / "canary"
    tasks = [make("TaskSpec", rank=0)]
    spec = forged_spec(hosts, "h2", step_id=0, ntasks=1, tasks=tasks, expires=2**40)
    ticket = make("Ticket", node="h2", spec=spec, mac=hmac.new(key, spec, hashlib.sha256).digest())
    program = make("Program", argv=["touch", str(canary)])
    launch = make("Launch", ticket=ticket, program=program)
    with Probe(hosts.node_socket(2), user=NOBODY, within=hosts[2].within()) as peer:
        assert "Invalid job credential" in refusal(peer.ask(launch))
    name = make("SessionName", node="h2", uid=0, gid=0, expires=2**40, nonce="n").SerializeToString()
    for session_key in (key, hmac.new(key, name, hashlib.sha256).digest()):
        with Probe("h2:6818", "/dev/null", "handover", name.hex(), session_key.hex(), within=hosts[1].within()) as peer:
            peer.send(launch)
            assert peer.receive() is None
            assert "TLS session failed" in peer.why()
    assert not canary.exists()
    still_there(hosts)


def test_it_cannot_pose_as_the_controller(hosts):
    """A server with its certificate: agents and commands do not speak to it."""
    identity = hosts.identity_file(1)
    script = (
        "import socket, ssl, sys\n"
        "context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n"
        f"context.load_cert_chain({str(identity)!r})\n"
        "listener = socket.create_server(('', 7817)); print('ready', flush=True)\n"
        "for _ in range(2):\n"
        "    peer, _ = listener.accept()\n"
        "    try:\n"
        "        session = context.wrap_socket(peer, server_side=True)\n"
        "        print('GOT', session.recv(65536), flush=True)\n"
        "    except OSError as error: print('REFUSED', error, flush=True)\n")
    server = subprocess.Popen(hosts[1].within() + ["/usr/bin/python3", "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == "ready\n"
        conf = hosts.directory / "posing" / "slurm.conf"
        conf.parent.mkdir(exist_ok=True)
        conf.write_text(hosts[2].conf.read_text().replace("SlurmctldHost=h0", "SlurmctldHost=h1").replace("6817", "7817"))
        (conf.parent / "berth-authority.pem").write_text((hosts[0].home / "berth-authority.pem").read_text())
        token = hosts[0].run("scontrol", "token").stdout.strip().removeprefix("SLURM_JWT=")
        done = hosts[2].run("squeue", check=False, SLURM_CONF=str(conf), SLURM_JWT=token)
        assert done.returncode != 0 and "is not the controller of" in done.stderr, done.stderr
        assert server.stdout.readline().startswith("REFUSED")
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def test_a_revoked_node_is_out_until_it_joins_again(hosts):
    lure = job_on(hosts, "h2")
    with thief(hosts) as peer, thief(hosts) as second, thief(hosts, 2) as other:
        assert registered(peer, report("h1"))["h1"].key
        registered(second)
        vouch(other)
        assert other.ask("Ping")[0] == "Pong"
        hosts[0].run("scontrol", "revoke", "node=h1")
        for one in (peer, second):
            assert one.until_closed() is not None
        assert other.ask("Ping")[0] == "Pong"  # of another node
    hosts[0].run("scancel", str(lure))
    # Before it has said anything; so it can neither register nor renew, nor vouch for anybody.
    with thief(hosts) as peer:
        assert_turned_away(peer)
    still_there(hosts)
    hosts.join(1)
    hosts.start_agent(1)
    cluster.until(lambda: "*" not in hosts[0].run("sinfo", "-h", "-n", "h1", "-o", "%t").stdout, what="the return of h1")
    hosts[0].run("scontrol", "update", "nodename=h1", "state=resume")  # the thief has said that it is in trouble
    assert hosts[0].run("srun", "-w", "h1", "hostname").stdout == "h1\n"
    still_there(hosts)


def test_who_it_vouches_for_is_out_when_his_last_job_there_is():
    """Also who asks for nothing any more, or only for lists."""
    with Hosts(2, munge=()) as hosts:
        hosts.start()
        jobs = [job_on(hosts, "h1") for _ in range(2)]
        with thief(hosts) as peer:
            vouch(peer)
            for job in jobs:
                assert peer.ask("Ping")[0] == "Pong"
                hosts[0].run("scancel", str(job))
                cluster.until(lambda one=job: not state(hosts, one), what="the end of a job")
            peer.until_closed()


@pytest.mark.parametrize("how", ["revoke", "join"])
def test_all_that_was_opened_with_an_identity_ends_with_it(how):
    """The connections of users that it vouched for, and those of its certificate that serve no node."""
    with Hosts(2, munge=()) as hosts:
        hosts.start()
        job_on(hosts, "h1")
        with thief(hosts) as vouched, thief(hosts) as idle:
            vouch(vouched)
            assert vouched.ask("Ping")[0] == "Pong"
            registered(idle)
            if how == "revoke":
                hosts[0].run("scontrol", "revoke", "node=h1")
            else:
                hosts.join(1)
            vouched.until_closed()
            idle.until_closed()


def test_a_user_who_may_do_all_is_not_vouched_for():
    """SlurmUser has a job on the stolen node: the node does not make an administrator of itself."""
    with Hosts(2, munge=()) as hosts:
        for host in hosts.hosts:
            host.conf.write_text(host.conf.read_text().replace("SlurmUser=root", "SlurmUser=daemon"))
        hosts.start()
        job = hosts[0].run("sbatch", "--parsable", "-w", "h1", "-o", "/dev/null", "--wrap", "sleep 600", user=DAEMON).stdout.strip()
        cluster.until(lambda: state(hosts, job) == "RUNNING", what="his job")
        with thief(hosts) as peer:
            vouch(peer, DAEMON)
            answer = peer.ask("MakeTokens")
            assert "no node says that a caller is an administrator" in refusal(answer), answer
        for words in (["token", "node=h1"], ["update", "nodename=h1", "state=drain", "reason=x"]):
            done = hosts[1].run("scontrol", *words, user=DAEMON, check=False)
            assert done.returncode != 0 and "administrator" in done.stderr, done.stderr


def test_munge_on_a_node_makes_its_root_nobody():
    """Whoever has munge's key makes credentials of any uid. From a node they are not believed, and nowhere for administrators."""
    admin = [["scontrol", "token", "node=h2"], ["scontrol", "token", "username=daemon"],
             ["scontrol", "update", "nodename=h2", "state=drain", "reason=stolen"], ["scontrol", "revoke", "node=h2"]]
    with Hosts(3, munge=(0, 1)) as hosts:
        hosts.start()

        def nobody(*words, user):
            done = hosts[1].run(*words, user=user, check=False)
            assert done.returncode != 0 and "munge is not believed from 10.113.7.11, the machine of node h1" in done.stderr, done.stderr
            assert "munge_from_nodes" in done.stderr

        for words in admin:
            nobody(*words, user=0)
        for user in (NOBODY, DAEMON):
            nobody("sbatch", "-H", "--wrap", "id", user=user)
            nobody("squeue", user=user)
        # A job of his makes his commands work there, by the agent.
        inside = hosts[0].run("srun", "-w", "h1", "env", f"SLURM_CONF={hosts[1].conf}", "squeue", "-h", "-o", "%u %T", user=NOBODY)
        assert inside.stdout.strip() == "nobody RUNNING"
        # Without its agent it is still the machine of h1, also for a controller that was started anew.
        hosts[1].agent.kill()
        hosts[1].agent.wait()
        nobody("squeue", user=NOBODY)
        hosts.controller.kill()
        hosts.controller.wait()
        hosts.start_controller()
        nobody("squeue", user=NOBODY)
        nobody(*admin[0], user=0)
        # A machine that is no node: users, and no administrators.
        authority = hosts[0].home / "berth-authority.pem"
        with Probe("h0:6817", authority, "munge", user=DAEMON, within=hosts[0].within()) as peer:
            assert peer.ask("Ping")[0] == "Pong"
            assert "Access/permission denied" in refusal(peer.ask("RevokeNodes", nodes="h2"))
        with Probe("h0:6817", authority, "munge", within=hosts[0].within()) as peer:
            answer = peer.ask("RevokeNodes", nodes="h2")
            assert "munge does not prove an administrator" in refusal(answer) and "munge_admins" in refusal(answer), answer
        cluster.until(lambda: hosts.state_of("h2") == "idle", what="h2")

        # What a site may say in words; a reconfiguration is enough.
        text = hosts[0].conf.read_text()
        hosts[0].conf.write_text(text + "SlurmctldParameters=munge_from_nodes\n")
        hosts[0].run("scontrol", "reconfigure")
        hosts[1].run("squeue", user=NOBODY)
        done = hosts[1].run(*admin[0], check=False)
        assert done.returncode != 0 and "munge does not prove an administrator" in done.stderr
        hosts[0].conf.write_text(text + "SlurmctldParameters=munge_from_nodes,munge_admins\n")
        hosts[0].run("scontrol", "reconfigure")
        assert hosts[1].run(*admin[0]).stdout.startswith("berth-join-")
