"""Fleets behind HAProxy, on Ray and on Slurm: each recipe of deploy/ as it stands, on this machine."""

import collections
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading

import fleets
import numpy as np
import pytest
from deployed import DEPLOY, needs, run
from fleets import counted, kernel, right, wait_until

import kiln
from kiln import te

X = np.arange(4, dtype="float32")


def answers(address):
    host, port = address.split(":")
    with socket.socket() as tried:
        return tried.connect_ex((host, int(port))) == 0


class Proxied:
    """Three daemons behind a file of deploy/haproxy, with addresses of this machine in place of the names there."""

    def __init__(self, programs, folder, settings="kiln.cfg", changed=(), flags=()):
        self.address = f"127.0.0.1:{fleets.free_port()}"
        text = (DEPLOY / "haproxy" / settings).read_text().replace("bind :7411", f"bind {self.address}")
        for was, now in changed:
            assert was in text
            text = text.replace(was, str(now))
        self.servers = {}
        for name in "abc":
            metrics = fleets.free_port()
            server = fleets.Server(programs / "bin" / "kilnd", folder / name, "--metrics-listen", f"127.0.0.1:{metrics}", *flags,
                                   ready=f"http://127.0.0.1:{metrics}/readyz")
            self.servers[name] = server
            assert f"server {name} {name}:7411" in text
            text = text.replace(f"server {name} {name}:7411", f"server {name} {server.address} port {metrics}")
        (folder / "haproxy.cfg").write_text(text)
        run(needs("haproxy"), "-c", "-f", folder / "haproxy.cfg")
        self.proxy = subprocess.Popen(["haproxy", "-f", folder / "haproxy.cfg"], stderr=subprocess.DEVNULL)
        wait_until(lambda: answers(self.address))

    def end(self):
        self.proxy.terminate()
        self.proxy.wait()
        fleets.end_all(self.servers.values())


@pytest.fixture
def proxied(programs, short_folder):
    needs("haproxy")
    proxied = Proxied(programs, short_folder)
    yield proxied
    proxied.end()


def test_haproxy_gives_each_connection_a_server_and_a_new_one_when_that_is_lost(proxied, programs):
    connections = [kiln.connect(proxied.address, default=False) for _ in range(6)]
    pids = {server.process.pid: server for server in proxied.servers.values()}
    spread = collections.Counter(connection.describe()["pid"] for connection in connections)
    assert set(spread) == set(pids) and max(spread.values()) == 2
    functions = [kernel(connection) for connection in connections]
    failed, over = [], threading.Event()

    def call(function):
        out = np.empty(4, "float32")
        while not over.is_set():
            try:
                function(X, out)
                assert np.array_equal(out, X + 1)
            except Exception as error:
                failed.append(error)
                return

    threads = [threading.Thread(target=call, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    killed = proxied.servers["a"]
    killed.end(signal.SIGKILL)
    wait_until(lambda: killed.process.pid not in {connection.describe()["pid"] for connection in connections})
    drained = proxied.servers["b"]
    assert drained.end() == 0
    last = proxied.servers["c"].process.pid
    wait_until(lambda: {connection.describe()["pid"] for connection in connections} == {last})
    over.set()
    for thread in threads:
        thread.join()
    assert failed == []
    shown = run(programs / "bin" / "kiln", "version", "--address", proxied.address)
    assert shown.endswith(f" at {proxied.address}\n")
    for connection in connections:
        connection.close()


@pytest.fixture
def by_name(programs, short_folder):
    """Daemons behind the proxy that looks at names, with a token and a certificate, and the user's settings to reach them."""
    needs("haproxy")
    made = short_folder / "credentials"
    first = subprocess.Popen([programs / "bin" / "kilnd", "--listen", "127.0.0.1:0", "--cache-dir", short_folder / "first",
                              "--credentials", made, "--log-level", "error"], stdout=subprocess.PIPE)
    first.stdout.readline()
    first.terminate()
    first.communicate()
    (short_folder / "fleet.pem").write_text((made / "cert.pem").read_text() + (made / "key.pem").read_text())
    proxied = Proxied(programs, short_folder, "affinity.cfg", [("fleet.pem", short_folder / "fleet.pem")],
                      ["--tls-cert", made / "cert.pem", "--tls-key", made / "key.pem", "--token-file", made / "token"])
    proxied.trust = {"token": (made / "token").read_text().strip(), "ca": str(made / "cert.pem")}
    yield proxied
    proxied.end()


def test_haproxy_gives_each_name_a_home(by_name, programs):
    def connect(number):
        return kiln.connect(by_name.address, default=False, affinity=f"add {number}", **by_name.trust)

    homes = {}
    for number in range(40):
        with connect(number) as connection:
            array = connection.array(X)  # which lives where the kernel does
            assert np.array_equal(kernel(connection, number)(array).numpy(), X + number)
            homes[number] = connection.describe()["pid"]
    spread = collections.Counter(homes.values())
    assert len(spread) == 3 and min(spread.values()) >= 4, spread

    def home_of(number):
        shown = run(programs / "bin" / "kiln", "doctor", "--address", by_name.address, "--token", by_name.trust["token"], "--ca",
                    by_name.trust["ca"], env={"KILN_AFFINITY": f"add {number}"})
        return int(re.search(r", process (\d+)$", shown, re.M)[1])

    for number in range(40):
        with connect(number) as connection:
            assert connection.describe()["pid"] == homes[number]
    assert [home_of(number) for number in range(4)] == [homes[number] for number in range(4)]

    lost = by_name.servers["a"]
    called = connect(next(number for number, pid in homes.items() if pid == lost.process.pid))
    f = kernel(called, 1)
    assert np.array_equal(f(X).numpy(), X + 1)
    lost.end(signal.SIGKILL)
    assert np.array_equal(f(X).numpy(), X + 1)  # elsewhere
    called.close()
    for number, pid in homes.items():
        with connect(number) as connection:
            assert (connection.describe()["pid"] == pid) == (pid != lost.process.pid)


def start_ray(ray):
    """Ray ends a node of its own that is not up within 30 s, which happens on a machine that is busy."""
    for is_last in (False, False, True):
        try:
            return ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        except Exception:
            ray.shutdown()
            if is_last:
                raise


def test_ray_starts_servers_again_and_clients_find_them(programs, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setenv("KILN_DAEMON", str(programs / "bin" / "kilnd"))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", str(DEPLOY / "ray"))
    sys.path.insert(0, str(DEPLOY / "ray"))
    import kiln_on_ray

    start_ray(ray)
    try:
        with pytest.raises(LookupError, match="there is no kilnd in this Ray cluster: call kiln_on_ray.start first"):
            kiln_on_ray.fleet()
        started = kiln_on_ray.start(servers=2, cpus=1, flags=["--threads", "1"])
        with kiln_on_ray.fleet("round_robin") as fleet:
            assert sorted(fleet.servers) == sorted(started)
            f = kernel(fleet)
            wait_until(lambda: right(f) and all(counted(fleet, "runs").get(address) for address in started))
            actor = ray.get_actor("kilnd-0", "kiln")
            os.kill(ray.get(actor.pid.remote()), signal.SIGKILL)
            # Ray starts it again, elsewhere: the fleet finds it.
            wait_until(lambda: right(f) and len(set(fleet.servers) - set(started)) == 1)
            (new,) = set(fleet.servers) - set(started)
            wait_until(lambda: right(f) and counted(fleet, "runs").get(new))
        pids = [ray.get(ray.get_actor(f"kilnd-{n}", "kiln").pid.remote()) for n in range(2)]
        kiln_on_ray.stop()
        wait_until(lambda: not any(pathlib.Path(f"/proc/{pid}/exe").exists() for pid in pids))
        assert kiln_on_ray.addresses() == []
    finally:
        ray.shutdown()
        sys.path.remove(str(DEPLOY / "ray"))


SLURM = """
ClusterName=test
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={controller}
SlurmdPort={node}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=30
NodeName=localhost CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@pytest.fixture
def slurm(short_folder, programs):
    """A cluster of one node; the environment of somebody who uses it."""
    if os.environ.get("KILN_LONG") != "1":
        pytest.skip("starts a cluster of Slurm, which is not steady on a busy host; KILN_LONG=1 runs it")
    for tool in ("slurmctld", "slurmd", "sbatch", "munged"):
        needs(tool)
    if os.geteuid() != 0:
        pytest.skip("a node of Slurm is root's")
    settings = short_folder / "slurm.conf"
    settings.write_text(SLURM.format(folder=short_folder, controller=fleets.free_port(), node=fleets.free_port(), cpus=os.cpu_count()))
    (short_folder / "key").write_bytes(os.urandom(128))
    (short_folder / "key").chmod(0o400)
    environment = {**os.environ, "SLURM_CONF": str(settings), "PATH": f"{programs / 'bin'}:{os.environ['PATH']}",
                   "KILN_HOST": "127.0.0.1"}
    commands = [["munged", "-F", "-f", f"--socket={short_folder}/munge.socket", f"--key-file={short_folder}/key",
                 f"--pid-file={short_folder}/munge.pid", f"--log-file={short_folder}/munge.log", f"--seed-file={short_folder}/munge.seed"],
                ["slurmctld", "-D", "-i"], ["slurmd", "-D", "-N", "localhost"]]
    started = []
    for command in commands:
        started.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        if command[0] == "munged":
            wait_until(lambda: (short_folder / "munge.socket").exists())
    try:
        wait_until(lambda: "idle" in subprocess.run(["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True,
                                                    text=True).stdout)
        yield environment
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(timeout=30)


FAKE_KILND = """#!/bin/sh
while [ $# -gt 0 ]; do case $1 in --credentials) folder=$2; shift ;; --listen) address=$2; shift ;; esac; shift; done
for name in token cert.pem login; do echo "$name" > "$folder/$name"; done
echo "listening on $address"
case $address in 127.*) ;; *) exec sleep 60 ;; esac
"""
FAKE_SRUN = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
SLURM_JOB_ID=1 SLURM_PROCID=0 exec "$@"
"""


def test_slurm_needs_no_first_daemon_once_the_credentials_are_there(tmp_path):
    """The daemon that makes them may have ended before the script looks at it again, as on a busy host."""
    for name, text in (("kilnd", FAKE_KILND), ("srun", FAKE_SRUN)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "slow").write_text('kill() { builtin kill "$@"; sleep 0.5; }\n')
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "KILN_HOST": "node-1", "BASH_ENV": str(tmp_path / "slow")}
    job = subprocess.Popen(["bash", DEPLOY / "slurm" / "kiln.sbatch", tmp_path / "fleet"], env=environment,
                           stderr=subprocess.PIPE, text=True)
    server = tmp_path / "fleet" / "servers" / "0"
    try:
        wait_until(lambda: server.exists() or job.poll() is not None)
        assert job.poll() is None, job.stderr.read()
        assert server.read_text() == "node-1:0\n"
        job.terminate()
        assert job.wait(timeout=60) == 0
        assert not server.exists()
    finally:
        job.kill()
        job.wait()


def test_slurm_runs_servers_whose_folder_is_all_that_clients_need(slurm, short_folder):
    shared = short_folder / "fleet"
    sys.path.insert(0, str(DEPLOY / "slurm"))
    import kiln_on_slurm

    sys.path.pop(0)
    job = run("sbatch", "--parsable", "--ntasks-per-node=2", f"--output={short_folder}/job.log", DEPLOY / "slurm" / "kiln.sbatch",
              shared, env=slurm).strip()
    log = short_folder / "job.log"
    wait_until(lambda: len(kiln_on_slurm.addresses(shared)) == 2 if (shared / "servers").exists() else False)
    with kiln_on_slurm.fleet(shared, "round_robin") as fleet:
        f = kernel(fleet)
        addresses = kiln_on_slurm.addresses(shared)
        assert right(f), log.read_text()
        wait_until(lambda: right(f) and all(counted(fleet, "runs").get(address) for address in addresses))
        run("scancel", job, env=slurm)
        wait_until(lambda: kiln_on_slurm.addresses(shared) == [])
        wait_until(lambda: not any(fleet.servers.values()))
