"""A node that cannot be reached: how soon it is noticed, and that none of its jobs ever runs twice at once.

The job says ten times a second where it is, in a file that all hosts share.
"""

import re
import signal
import time

import pytest

import cluster
from hosts import Hosts
from schedules import kill

pytestmark = pytest.mark.live

SILENCE = 10  # SlurmdTimeout, and with --requeue the lease
TWO_BEATS = 6
KEYS = f"SlurmdTimeout={SILENCE}\nKillWait=2\nReturnToService=2\nMinJobAge=3600\nSchedulerParameters=bf_interval=1"
JOB = """#!/bin/bash
#SBATCH -o /dev/null -t 30
until [ -e {said}.stop ]; do
  echo "${{SLURM_RESTART_COUNT:-0}} $SLURMD_NODENAME $(date +%s.%N)" >> {said}
  sleep 0.1
done
echo "${{SLURM_RESTART_COUNT:-0}} done $(date +%s.%N)" >> {said}
"""


@pytest.fixture(scope="module")
def hosts():
    with Hosts(3, keys=KEYS) as hosts:
        hosts.start()
        yield hosts


class Job:
    def __init__(self, hosts, name, *options):
        self.hosts = hosts
        self.said = hosts.directory / f"said.{name}"
        self.said.touch()
        script = hosts.directory / f"{name}.sh"
        script.write_text(JOB.format(said=self.said))
        done = hosts[0].run("sbatch", *options, script)
        self.id = int(re.search(r"\d+", done.stdout)[0])
        cluster.until(self.lines, what="the job's first line")
        self.index = int(self.lines()[-1][1][1:])  # of the host it runs on

    def lines(self):
        whole = self.said.read_text().rpartition("\n")[0]
        return [(int(restart), node, float(when)) for restart, node, when in map(str.split, whole.splitlines())]

    def attempts(self):
        return {restart for restart, _, _ in self.lines()}

    def shown(self, key):
        text = self.hosts[0].run("scontrol", "-o", "show", "job", self.id).stdout
        return re.search(rf"\b{key}=(\S+)", text)[1]

    def start_soon(self):
        """Not after the two minutes that a job waits whose node failed."""
        self.hosts[0].run("scontrol", "update", f"jobid={self.id}", "starttime=now")

    def grows(self):
        size = self.said.stat().st_size
        time.sleep(0.5)
        return self.said.stat().st_size > size

    def end(self, idle=2):
        """It completes, and so many nodes are idle then."""
        (self.said.parent / f"{self.said.name}.stop").touch()
        cluster.until(lambda: self.shown("JobState") == "COMPLETED", what=f"the end of job {self.id}")
        self.check()
        assert [node for _, node, _ in self.lines()].count("done") == 1
        self.hosts.wait_idle(idle)

    def check(self):
        """No attempt says anything once a later one has begun."""
        seen = sorted(self.lines(), key=lambda line: line[2])
        restarts = [restart for restart, _, _ in seen]
        assert restarts == sorted(restarts), seen


def flag(hosts, index):
    return hosts.state_of(f"h{index}")


def cut_and_watch(hosts, job):
    """The cable is pulled; returns when the node is DOWN."""
    cut = time.monotonic()
    hosts.cut(job.index)
    cluster.until(lambda: flag(hosts, job.index).endswith("*"), what="NOT_RESPONDING")
    assert time.monotonic() - cut < TWO_BEATS + 2
    assert not flag(hosts, job.index).startswith("down")
    cluster.until(lambda: flag(hosts, job.index).startswith("down"), what="DOWN")
    assert time.monotonic() - cut < SILENCE + 2


def test_a_job_that_may_be_requeued_begins_elsewhere_when_it_has_ended(hosts):
    job = Job(hosts, "requeue", "--requeue")
    try:
        cut_and_watch(hosts, job)
        job.start_soon()
        cluster.until(lambda: 1 in job.attempts(), what="the second attempt, elsewhere")
        assert job.lines()[-1][1] != f"h{job.index}"
        job.check()
    finally:
        hosts.mend(job.index)
    job.end()
    assert job.attempts() == {0, 1}


def test_the_same_without_an_agent(hosts):
    job = Job(hosts, "no-agent", "--requeue")
    kill(hosts[job.index].agent)
    hosts.cut(job.index)
    try:
        cluster.until(lambda: flag(hosts, job.index).startswith("down"), what="DOWN")
        job.start_soon()
        cluster.until(lambda: 1 in job.attempts(), what="the second attempt, elsewhere")
        assert job.lines()[-1][1] != f"h{job.index}"
        job.check()
    finally:
        hosts.mend(job.index)
        hosts.start_agent(job.index)
    job.end()
    assert job.attempts() == {0, 1}


def test_the_same_with_an_agent_that_is_stopped(hosts):
    """It cannot end the job, and when it goes on it must not begin anything that is old."""
    job = Job(hosts, "stopped", "--requeue")
    hosts[job.index].agent.send_signal(signal.SIGSTOP)
    try:
        cluster.until(lambda: flag(hosts, job.index).startswith("down"), what="DOWN")
        job.start_soon()
        cluster.until(lambda: 1 in job.attempts(), what="the second attempt, elsewhere")
        job.check()
    finally:
        hosts[job.index].agent.send_signal(signal.SIGCONT)
    job.end()
    assert job.attempts() == {0, 1}


def test_a_job_that_did_not_ask_for_it_runs_on_and_nowhere_else(hosts):
    job = Job(hosts, "by-default")
    try:
        cut_and_watch(hosts, job)
        job.start_soon()
        assert job.shown("JobState") == "PENDING"
        assert job.shown("Reason") == "BeginTime"
        cluster.until(job.grows, what="more lines of the job")
        assert job.attempts() == {0}
    finally:
        hosts.mend(job.index)
    # Its node is back and says when it has ended: that is sooner than the hour.
    cluster.until(lambda: 1 in job.attempts(), what="the second attempt")
    job.end()


def test_a_job_that_is_never_requeued_runs_on(hosts):
    job = Job(hosts, "no-requeue", "--no-requeue")
    try:
        cut_and_watch(hosts, job)
        assert job.shown("JobState") == "NODE_FAIL"
        assert job.grows()
    finally:
        hosts.mend(job.index)
    hosts.wait_idle(2)
    assert not job.grows()
    assert job.attempts() == {0}


def test_an_administrator_takes_a_node_out(hosts):
    job = Job(hosts, "taken-out", "--requeue")
    node = f"nodename=h{job.index}"
    hosts[0].run("scontrol", "update", node, "state=down", "reason=fan")
    cluster.until(lambda: job.shown("JobState") == "PENDING", what="the requeue")
    assert not job.grows()  # its end was awaited
    job.start_soon()
    cluster.until(lambda: 1 in job.attempts(), what="the second attempt, elsewhere")
    hosts[0].run("scontrol", "update", node, "state=resume")
    job.end()


def test_a_controller_that_is_stopped_in_order_ends_nothing(hosts):
    job = Job(hosts, "upgrade", "--requeue")
    hosts.controller.send_signal(signal.SIGTERM)
    hosts.controller.wait()
    gone = time.monotonic()
    cluster.until(lambda: time.monotonic() - gone > SILENCE + 3, what="the end of the lease")
    assert job.grows()
    hosts.start_controller()
    cluster.until(lambda: not flag(hosts, job.index).endswith("*"), what="the node")
    assert job.shown("JobState") == "RUNNING"
    job.end()
    assert job.attempts() == {0}


def test_a_controller_that_is_lost_for_longer_than_the_lease(hosts):
    job = Job(hosts, "lost", "--requeue")
    other = Job(hosts, "lost-default")
    kill(hosts.controller)
    cluster.until(lambda: not job.grows(), what="the end of the lease")
    assert other.grows()
    hosts.start_controller()
    cluster.until(lambda: job.shown("JobState") == "PENDING", what="the requeue")
    job.start_soon()
    cluster.until(lambda: 1 in job.attempts(), what="the second attempt")
    job.end(idle=1)
    other.end()
    assert other.attempts() == {0}
