"""What users do on several machines: batch jobs, steps over all of them, input and output, files, and a network that is bad."""

import hashlib
import os
import pathlib
import signal
import subprocess
import time

import pytest

import cluster
import messages
from hosts import Hosts

pytestmark = pytest.mark.live
NOBODY = 65534
NODES = ["h1", "h2", "h3"]
SILENCE = 15  # SlurmdTimeout


@pytest.fixture(scope="module")
def hosts():
    # A relay for each machine after the first: h1 passes on to h2, h2 to h3.
    with Hosts(4, munge=(0, 2), keys=f"SlurmctldParameters=munge_from_nodes\nTreeWidth=1\nKillWait=2\nSlurmdTimeout={SILENCE}") as h:
        os.chmod(h.directory, 0o777)
        h.start()
        yield h


def state(hosts, job):
    shown = hosts[0].run("scontrol", "-o", "show", "job", job).stdout
    return shown.split("JobState=")[1].split()[0]


def test_a_job_is_submitted_on_a_login_machine_and_runs_on_all(hosts):
    """The script's srun reaches every machine, and the output comes together on the first."""
    out = hosts.directory / "out"
    script = hosts.directory / "job.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH -N3 -n6 -o {out}\nsrun -l sh -c 'echo $(hostname) $SLURM_PROCID'\n")
    job = hosts[2].run("sbatch", "--parsable", script, user=NOBODY).stdout.strip()
    cluster.until(lambda: state(hosts, job) == "COMPLETED", what=f"job {job}{hosts[1].logs()}")
    assert sorted(out.read_text().split("\n")[:-1]) == [f"{r}: h{r // 2 + 1} {r}" for r in range(6)]


def test_streams_and_exit_codes_come_through_relays(hosts):
    words = "x" * 1000
    text = "".join(f"{n} {words}\n" for n in range(500))
    done = hosts[0].run("srun", "-N3", "cat", stdin=text, user=NOBODY)
    assert done.stdout.count("\n") == 3 * 500 and done.stdout.count(words) == 3 * 500
    done = hosts[0].run("srun", "-N3", "-l", "sh", "-c", "exit $SLURM_PROCID", user=NOBODY, check=False)
    assert done.returncode == 2
    assert "h3: task 2: Exited with exit code 2" in done.stderr


def test_a_step_over_all_ends_with_its_srun(hosts):
    process = subprocess.Popen(hosts[0].within() + ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--",
                                                    "srun", "-N3", "sleep", "4711"], env=hosts[0].environment(),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    def sleeping():
        return subprocess.run(["pgrep", "-fx", "sleep 4711"], capture_output=True, text=True).stdout.split()
    cluster.until(lambda: len(sleeping()) == 3, what="three tasks")
    process.kill()
    process.communicate()
    cluster.until(lambda: not sleeping(), what="the end of the tasks")
    hosts.wait_idle(3)


def test_a_relay_ends_with_its_job(hosts):
    """It passes a step on to a machine that never answers; the user keeps its connection, and one more ticket."""
    host = hosts[1]
    deaf = subprocess.Popen(host.within() + ["/usr/bin/python3", "-c", "import socket, time\ns = socket.create_server(('127.0.0.1', 9999))\n"
                                             "print(1, flush=True)\ntime.sleep(600)"], stdout=subprocess.PIPE)
    controller = messages.Probe(hosts.controller_socket(), user=NOBODY, within=hosts[0].within())
    probes = []
    try:
        deaf.stdout.readline()
        job = hosts[0].run("sbatch", "--parsable", "-w", "h1", "-o", "/dev/null", "--wrap", "sleep 300", user=NOBODY).stdout.strip()
        cluster.until(lambda: state(hosts, job) == "RUNNING", what="the job")

        def ticket():
            step = messages.make("Asked", command="srun", words=["--overlap", "-n1", "true"], directory="/tmp", host="h0")
            return controller.ask("CreateStep", job_id=int(job), asked=step)[1].tickets[0]

        def relay(given):
            own = messages.make("Ticket", node=given.node, spec=given.spec, mac=given.mac, session=b"x", session_key=b"k" * 32)
            to = messages.make("NodeAddress", host="127.0.0.1", port=9999)
            probe = messages.Probe(hosts.node_socket(1), user=NOBODY, within=host.within())
            probes.append(probe)
            probe.send("Relay", width=2, programs=[messages.make("Program", argv=["true"])],
                       nodes=[messages.make("RelayNode", ticket=own, address=to)])
            return probe

        def relays():
            return [pid for pid in host.processes() if os.stat(f"/proc/{pid}").st_uid == NOBODY
                    and pathlib.Path(f"/proc/{pid}/comm").read_text() == "berth-stepd\n"]
        later = ticket()
        relay(ticket())
        cluster.until(lambda: len(relays()) == 1, what="a relay")
        hosts[0].run("scancel", job, user=NOBODY)
        cluster.until(lambda: not relays(), seconds=60, what="the relay's end")
        # A ticket that was kept for later makes none.
        got = relay(later).receive(seconds=60)
        assert got is None or got[1].HasField("refusal"), got
        cluster.until(lambda: not relays(), what="the end of the other one")
        hosts.wait_idle(3)
    finally:
        for probe in [controller, *probes]:
            probe.close()
        deaf.kill()
        deaf.wait()


def test_a_file_reaches_all(hosts):
    file = hosts.directory / "file"
    data = os.urandom(3_000_000)
    file.write_bytes(data)
    to = f"/tmp/berth-hosts-{os.getpid()}"
    line = f"sbcast -f {file} {to} && srun -N3 sha256sum {to}"
    done = hosts[0].run("salloc", "-N3", "sh", "-c", line, user=NOBODY)
    assert done.stdout.count(hashlib.sha256(data).hexdigest()) == 3
    hosts[0].run("rm", "-f", to)


def test_a_file_on_its_way_ends_with_its_job_on_all(hosts):
    """The client has stopped sending; what it sent is nowhere when the job is gone, and it hears why."""
    large = hosts.directory / "large"
    with open(large, "wb") as file:
        file.truncate(16 << 30)
    folder = hosts.directory / "to"
    folder.mkdir()
    os.chmod(folder, 0o777)
    job = hosts[0].run("sbatch", "--parsable", "-N3", "-o", "/dev/null", "--wrap", "sleep 300", user=NOBODY).stdout.strip()
    cluster.until(lambda: state(hosts, job) == "RUNNING", what="the job")
    client = subprocess.Popen(hosts[0].within() + ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--", "sbcast",
                                                   "--jobid", job, str(large), f"{folder}/file"], env=hosts[0].environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        def writing():
            assert client.poll() is None, client.communicate()
            return len([files for files in cluster.receivers_of(job).values() if files]) == 3
        cluster.until(writing, what="three receivers")
        client.send_signal(signal.SIGSTOP)
        hosts[0].run("scancel", job, user=NOBODY)
        hosts.wait_idle(3)
        assert not cluster.receivers_of(job) and not list(folder.iterdir())
        client.send_signal(signal.SIGCONT)
        said, _ = client.communicate(timeout=cluster.SECONDS)
        assert client.returncode == 1
        for node in NODES:
            assert f"REQUEST_FILE_BCAST({node}): Job/step already completing or completed" in said, said
    finally:
        client.kill()
        large.unlink()


def test_a_network_that_loses_much_costs_time_and_nothing_else(hosts):
    """Three packets of ten, on one machine both ways: jobs and steps come through, and no node goes down."""
    started = hosts[0].run("sinfo", "-h", "-o", "%D %t").stdout
    hosts.bad_network(2, lost_in=30, lost_out=30)
    try:
        for _ in range(3):
            done = hosts[0].run("srun", "-N3", "-t5", "hostname", user=NOBODY)
            assert sorted(done.stdout.split()) == NODES
        assert "down" not in hosts[0].run("sinfo", "-h", "-N", "-o", "%t").stdout
    finally:
        hosts.bad_network(2)
    cluster.until(lambda: hosts[0].run("sinfo", "-h", "-o", "%D %t").stdout == started, what="three idle nodes")


@pytest.mark.parametrize("way", ["deaf", "mute"])
def test_a_cable_that_works_one_way_is_noticed(hosts, way):
    """Two missing beats, and no new job goes there; what runs there goes on."""
    out = hosts.directory / f"out.{way}"
    job = hosts[0].run("sbatch", "--parsable", "-w", "h3", "-o", out, "--wrap", f"sleep {SILENCE}; echo whole").stdout.strip()
    cluster.until(lambda: state(hosts, job) == "RUNNING", what="the job")
    began = time.monotonic()
    hosts.bad_network(3, lost_in=100 if way == "deaf" else 0, lost_out=100 if way == "mute" else 0)
    try:
        cluster.until(lambda: hosts.state_of("h3").endswith("*"), what="that h3 does not respond")
        assert time.monotonic() - began < SILENCE * cluster.PATIENCE
    finally:
        hosts.bad_network(3)
    cluster.until(lambda: not hosts.state_of("h3").endswith("*"), what="the return of h3")
    cluster.until(lambda: state(hosts, job) == "COMPLETED", what="the end of the job")
    assert out.read_text() == "whole\n"
