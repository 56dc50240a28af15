"""Several machines in one: network namespaces with a name, an address and files of their own each.

    with Hosts(3) as hosts:                       # h0 is the controller's, h1 and h2 are nodes
        hosts.start()
        hosts[1].run("hostname")                  # a command on a machine
        hosts.cut(2)                              # the cable of h2 is pulled
        hosts.mend(2)

What is its own on every machine: the network, the host name, /etc/hosts, /run/berth, /run/munge and the directory
of slurm.conf (here called `home`). Only machines that are named in `munge` have a munged, all with one key, as a
site has it on its login machines.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import cluster  # noqa: E402

NETWORK = "10.113.7"
PORT, NODE_PORT = 6817, 6818


class Host:
    def __init__(self, index, directory):
        self.index, self.name, self.address = index, f"h{index}", f"{NETWORK}.{index + 10}"
        self.home = directory / self.name
        self.home.mkdir()
        (self.home / "spool").mkdir(mode=0o755)
        self.conf = self.home / "slurm.conf"
        self.started = []
        self.holder = None
        self.variables = {}  # of the daemons that are started from now on
        self.boots = 0

    def open(self, hosts_file):
        """Namespaces that live as long as the process that holds them."""
        (self.home / "etc_hosts").write_text(hosts_file)
        script = (f"hostname {self.name}; ip link set lo up; mount --make-rprivate /; "
                  "mkdir -p /run/berth /run/munge; mount -t tmpfs none /run/berth; mount -t tmpfs none /run/munge; "
                  f"mount --bind {self.home}/etc_hosts /etc/hosts; echo ready; exec sleep 100000")
        self.holder = subprocess.Popen(["unshare", "--net", "--mount", "--uts", "sh", "-c", script],
                                       stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "ready\n"

    def within(self):
        return ["nsenter", "-t", str(self.holder.pid), "--net", "--mount", "--uts", "--"]

    def environment(self, **more):
        return cluster.clean_environment(**{"SLURM_CONF": str(self.conf), **more})

    def run(self, *words, user=None, check=True, timeout=None, stdin="", **env):
        """A command on this machine; its result."""
        command = self.within()
        if user:
            command += ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"]
        done = subprocess.run(command + [str(w) for w in words], env=self.environment(**env), input=stdin, text=True,
                              capture_output=True, timeout=timeout or cluster.SECONDS, cwd="/tmp")
        assert not check or done.returncode == 0, f"{words} on {self.name}: {done.stdout}{done.stderr}{self.logs()}"
        return done

    def spawn(self, *words, log):
        with open(self.home / log, "a") as out:
            process = subprocess.Popen(self.within() + [str(w) for w in words], env=self.environment(**self.variables), stdout=out,
                                       stderr=out, stdin=subprocess.DEVNULL, cwd="/",
                                       start_new_session=True)  # with a share of the CPUs, as a service has
        self.started.append(process)
        return process

    def logs(self):
        text = ""
        for log in sorted(self.home.glob("*.log")):
            text += f"\n--- {log.name} of {self.name}\n" + "".join(log.read_text(errors="replace").splitlines(True)[-15:])
        return text

    def processes(self):
        """All that run on this machine, but for the one that holds its namespaces."""
        own = os.readlink(f"/proc/{self.holder.pid}/ns/net")
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == self.holder.pid:
                continue
            with contextlib.suppress(OSError):
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                if state not in "ZX" and os.readlink(entry / "ns/net") == own:
                    found.append(int(entry.name))
        return found

    def end_processes(self):
        """Everything that runs there ends at once."""
        def nothing_left():
            left = self.processes()
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not left
        cluster.until(nothing_left, what=f"the end of all processes of {self.name}")
        for process in self.started:
            process.wait()
        self.started.clear()

    def power_off(self):
        """Everything that runs there ends at once, and with it the network, /run and what was mounted there."""
        self.end_processes()
        end(self.holder, signal.SIGKILL)

    def power_on(self):
        """Without a network yet; with another boot id than before, and a later boot time."""
        self.boots += 1
        self.open((self.home / "etc_hosts").read_text())
        boot_id, stat = self.home / "boot_id", self.home / "proc_stat"
        boot_id.write_text(f"{uuid.uuid4()}\n")
        stat.write_text(re.sub(r"(?m)^btime (\d+)$", lambda at: f"btime {int(at[1]) + 1000 * self.boots}",
                               pathlib.Path("/proc/stat").read_text()))
        for file, over in ((boot_id, "/proc/sys/kernel/random/boot_id"), (stat, "/proc/stat")):
            self.run("mount", "--bind", file, over)

    def close(self):
        for process in reversed(self.started):
            end(process)
        if self.holder:
            self.end_processes()  # jobs that run on without an agent
            end(self.holder, signal.SIGKILL)
            cluster.remove_groups(self.home / "spool")


def end(process, how=signal.SIGTERM):
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Hosts:
    """A controller on h0 and nodes on the others."""

    def __init__(self, count=3, munge=(0,), keys="", controller_is_node=False):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="berth-hosts-"))
        os.chmod(self.directory, 0o755)
        self.switch = None
        self.hosts = [Host(i, self.directory) for i in range(count)]
        self.munge = munge
        first = 0 if controller_is_node else 1
        nodes = f"h[{first}-{count - 1}]" if count - first > 1 else f"h{first}"
        self.node_indices = range(first, count)
        self.text = (f"ClusterName=hosts\nSlurmctldHost=h0\nSlurmctldPort={PORT}\nSlurmdPort={NODE_PORT}\n"
                     "SlurmUser=root\nStateSaveLocation={home}/state\nSlurmdSpoolDir={home}/spool\n"
                     "SelectType=select/cons_tres\nReturnToService=1\n" + ("" if "SlurmdTimeout=" in keys else "SlurmdTimeout=30\n") + keys +
                     f"\nNodeName={nodes} CPUs=2 RealMemory=1000 State=UNKNOWN\n"
                     f"PartitionName=all Nodes={nodes} Default=YES MaxTime=INFINITE State=UP\n")

    def __enter__(self):
        try:
            return self.open()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()

    def __getitem__(self, index):
        return self.hosts[index]

    def open(self):
        self.switch = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "ip link add br0 type bridge; ip link set br0 up; echo ready; "
             "exec sleep 100000"], stdout=subprocess.PIPE, text=True)
        assert self.switch.stdout.readline() == "ready\n"
        names = "127.0.0.1 localhost\n" + "".join(f"{h.address} {h.name}\n" for h in self.hosts)
        for host in self.hosts:
            host.conf.write_text(self.text.replace("{home}", str(host.home)))
            host.open(names)
            self.plug(host)
        if self.munge:
            self.start_munge()
        return self

    def plug(self, host):
        """A cable from the host to the switch."""
        tag = f"{os.getpid() % 100000}x{host.index}"
        sh = lambda *words: subprocess.run(words, check=True, capture_output=True)  # noqa: E731
        # The same after a reboot: others remember it.
        sh("ip", "link", "add", f"a{tag}", "address", f"02:00:00:00:07:{host.index:02x}", "type", "veth", "peer",
           "name", f"b{tag}")
        sh("ip", "link", "set", f"a{tag}", "netns", str(host.holder.pid), "name", "eth0")
        sh("ip", "link", "set", f"b{tag}", "netns", str(self.switch.pid), "name", f"p{host.index}")
        host.run("sh", "-c", f"ip addr add {host.address}/24 dev eth0 && ip link set eth0 up")
        self.on_switch("ip", "link", "set", f"p{host.index}", "master", "br0", "up")

    def on_switch(self, *words):
        subprocess.run(["nsenter", "-t", str(self.switch.pid), "--net", "--", *words], check=True)

    def cut(self, index):
        self.on_switch("ip", "link", "set", f"p{index}", "down")

    def mend(self, index):
        self.on_switch("ip", "link", "set", f"p{index}", "up")

    def bad_network(self, index, lost_in=0, lost_out=0):
        """So many packets of a hundred do not come in, or go out; 100 of one: the machine is deaf, or mute. 0 and 0 heals."""
        rules = ["table ip faults", "delete table ip faults"]
        if lost_in or lost_out:
            rules.append("table ip faults {")
            for hook, direction, percent in (("input", "iif", lost_in), ("output", "oif", lost_out)):
                if percent:
                    rules.append(f"chain {hook} {{ type filter hook {hook} priority 0; "
                                 f"{direction} eth0 numgen random mod 100 <= {percent - 1} drop; }}")
            rules.append("}")
        self.hosts[index].run("/usr/sbin/nft", "-f", "-", stdin="\n".join(rules) + "\n")

    def start_munge(self):
        key = self.directory / "munge.key"
        key.write_bytes(os.urandom(128))
        os.chmod(key, 0o400)
        for index in self.munge:
            self.start_munged(self.hosts[index])

    def start_munged(self, host):
        host.run("sh", "-c", "chmod 755 /run/munge")
        host.spawn("/usr/sbin/munged", "--foreground", "--force", f"--key-file={self.directory}/munge.key",
                   "--num-threads=2", f"--log-file={host.home}/munged.txt", f"--seed-file={host.home}/munge.seed",
                   f"--pid-file={host.home}/munge.pid", log="munge.log")
        cluster.until(lambda: host.run("munge", "-n", check=False).returncode == 0, what="munged")

    def start_controller(self, **env):
        variables = [f"{key}={value}" for key, value in env.items()]
        self.controller = self.hosts[0].spawn("env", *variables, cluster.bin_dir() / "berthctld", "-f", self.hosts[0].conf,
                                              "--foreground", log="berthctld.log")
        cluster.until(lambda: self.hosts[0].run("scontrol", "ping", check=False).returncode == 0, what="berthctld")

    def join(self, index, node=None):
        token = self.hosts[0].run("scontrol", "token", f"node={node or self.hosts[index].name}").stdout.strip()
        return self.hosts[index].run("berth", "join", "-", stdin=token + "\n")

    def start_agent(self, index):
        host = self.hosts[index]
        host.agent = host.spawn(cluster.bin_dir() / "berthd", "-f", host.conf, "--foreground", log="berthd.log")
        return host.agent

    def reboot(self, index, agent=True):
        """The machine loses its power, without a last word to anybody, and comes up again with its agent (and munged)."""
        host = self.hosts[index]
        self.on_switch("ip", "link", "del", f"p{index}")
        host.power_off()
        host.power_on()
        self.plug(host)
        if index in self.munge:
            self.start_munged(host)
        if agent:
            self.start_agent(index)

    def start(self):
        self.start_controller()
        for index in self.node_indices:
            if index != 0:
                self.join(index)
            self.start_agent(index)
        self.wait_idle(len(self.node_indices))

    def run_directory(self, index):
        """Where the daemons of a machine have their sockets, as seen there."""
        return pathlib.Path("/run/berth") / cluster.run_key(self.hosts[index].conf)

    def controller_socket(self):
        return self.run_directory(0) / "controller.sock"

    def node_socket(self, index):
        return self.run_directory(index) / "node.sock"

    def identity_file(self, index):
        return next((self.hosts[index].home / "spool").glob("**/identity.pem"))

    def state_of(self, name):
        return self.hosts[0].run("sinfo", "-h", "-n", name, "-o", "%T").stdout.strip()

    def wait_idle(self, count):
        cluster.until(lambda: self.hosts[0].run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").stdout.count("h") >= count,
                      what=f"{count} idle nodes{''.join(h.logs() for h in self.hosts)}")

    def close(self):
        for host in self.hosts:
            host.close()
        if self.switch:
            end(self.switch, signal.SIGKILL)
        time.sleep(0.05)
        shutil.rmtree(self.directory, ignore_errors=True)
