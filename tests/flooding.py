#!/usr/bin/python3
"""A user who takes all he can of a daemon: connections, requests, messages that are begun and not finished, answers that
are not read.

    with Flood(socket_path, "nobody", connections=20000, rate=1000, frames=largest_requests()) as flood:
        …                                     # what others meet meanwhile
    flood.told                                # what it did: {"connected": …, "closed": …, "requests": …, "answered": …}

    flooding.py ADDRESS                       one process of it: its orders come on standard input, it ends with that

An address is a unix socket's path, or host:port for somebody on the network who proves nothing.
"""

import base64
import collections
import errno
import json
import os
import pathlib
import random
import resource
import select
import socket
import struct
import subprocess
import sys
import time

MIB = 1 << 20


class Process:
    """Keeps `connections` open, and says `rate` frames a second on some of them.

    A tenth begins the largest frame that there is and does not finish it, a tenth asks and never reads, a tenth sends the large
    ones among the frames: a connection on which such a one is stuck says nothing else."""

    MOST_WAITING = 1000  # connections being sent to at a time; more would only measure this process

    def __init__(self, address, connections, rate, frames, half):
        self.address, self.rate = address, rate
        known = [(base64.b64decode(frame), weight) for frame, weight in frames]
        self.small = [[f for f, _ in known if len(f) <= MIB], [w for f, w in known if len(f) <= MIB]]
        self.large = [[f for f, _ in known if len(f) > MIB], [w for f, w in known if len(f) > MIB]]
        self.half = base64.b64decode(half) if half else b""
        self.wanted = connections
        self.poll = select.epoll()
        self.peers = {}  # descriptor → socket
        self.role = {}  # descriptor → "asks", "large", "half" or "deaf"
        self.sending = collections.OrderedDict()  # descriptor → what is left to be sent
        self.asking = []  # those that may be asked on
        self.since = {}  # descriptor → when it was connected
        self.told = collections.Counter()

    def connect(self):
        """One more; False when the daemon's queue of new ones is full."""
        if self.address.startswith("/"):
            peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            peer.setblocking(False)
            status = peer.connect_ex(self.address)
        else:
            host, port = self.address.rsplit(":", 1)
            peer = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            peer.setblocking(False)
            status = peer.connect_ex((host, int(port)))
        if status not in (0, errno.EINPROGRESS):
            peer.close()
            self.told[errno.errorcode[status]] += 1
            return False
        number = peer.fileno()
        self.peers[number] = peer
        self.since[number] = time.monotonic()
        kind = random.random()
        self.role[number] = ("half" if kind < 0.1 and self.half else "large" if kind < 0.2 and self.large[0] else
                             "deaf" if kind < 0.3 else "asks")
        self.poll.register(number, select.EPOLLIN if self.role[number] != "deaf" else 0)
        self.told["connected"] += 1
        if self.role[number] == "half":
            self.send(number, self.half)
        else:
            self.asking.append(number)
        return True

    def drop(self, number):
        self.poll.unregister(number)
        self.peers.pop(number).close()
        self.role.pop(number)
        self.sending.pop(number, None)
        self.told["closed"] += 1

    def send(self, number, data):
        if number in self.sending or len(self.sending) >= self.MOST_WAITING:
            return False
        self.sending[number] = memoryview(data)
        self.flush(number)
        return True

    def events(self, number):
        reads = 0 if self.role[number] == "deaf" else select.EPOLLIN
        return reads | (select.EPOLLOUT if number in self.sending else 0)

    def flush(self, number):
        left = self.sending[number]
        try:
            sent = self.peers[number].send(left[:1 << 18])
        except BlockingIOError:
            sent = 0
        except OSError:
            return self.drop(number)
        self.told["bytes"] += sent
        if sent == len(left):
            del self.sending[number]
        else:
            self.sending[number] = left[sent:]
        self.poll.modify(number, self.events(number))

    def read(self, number):
        try:
            data = self.peers[number].recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            return self.drop(number)
        self.told["answered"] += len(data)

    def ask(self):
        """On one that was not sent away at once, if there is one among a few."""
        for _ in range(50):
            if not self.asking:
                return
            at = random.randrange(len(self.asking))
            number = self.asking[at]
            if self.role.get(number, "half") == "half":  # it is gone, and its number is another one's
                self.asking[at] = self.asking[-1]
                self.asking.pop()
            elif number not in self.sending and time.monotonic() - self.since[number] > 0.5:
                break
        else:
            self.told["no connection to ask on"] += 1
            return
        frames, weights = self.large if self.role[number] == "large" else self.small
        frame = random.choices(frames, weights)[0]
        if self.send(number, frame):
            self.told["requests"] += 1

    def run(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        stop = sys.stdin.fileno()
        os.set_blocking(stop, False)
        self.poll.register(stop, select.EPOLLIN | select.EPOLLHUP)
        began, asked, ready = time.monotonic(), 0, False
        while True:
            for number, happened in self.poll.poll(0.005, 512):
                if number == stop:
                    return
                if number in self.peers and happened & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                    if self.role[number] == "deaf":
                        self.drop(number)  # closed: there is nothing else to wake it
                        continue
                    self.read(number)
                if number in self.sending and happened & select.EPOLLOUT:
                    self.flush(number)
            for _ in range(100):  # who was sent away comes again at once
                if len(self.peers) >= self.wanted or not self.connect():
                    break
            if not ready and self.told["connected"] >= self.wanted:
                ready = True
                print("ready", flush=True)
                began = time.monotonic()
            due = int((time.monotonic() - began) * self.rate) if ready else 0
            for _ in range(min(due - asked, 200)):
                self.ask()
            asked = due


class Flood:
    def __init__(self, address, user, connections, rate, frames, half=b"", processes=4, within=()):
        self.orders = [json.dumps({
            "connections": connections // processes, "rate": rate / processes,
            "frames": [(base64.b64encode(frame).decode(), weight) for frame, weight in frames],
            "half": base64.b64encode(half).decode()}) + "\n"] * processes
        self.words = [*within, "setpriv", f"--reuid={user}", "--clear-groups", "--",
                      sys.executable, str(pathlib.Path(__file__).resolve()), str(address)]
        self.processes = []
        self.told = collections.Counter()

    def __enter__(self):
        for order in self.orders:
            process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.processes.append(process)
            process.stdin.write(order)
            process.stdin.flush()
        for process in self.processes:
            assert process.stdout.readline() == "ready\n", "the flood did not begin"
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            try:
                said = process.stdout.read()
                if said:
                    self.told.update(json.loads(said))
                process.wait(20)
            finally:
                process.kill()
                process.wait()
                process.stdout.close()


def begun(frame_bytes, sent_bytes, number):
    """The beginning of a frame that is never finished."""
    return struct.pack("<IH", frame_bytes - 4, number) + b"\0" * (sent_bytes - 6)


def largest_requests():
    """What a user may ask a controller at its largest, with weights: most of it small, as most of it would be, so that there
    are many; some as large as is taken."""
    from messages import frame, make
    variables = [make("Variable", name=f"V{i}", value="x" * (120 << 10)) for i in range(48)]
    submit = {"command": "sbatch", "directory": "/tmp", "host": "h", "umask": 0o22}
    words = ["-H", "-J", "j" * 1024, "--comment=" + "c" * 1024, "-o", "/tmp/" + "o" * 4000, "--wckey=" + "w" * 1024, "job.sh"]
    script = "#!/bin/sh\n" + "#" * (4 * MIB - 11) + "\n"
    return [
        (frame(make("Ping")), 20),
        (frame(make("ListJobs")), 20),
        (frame(make("ListJobs", names=["n" * 1000] * 1000, with_detail=True, with_ended=True)), 2),
        (frame(make("ListNodes")), 10),
        (frame(make("ListHistory", all_users=True, with_steps=True, duplicates=True)), 5),
        (frame(make("CancelJobs", names=["n" * 1000] * 1000)), 2),
        (frame(make("Diagnose")), 5),
        (frame(make("SubmitJob", asked=make("Asked", words=words, script="#!/bin/sh\n", **submit))), 20),
        (frame(make("SubmitJob", asked=make("Asked", words=words, script=script, environment=variables,
                                            submit_line="s" * MIB, **submit))), 2),
        # One byte too large: refused, after it was sent.
        (frame(make("SubmitJob", asked=make("Asked", words=words, script=script + "#", **submit))), 2),
    ]


def launches(node):
    """Launches of a job that is not there, some as large as is taken, for an agent."""
    from messages import frame, make
    spec = make("StepSpec", node=node, job_id=4711, attempt=1, uid=65534).SerializeToString()
    variables = [make("Variable", name=f"V{i}", value="x" * (120 << 10)) for i in range(48)]
    small, large = make("Program", argv=["true"]), make("Program", argv=["true"], environment=variables)
    ticket, nowhere = (make("Ticket", node=name, spec=spec, mac="m" * 32) for name in (node, "nowhere"))
    return [(frame(make("Launch", ticket=ticket, program=small)), 20),
            (frame(make("Launch", ticket=nowhere, program=small)), 10),
            (frame(make("Launch", ticket=ticket, program=large)), 2),
            (frame(make("Launch", ticket=nowhere, program=large)), 2),
            (frame(make("Attach", ticket=ticket)), 10),
            (frame(make("CallController", program="sinfo")), 10)]


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def memory_of(pid):
    """Resident memory in MB: now, and the most there was."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return tuple(int(next(line for line in text.splitlines() if line.startswith(key)).split()[1]) / 1024
                 for key in ("VmRSS", "VmHWM"))


if __name__ == "__main__":
    order = json.loads(sys.stdin.readline())
    process = Process(sys.argv[1], order["connections"], order["rate"], order["frames"], order["half"])
    process.run()
    print(json.dumps(process.told), flush=True)
