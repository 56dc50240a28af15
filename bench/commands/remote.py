"""The same two systems over the network: a controller, eight nodes and a login machine, each a network namespace of its
own (tests/hosts/hosts.py). berth's links are TLS; users prove themselves by munge in both. Commands run on the login machine.
"""

import ctypes
import json
import os
import sys

import systems

sys.path.insert(0, str(systems.ROOT / "tests/hosts"))
sys.path.insert(0, str(systems.ROOT / "tests"))
import hosts as several  # noqa: E402

LOGIN = systems.NODES + 1
CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWUTS = 0x40000000, 0x00020000, 0x04000000


class Remote(systems.System):
    extra = ""

    def __init__(self):
        super().__init__()
        self.hosts = several.Hosts(LOGIN + 1, munge=tuple(range(LOGIN + 1)))
        text = (systems.ROOT / "bench/commands/slurm.conf").read_text()
        nodes = f"NodeName=h[1-{systems.NODES}]"
        text = text.replace("SlurmctldHost=localhost(127.0.0.1)", "SlurmctldHost=h0").replace("{dir}", "{home}").replace("%n", "own")
        text = text.replace("{port}", str(several.PORT)).replace("{port1}", str(several.NODE_PORT)).replace("{nodes}", nodes)
        self.hosts.text = text + self.extra
        self.hosts.open()
        for host in self.hosts.hosts:
            (host.home / "state").mkdir(exist_ok=True)
            (host.home / "spool.own").mkdir(exist_ok=True)
            (host.home / "gres.conf").write_text(f"{nodes} Name=gpu File={self.dir}/gpu[0-7]\n")
            (host.home / "cgroup.conf").write_text((self.dir / "cgroup.conf").read_text())
        self.env["SLURM_CONF"] = str(self.hosts[LOGIN].conf)

    def spawn_on(self, index, *words):
        host = self.hosts[index]
        self.env["SLURM_CONF"] = str(host.conf)
        daemon = self.spawn(*host.within(), *map(str, words))
        self.env["SLURM_CONF"] = str(self.hosts[LOGIN].conf)
        return daemon

    def at_login(self, work):
        """What `work` returns, worked out by a process on the login machine."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                libc = ctypes.CDLL(None, use_errno=True)
                for kind, flag in (("net", CLONE_NEWNET), ("uts", CLONE_NEWUTS), ("mnt", CLONE_NEWNS)):
                    fd = os.open(f"/proc/{self.hosts[LOGIN].holder.pid}/ns/{kind}", os.O_RDONLY)
                    if libc.setns(fd, flag) != 0:
                        raise OSError(ctypes.get_errno(), f"setns {kind}")
                os.write(writer, json.dumps(work()).encode())
            except BaseException as error:  # noqa: BLE001: told to the parent by an empty answer
                print(f"{self.name}: {error!r}", file=sys.stderr, flush=True)
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            said = pipe.read()
        os.waitpid(pid, 0)
        if not said:
            raise RuntimeError(f"{self.name}: no figures; see {self.hosts.directory}")
        return json.loads(said)

    def wait_idle(self, seconds=90):
        self.at_login(lambda: super(Remote, self).wait_idle(seconds))

    def stop(self):
        super().stop()
        self.hosts.close()


class Berth(Remote):
    name = "berth"
    port = 28317
    bin = systems.Berth.bin
    extra = "SlurmctldParameters=munge_admins\n"  # commands are root's

    def start(self):
        self.spawn_on(0, self.bin / "berthctld", "-f", self.hosts[0].conf, "--foreground", "--state", self.hosts[0].home / "state")
        several.cluster.until(lambda: self.hosts[0].run("scontrol", "ping", check=False).returncode == 0, what="berthctld")
        for index in range(1, LOGIN):
            self.hosts.join(index)
            self.spawn_on(index, self.bin / "berthd", "-f", self.hosts[index].conf, "--foreground")
        authority = self.hosts[0].home / "berth-authority.pem"
        (self.hosts[LOGIN].home / authority.name).write_text(authority.read_text())
        self.at_login(lambda: super(Remote, self).wait_idle())


class Slurm(Remote):
    name = "slurm"
    port = 28117
    bin = systems.Slurm.bin
    extra = "DebugFlags=NO_CONF_HASH\n"
    installed = staticmethod(systems.Slurm.installed)

    def start(self):
        self.spawn_on(0, "/usr/sbin/slurmctld", "-D", "-f", self.hosts[0].conf)
        for index in range(1, LOGIN):
            self.spawn_on(index, "/usr/sbin/slurmd", "-D", "-N", self.hosts[index].name, "-f", self.hosts[index].conf)
        self.at_login(lambda: super(Remote, self).wait_idle())
