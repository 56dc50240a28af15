"""One controller for a cluster: where slurm.conf says, with the store that the nodes know."""

import shutil
import signal

import pytest

import cluster
from hosts import Hosts, end

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def hosts():
    with Hosts(3) as h:
        h.start()
        yield h


def conf_of(hosts, index, name, old="SlurmctldHost=h0", new="SlurmctldHost=h0", authority=True):
    """Another slurm.conf on a machine, with a run directory and state of its own."""
    folder = hosts[index].home / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    conf = folder / "slurm.conf"
    text = hosts[index].conf.read_text()
    assert old in text
    conf.write_text(text.replace(old, new).replace(str(hosts[index].home) + "/state", f"{folder}/state"))
    if authority:
        (folder / "berth-authority.pem").write_text((hosts[0].home / "berth-authority.pem").read_text())
    return conf


def controller(hosts, index, conf, *words):
    """What a berthctld there says that does not come up."""
    done = hosts[index].run(cluster.bin_dir() / "berthctld", "-f", conf, "--foreground", *words, check=False, timeout=30)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


def still_served(hosts):
    assert hosts[0].run("srun", "-N2", "hostname").stdout.split() != []
    hosts.wait_idle(2)


def test_another_host_of_the_same_slurm_conf_is_refused(hosts):
    conf = conf_of(hosts, 1, "same")
    said = controller(hosts, 1, conf)
    assert "this machine is h1 (10.113.7.11)" in said and "SlurmctldHost=h0, which is 10.113.7.10" in said, said
    assert "start it on h0" in said and "StateSaveLocation" in said
    assert not (conf.parent / "state").exists()
    still_served(hosts)


@pytest.mark.parametrize("new, good", [
    ("SlurmctldHost=h0.example.org", True), ("SlurmctldHost=h0(10.113.7.10)", True), ("SlurmctldHost=10.113.7.10", True),
    ("SlurmctldHost=alias(h0)", True), ("SlurmctldHost=h1(10.113.7.11)", False), ("SlurmctldHost=nobody", False)])
def test_names_of_the_host(hosts, new, good):
    """Which of them are this machine: those that are get as far as the lock of the controller that runs."""
    conf = conf_of(hosts, 0, new.split("=")[1], new=new)
    words = ("--run", hosts.run_directory(0), "--state", hosts[0].home / "state")
    said = controller(hosts, 0, conf, *words)
    assert ("this machine is h0" in said) != good, said
    still_served(hosts)


def test_a_second_host_is_refused(hosts):
    conf = conf_of(hosts, 0, "two", new="SlurmctldHost=h0\nSlurmctldHost=h1")
    for index, file in ((0, conf), (1, conf_of(hosts, 1, "two", new="SlurmctldHost=h0\nSlurmctldHost=h1"))):
        said = controller(hosts, index, file)
        assert "slurm.conf names 2 controllers (SlurmctldHost=h0, SlurmctldHost=h1)" in said and "no failover" in said
    # Nor by a reconfiguration of the one that runs.
    before = hosts[0].conf.read_text()
    hosts[0].conf.write_text(conf.read_text())
    try:
        done = hosts[0].run("scontrol", "reconfigure", check=False)
        assert done.returncode != 0 and "names 2 controllers" in done.stderr, done.stderr
    finally:
        hosts[0].conf.write_text(before)
    still_served(hosts)


def test_an_empty_store_is_not_the_clusters(hosts):
    """h1 is made the controller's host, and the store did not come along: nobody gets `Submitted batch job 1`."""
    conf = conf_of(hosts, 1, "moved", new="SlurmctldHost=h1")
    for _ in range(2):  # also what the first try left behind is no store
        said = controller(hosts, 1, conf)
        assert "there is nothing in" in said and "berth-authority.pem is the authority of a cluster" in said, said
        assert "berth restore" in said and "--accept-loss" in said
    assert (conf.parent / "berth-authority.pem").read_text() == (hosts[0].home / "berth-authority.pem").read_text()
    # Without that file it begins a cluster of its own, which is none for the nodes of this one.
    other = conf_of(hosts, 1, "other", new="SlurmctldHost=h1", authority=False)
    hosts[1].spawn(cluster.bin_dir() / "berthctld", "-f", other, "--foreground", log="other-controller.log")
    process = hosts[1].started[-1]
    agent = None
    try:
        cluster.until(lambda: hosts[1].run("scontrol", "ping", check=False, SLURM_CONF=str(other)).returncode == 0,
                      what="the other controller")
        end(hosts[2].agent)
        moved = conf_of(hosts, 2, "moved", new="SlurmctldHost=h1")
        agent = hosts[2].spawn(cluster.bin_dir() / "berthd", "-f", moved, "--foreground", log="moved-agent.log")
        cluster.until(lambda: "no controller at h1:6817: " in (hosts[2].home / "moved-agent.log").read_text(),
                      what="the agent's refusal")
        assert "*" in hosts[1].run("sinfo", "-h", "-n", "h2", "-o", "%t", SLURM_CONF=str(other)).stdout
    finally:
        end(process)
        if agent:
            end(agent)
    hosts.start_agent(2)
    hosts.wait_idle(2)
    still_served(hosts)


def test_a_lost_disk_comes_back_from_a_backup(hosts):
    """What the refused start says is enough: the keys come back too, and no machine has to join again."""
    h0 = hosts[0]
    conf = ("-f", h0.conf)
    file = hosts.directory / "backup"
    job = int(h0.run("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "true").stdout)
    h0.run("berth", "backup", file, *conf)
    end(hosts.controller)
    shutil.rmtree(h0.home / "state")
    said = controller(hosts, 0, h0.conf)
    assert "a backup by `berth restore`" in said, said
    # One that was started all the same has made keys of its own.
    (h0.home / "state").mkdir(exist_ok=True)
    for name in ("cluster.key", "authority.pem"):
        (h0.home / "state" / name).write_text("of another cluster")
        (h0.home / "state" / name).chmod(0o600)
    said = h0.run("berth", "restore", file, *conf).stdout
    for name in ("cluster.key", "authority.pem", "identities"):
        assert f"{name} came from the backup" in said, said
    hosts.start_controller()
    hosts.wait_idle(2)
    still_served(hosts)
    assert int(h0.run("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "true").stdout) > job


def test_another_store_with_the_clusters_keys_is_refused_by_its_agents(hosts):
    """The keys were copied, the jobs were not: agents know better, and say so; the right store is taken again."""
    job = hosts[0].run("sbatch", "--parsable", "-w", "h1", "-o", "/dev/null", "--wrap", "sleep 300").stdout.strip()
    running = lambda: hosts[0].run("squeue", "-h", "-j", job, "-o", "%T", check=False).stdout.strip() == "RUNNING"  # noqa: E731
    cluster.until(running, what="the job")
    end(hosts.controller, signal.SIGKILL)
    home, kept = hosts[0].home, hosts[0].home / "kept"
    (home / "state").rename(kept)
    (home / "state").mkdir(mode=0o700)
    for name in ("cluster.key", "authority.pem", "identities"):
        (home / "state" / name).write_bytes((kept / name).read_bytes())
        (home / "state" / name).chmod(0o600)
    # The run directory remembers how far the store was; that of another machine would not.
    beside = hosts.run_directory(0) / "berth.acked"
    hosts[0].run("mv", beside, str(beside) + ".kept")
    try:
        hosts.start_controller()
        log = home / "berthctld.log"
        cluster.until(lambda: log.read_text().count("belongs to another store (next job") >= 2, what="refusals by both agents")
        assert "`berth restore` of a backup" in log.read_text() and "--accept-loss" in log.read_text()
        assert "belongs to another store" in (hosts[1].home / "berthd.log").read_text()
        lost = hosts[0].run("sbatch", "--parsable", "--wrap", "true").stdout.strip()
        assert hosts[0].run("squeue", "-h", "-j", lost, "-o", "%T").stdout.strip() == "PENDING"
        assert all("*" in state for state in hosts[0].run("sinfo", "-h", "-N", "-o", "%t").stdout.split())
    finally:
        end(hosts.controller)
        (home / "state").rename(home / "wrong")
        kept.rename(home / "state")
        hosts[0].run("mv", str(beside) + ".kept", beside)
    hosts.start_controller()
    cluster.until(running, what="the job, which went on")
    cluster.until(lambda: "*" not in hosts[0].run("sinfo", "-h", "-o", "%t").stdout, what="both nodes")
    hosts[0].run("scancel", job)
    hosts.wait_idle(2)
