"""What somebody on the network can do: listen to all that passes the switch, and sit between two machines."""

import select
import signal
import subprocess
import sys

LISTEN = """
import signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
with open(sys.argv[1], "wb", buffering=0) as out:
    print("ready", flush=True)
    while True:
        out.write(tap.recv(1 << 17))
"""


class Tap:
    """All packets on the switch, into a file."""

    def __init__(self, hosts, path):
        self.path = path
        self.process = subprocess.Popen(["nsenter", "-t", str(hosts.switch.pid), "--net", "--", sys.executable, "-c", LISTEN,
                                         str(path)], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.process.stdout.close()

    def bytes(self):
        return self.path.read_bytes()


BETWEEN = """
import select, socket, sys
port, host, to, flip, kept = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
listener = socket.create_server(("", port))
seen = 0
with open(kept, "wb", buffering=0) as record:
    print("ready", flush=True)
    while True:
        client, _ = listener.accept()
        server = socket.create_connection((host, to))
        ends = {client: server, server: client}
        while ends:
            for end in select.select(list(ends), [], [])[0]:
                try: data = end.recv(65536)
                except OSError: data = b""
                if not data:
                    for one in ends: one.close()
                    ends = {}
                    break
                if end is client:
                    record.write(data)
                    if seen <= flip < seen + len(data):
                        at = flip - seen
                        data = data[:at] + bytes([data[at] ^ 16]) + data[at + 1:]
                    seen += len(data)
                try: ends[end].sendall(data)
                except OSError: pass
"""


class Between:
    """A machine through which a client's bytes pass: they are kept, and one bit of them may be changed on its way."""

    def __init__(self, host, port, to, kept, flip=-1):
        self.process = subprocess.Popen(host.within() + [sys.executable, "-c", BETWEEN, str(port), to[0], str(to[1]), str(flip),
                                                         str(kept)], stdout=subprocess.PIPE, text=True)
        assert select.select([self.process.stdout], [], [], 20)[0] and self.process.stdout.readline() == "ready\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
