"""Messages of berth as Python values, and connections that send them: for what no command of ours would send.

    with Probe(socket_path) as peer:                           # or Probe("h0:6817", authority, "munge", within=host.within())
        peer.send("CancelJobs", job_ids=[7])                   # or a message: peer.send(messages.CancelJobs(…))
        answer = peer.receive()                                # (name, message), or None when the daemon has closed

The classes are made from src/wire/*.proto, the numbers are those of src/wire/messages.def.
"""

import functools
import importlib
import pathlib
import re
import select
import struct
import subprocess
import sys
import tempfile
import time

import cluster

WIRE = cluster.ROOT / "src/wire"
NUMBERS = {name: int(number) for number, name in
           re.findall(r"^BERTH_MESSAGE\((\d+), (\w+)\)", (WIRE / "messages.def").read_text(), re.MULTILINE)}
NAMES = {number: name for name, number in NUMBERS.items()}
HEADER = struct.Struct("<IH")


@functools.cache
def _modules():
    made = tempfile.TemporaryDirectory(prefix="berth-proto-")
    files = sorted(WIRE.glob("*.proto"))
    subprocess.run(["protoc", f"--proto_path={WIRE}", f"--python_out={made.name}", *map(str, files)], check=True,
                   stderr=subprocess.DEVNULL)
    sys.path.insert(0, made.name)
    modules = [importlib.import_module(f"{file.stem}_pb2") for file in files]
    sys.path.remove(made.name)
    made.cleanup()
    return modules


def message_class(name):
    for module in _modules():
        if hasattr(module, name):
            return getattr(module, name)
    raise AssertionError(f"no message {name}")


def make(name, /, **fields):
    """A message; text is given as bytes or str."""
    encode = lambda v: v.encode() if isinstance(v, str) else [encode(one) for one in v] if isinstance(v, list) else v  # noqa: E731
    return message_class(name)(**{key: encode(value) for key, value in fields.items()})


def frame(message, name=None):
    return raw_frame(NUMBERS[name or type(message).__name__], message.SerializeToString())


def raw_frame(number, payload=b""):
    return HEADER.pack(len(payload) + 2, number) + payload


class Probe:
    """berth-probe (src/probe/main.cpp): `way` says how the caller proves who it is."""

    def __init__(self, address, *way, user=None, within=()):
        words = list(within)
        if user is not None:
            words += ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"]
        self.process = subprocess.Popen(
            words + [str(cluster.bin_dir().parent / "tests/berth-probe"), str(address), *map(str, way)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        self.bytes = b""
        self.said = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, what, /, **fields):
        """A message, the name and fields of one, or bytes as they are."""
        if isinstance(what, str):
            what = frame(make(what, **fields), what)
        elif not isinstance(what, bytes):
            what = frame(what)
        try:
            self.process.stdin.write(what)
        except BrokenPipeError:
            pass
        return self

    def receive(self, seconds=cluster.SECONDS):
        """The next frame as (name, message); None when the connection is closed."""
        end = time.monotonic() + seconds
        while len(self.bytes) < 4 or len(self.bytes) < 4 + struct.unpack_from("<I", self.bytes)[0]:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            assert ready, f"no answer within {seconds} s"
            more = self.process.stdout.read(1 << 16)
            if not more:
                return None
            self.bytes += more
        length, number = HEADER.unpack_from(self.bytes)
        payload, self.bytes = self.bytes[HEADER.size:4 + length], self.bytes[4 + length:]
        return NAMES[number], message_class(NAMES[number]).FromString(payload)

    def ask(self, what, /, **fields):
        return self.send(what, **fields).receive()

    def until_closed(self, seconds=cluster.SECONDS):
        """All frames until the daemon closes."""
        frames = []
        while (got := self.receive(seconds)) is not None:
            frames.append(got)
        return frames

    def why(self):
        """What the probe said when it ended."""
        self.process.wait(cluster.SECONDS)
        return self.process.stderr.read().decode()

    def close(self):
        for pipe in (self.process.stdin, self.process.stdout):
            pipe.close()
        self.process.kill()  # it may wait for the daemon
        self.process.wait()
        self.process.stderr.close()


def refusal(answer):
    """The words of a refusal, "" for what is none."""
    if answer is None or not answer[1].DESCRIPTOR.fields_by_name.get("refusal") or not answer[1].HasField("refusal"):
        return ""
    given = answer[1].refusal
    return " ".join([line.text.decode() for line in given.lines] + [given.hint.decode()]) or given.code.decode()
