"""Wall clocks that are set while jobs run, wait and are launched: the controller's, and those of nodes.

Only the daemons see it: a library that is loaded before them adds to the time of day what a file says at that moment.
"""

import datetime
import re
import signal
import subprocess

import pytest

import cluster
from hosts import Hosts

pytestmark = pytest.mark.live

HOUR = 3600
SILENCE = 10  # SlurmdTimeout
KEYS = f"SlurmdTimeout={SILENCE}\nKillWait=2\nReturnToService=0\nMinJobAge=3600\nSchedulerParameters=bf_interval=1"
AHEAD = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long ahead(void) {
  long seconds = 0;
  const char* path = getenv("CLOCK_AHEAD");
  FILE* file = path ? fopen(path, "r") : 0;
  if (file) { if (fscanf(file, "%ld", &seconds) != 1) seconds = 0; fclose(file); }
  return seconds;
}
int clock_gettime(clockid_t clock, struct timespec* out) {
  int failed = syscall(SYS_clock_gettime, clock, out);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) out->tv_sec += ahead();
  return failed;
}
time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
int gettimeofday(struct timeval* out, void* zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}
"""


@pytest.fixture(scope="module")
def hosts():
    with Hosts(3, keys=KEYS) as hosts:
        source, library = hosts.directory / "ahead.c", hosts.directory / "ahead.so"
        source.write_text(AHEAD)
        subprocess.run(["gcc-12", "-shared", "-fPIC", "-o", library, source], check=True)
        for host in hosts.hosts:
            host.variables = {"LD_PRELOAD": str(library), "CLOCK_AHEAD": str(host.home / "ahead")}
        hosts.start()
        yield hosts


def set_clock(hosts, index, seconds):
    """At once, whoever reads it meanwhile."""
    file = hosts[index].home / "ahead"
    fresh = file.with_suffix(".new")
    fresh.write_text(f"{seconds}\n")
    fresh.rename(file)


def figure(hosts, name):
    return int(re.search(rf"{re.escape(name)}: (-?\+?\d+)", hosts[0].run("sdiag").stdout)[1])


def submit(hosts, *words):
    done = hosts[0].run("sbatch", "-o", "/dev/null", "--mem=10", *words, "--wrap", "exec sleep 3000")
    return int(re.search(r"\d+", done.stdout)[0])


def field(hosts, job, key):
    return re.search(rf"\b{key}=(\S+)", hosts[0].run("scontrol", "-o", "show", "job", job).stdout)[1]


def moment(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").timestamp()


def seconds_of(text):
    """Of [days-][hours:]minutes:seconds."""
    days, _, rest = text.rpartition("-")
    total = int(days or 0) * 24
    parts = [int(part) for part in rest.split(":")]
    hours, minutes, seconds = [0] * (3 - len(parts)) + parts
    return (total + hours) * 3600 + minutes * 60 + seconds


def has_run(hosts, job):
    return seconds_of(field(hosts, job, "RunTime"))


def left(hosts, job):
    return seconds_of(hosts[0].run("squeue", "-h", "-j", job, "-o", "%L").stdout.strip())


def states(hosts):
    return {hosts.state_of(f"h{index}") for index in hosts.node_indices}


def in_half_an_hour():
    return (datetime.datetime.now() + datetime.timedelta(minutes=30)).strftime("%Y-%m-%dT%H:%M:%S")


@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_a_controller_whose_clock_is_set_ends_and_starts_nothing(hosts, by):
    nodes = len(hosts.node_indices)
    runs = [submit(hosts, "-w", f"h{index}", "-t", "20", *more)
            for index, more in zip(hosts.node_indices, ((), ("--requeue",)))]
    for job in runs:
        cluster.until(lambda job=job: field(hosts, job, "JobState") == "RUNNING", what=f"the start of job {job}")
    delayed = submit(hosts, "--begin=now+2hours")
    at = submit(hosts, f"--begin={in_half_an_hour()}")
    starts = [moment(field(hosts, job, "StartTime")) for job in runs]
    begins = moment(field(hosts, delayed, "EligibleTime"))

    def all_as_before():
        assert [field(hosts, job, "JobState") for job in [*runs, delayed, at]] == ["RUNNING"] * nodes + ["PENDING"] * 2
        assert [field(hosts, job, "Restarts") for job in runs] == ["0"] * nodes
        assert states(hosts) == {"mixed"}
        assert hosts[0].run("srun", "-t", "1", "--mem=10", "-w", "h1", "hostname").stdout == "h1\n"  # its ticket is good

    try:
        set_clock(hosts, 0, by)
        cluster.until(lambda: figure(hosts, "Wall clock ahead (seconds)") == by, what="that it is noticed")
        before = has_run(hosts, runs[0])
        # Longer than nodes may be silent: their beats are counted by a clock that nobody sets.
        cluster.until(lambda: has_run(hosts, runs[0]) >= before + SILENCE + 4, what="the cluster's time")
        all_as_before()
        assert [moment(field(hosts, job, "StartTime")) for job in runs] == starts
        assert abs(left(hosts, runs[0]) + has_run(hosts, runs[0]) - 20 * 60) <= 2

        # Adopted: nothing has more or less time than before; who asked for a time of day gets it.
        before = has_run(hosts, runs[0])
        hosts[0].run("scontrol", "reconfigure")
        assert figure(hosts, "Wall clock ahead (seconds)") == 0
        assert [moment(field(hosts, job, "StartTime")) for job in runs] == [start + by for start in starts]
        assert 0 <= has_run(hosts, runs[0]) - before <= 20
        assert moment(field(hosts, delayed, "EligibleTime")) == begins + by
        if by > 0:
            cluster.until(lambda: field(hosts, at, "JobState") == "RUNNING", what="the start at that time of day")
            hosts[0].run("scancel", at)
            at = submit(hosts, "--begin=now+2hours")
        cluster.until(lambda: states(hosts) == {"mixed"}, what="two nodes with jobs")
        all_as_before()

        # Set back while no controller runs, which a crash may have ended.
        before = has_run(hosts, runs[0])
        hosts.controller.send_signal(signal.SIGKILL)
        hosts.controller.wait()
        set_clock(hosts, 0, 0)
        hosts.start_controller()
        cluster.until(lambda: states(hosts) == {"mixed"}, what="two nodes with jobs")
        assert [moment(field(hosts, job, "StartTime")) for job in runs] == starts
        assert before <= has_run(hosts, runs[0]) <= before + 60
        all_as_before()
    finally:
        set_clock(hosts, 0, 0)
        hosts[0].run("scancel", *runs, delayed, at)
        hosts[0].run("scontrol", "reconfigure")
    hosts.wait_idle(nodes)


@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_a_node_whose_clock_is_off_works_and_says_so(hosts, by):
    words = f"{HOUR} s {'ahead' if by > 0 else 'behind'}"

    def told():
        return re.findall(r"Clock=(.*)", hosts[0].run("scontrol", "show", "node", "h1").stdout)

    job = submit(hosts, "-w", "h1", "-t", "20")
    cluster.until(lambda: field(hosts, job, "JobState") == "RUNNING", what="the start")
    try:
        set_clock(hosts, 1, by)
        cluster.until(told, what="that the controller hears of it")
        assert re.fullmatch(rf"3(600|599|601) s {words.split()[-1]}", told()[0])
        listed = hosts[0].run("sinfo", "-R")
        assert f"h1: its clock is {told()[0]}" in listed.stdout + listed.stderr
        assert hosts.state_of("h1") == "mixed"  # nobody is drained for it
        assert "the clock of node h1 is" in (hosts[0].home / "berthctld.log").read_text()
        assert "the clock of this machine is" in (hosts[1].home / "berthd.log").read_text()
        # Launches, files and a new agent: tickets are judged by the controller's time.
        assert hosts[0].run("srun", "-t", "1", "--mem=10", "-w", "h1", "hostname").stdout == "h1\n"
        hosts[1].agent.send_signal(signal.SIGKILL)
        hosts[1].agent.wait()
        hosts.start_agent(1)
        cluster.until(lambda: hosts.state_of("h1") == "mixed", what="h1")
        assert hosts[0].run("srun", "-t", "1", "--mem=10", "-w", "h1", "hostname").stdout == "h1\n"
        assert field(hosts, job, "JobState") == "RUNNING"
        cluster.until(told, what="that the controller hears of it again")
        set_clock(hosts, 1, 0)
        cluster.until(lambda: not told(), what="that it is right again")
        assert "is right again" in (hosts[0].home / "berthctld.log").read_text()
    finally:
        set_clock(hosts, 1, 0)
        hosts[0].run("scancel", job)
    hosts.wait_idle(len(hosts.node_indices))
