"""Every message of the protocol, from everybody who can have a connection: who is not meant to send it changes nothing.

What is meant stands in matrix.txt. A cell is tried on a connection of its own: the message, then a question that
this caller may ask. When that is answered, the message was taken; when the connection is closed or the answer is
"Access/permission denied", it was refused.
"""

import pytest

import cluster
from hosts import Hosts
from messages import NUMBERS, Probe, frame, make, raw_frame, refusal

pytestmark = pytest.mark.live
NOBODY = 65534
DENIED = "Access/permission denied"
ROWS = {}
for line in (cluster.ROOT / "tests/hosts/matrix.txt").read_text().splitlines():
    if line and not line.startswith("#"):
        message, to_controller, to_agent = line.split()
        ROWS[message] = (to_controller, to_agent)


@pytest.fixture(scope="module")
def hosts():
    with Hosts(2) as h:
        h.start()
        yield h


def test_every_message_has_a_row():
    assert set(ROWS) == set(NUMBERS)


class Standing:
    """A way to be connected to the controller, and what it makes of the sender."""

    def __init__(self, hosts, way, user=0, certificate=False, registered=False, remote=True, hello=None, known=None, turned_away=False):
        self.hosts, self.way, self.user, self.registered, self.remote = hosts, way, user, registered, remote
        self.certificate, self.hello, self.turned_away = certificate, hello, turned_away
        self.known = bool(way or hello or not remote) and not certificate if known is None else known

    def open(self):
        hosts = self.hosts
        words = (["h0:6817", hosts[0].home / "berth-authority.pem", *self.way] if self.remote else
                 [hosts.controller_socket()])
        # The certificate can be read by root alone, who then vouches for the user.
        peer = Probe(*words, user=0 if "identity" in self.way else self.user, within=hosts[0].within())
        if self.hello:
            peer.send("Hello", protocol=1, program="probe", **self.hello)
        if self.registered:
            # The agent of h1 serves that node: this one waits for it to end, as an agent of nothing.
            nodes = [make("NodeReport", name="h1")] if self.certificate else []
            name, _ = peer.ask("RegisterNodes", nodes=nodes, address=make("NodeAddress", host="h0", port=1))
            assert name == "Registered"
        return peer

    def marker(self):
        if self.registered:
            return "Beat", frame(make("Beat", number=4711, ask=True))
        if self.certificate:
            return "IdentityRenewed", frame(make("RenewIdentity"))
        return "Pong", frame(make("Ping"))

    def may(self, who):
        if self.turned_away:
            return False
        administrator = self.user == 0 and self.known
        agent = self.certificate or (administrator and not self.remote)
        return {"anybody": True, "users": self.known, "administrators": administrator, "new-agents": agent,
                "agents": agent and self.registered, "nodes": self.certificate,
                "new-nodes": self.certificate and not self.registered, "-": False}[who]

    def took(self, message):
        """Whether the controller took it, and all that it said."""
        expected, question = self.marker()
        with self.open() as peer:
            peer.send(raw_frame(NUMBERS[message]))
            peer.send(question)
            said = []
            while (answer := peer.receive()) is not None:
                said.append(answer)
                if DENIED == refusal(answer).strip():
                    return False, said
                if answer[0] == expected:
                    return True, said
        # A node that vouches for nobody is told so, and a secret that is not known, and an agent of no node goes: these were
        # looked at.
        looked_at = any("who says" in refusal(s) or "has no job" in refusal(s) or s[0] in ("NodeJoined", "Registered")
                        for s in said)
        return looked_at, said


def token(hosts, name):
    return hosts[0].run("scontrol", "token", f"username={name}").stdout.strip().removeprefix("SLURM_JWT=")


def revoked(hosts):
    text = token(hosts, "daemon")
    hosts[0].run("scontrol", "revoke", "username=daemon")
    return text


def job_on_h1(hosts):
    job = hosts[0].run("sbatch", "--parsable", "--mem=100", "-w", "h1", "-o", "/dev/null", "--wrap", "sleep 600", user=NOBODY).stdout.strip()
    cluster.until(lambda: hosts[0].run("squeue", "-h", "-j", job, "-o", "%T").stdout.strip() == "RUNNING", what="the job")
    return int(job)


def standings(hosts):
    job_on_h1(hosts)  # so that its agent may vouch
    identity = hosts.identity_file(1)
    return {
        "stranger over TCP": Standing(hosts, []),
        "user here": Standing(hosts, [], user=NOBODY, remote=False),
        "user over TCP": Standing(hosts, ["munge"], user=NOBODY),
        "administrator here": Standing(hosts, [], remote=False),
        "user by a token": Standing(hosts, [], user=NOBODY, hello={"token": token(hosts, "nobody")}),
        "user by a revoked token": Standing(hosts, [], user=NOBODY, hello={"token": revoked(hosts)}, turned_away=True),
        "user a node vouches for": Standing(hosts, ["identity", identity], user=NOBODY, known=True,
                                            hello={"vouched_uid": NOBODY, "vouched_gid": NOBODY}),
        "administrator by munge": Standing(hosts, ["munge"], turned_away=True),
        "administrator over TCP": Standing(hosts, [], hello={"token": token(hosts, "root")}),
        "agent here": Standing(hosts, [], remote=False, registered=True),
        "node over TCP": Standing(hosts, ["identity", identity], certificate=True),
        "agent over TCP": Standing(hosts, ["identity", identity], certificate=True, registered=True),
    }


# What would end the controller; it is tried last, by itself.
DEADLY = {"Shutdown"}


def test_every_cell_of_the_controller(hosts):
    wrong, cells = [], 0
    for name, standing in standings(hosts).items():
        for message, (who, _) in ROWS.items():
            if message in DEADLY and standing.may(who):
                continue
            if not standing.remote and message == "Hello":
                continue  # polite on a unix socket: the kernel has said who calls
            cells += 1
            took, said = standing.took(message)
            if took != standing.may(who):
                wrong.append((message, name, "taken" if took else "refused", [s[0] + ": " + refusal(s) for s in said]))
    assert not wrong
    assert cells > 11 * len(NUMBERS)


def test_who_may_shut_the_controller_down():
    for name in ("administrator here", "administrator over TCP", "agent here"):
        with Hosts(2) as h:
            h.start_controller()
            proof = {"token": token(h, "root")} if "TCP" in name else None
            standing = Standing(h, [], remote="TCP" in name, registered="agent" in name, hello=proof)
            with standing.open() as peer:
                peer.send("Shutdown")
                cluster.until(lambda: h.controller.poll() is not None, what=f"the end, asked for by {name}")


def agent_ways(hosts):
    """name → (arguments of Probe, user, is it on the unix socket)."""
    job = job_on_h1(hosts)
    with Probe(hosts.controller_socket(), user=NOBODY, within=hosts[0].within()) as peer:
        name, grant = cluster.until(
            lambda: next((a for a in [peer.ask("GetAccess", job_id=job, step_id=0xFFFFFFFB, purpose="attach")]
                          if not refusal(a)), None), what="a ticket")
    ticket = grant.tickets[0]
    session = ["handover", ticket.session.hex(), ticket.session_key.hex()]
    forged = ["handover", ticket.session.hex(), bytes(32).hex()]
    local = [hosts.node_socket(1)]
    return {"user here": (local, NOBODY, True), "root here": (local, 0, True),
            "user over TCP": (["h1:6818", "/dev/null", *session], NOBODY, False),
            "stranger over TCP": (["h1:6818", "/dev/null", *forged], NOBODY, None)}


def test_every_cell_of_the_agent(hosts):
    """An agent closes what is not for it, and answers or holds what is: a Launch waits for its job."""
    wrong, cells = [], 0
    for name, (words, user, local) in agent_ways(hosts).items():
        for message, (_, who) in ROWS.items():
            cells += 1
            may = local is not None and (who == "clients" or (who == "local" and local))
            with Probe(*words, user=user, within=hosts[1].within()) as peer:
                peer.send(raw_frame(NUMBERS[message]))
                try:
                    answer = peer.receive(seconds=10 if not may else 0.3)
                    said = answer is not None
                except AssertionError:
                    said = True  # it is held
                # CallController goes on to the controller, which is told nothing by an empty one; a relay of
                # no nodes is nonsense.
                if message in ("CallController", "Relay") and may:
                    continue
                if said != may:
                    wrong.append((message, name, "taken" if said else "refused"))
    assert not wrong
    assert cells == 4 * len(NUMBERS)
    assert hosts.state_of("h1") in ("idle", "mixed", "allocated")
