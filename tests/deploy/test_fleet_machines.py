"""A fleet on three hosts, which are network namespaces, behind one name: what a client on a fourth sees of a host whose
network is gone, and of one that drains."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from deployed import permitted
from fleets import wait_until

HOSTS = 3

# Calls without end from eight threads; for each line it reads it says how they went.
CLIENT = """
import json, sys, threading
import numpy as np
import kiln
from kiln import te
from kiln._service import connection

credentials = sys.argv[1]
# A host that is gone is noticed within eleven seconds instead of thirty.
sooner = {"grpc.keepalive_time_ms": 10_000, "grpc.keepalive_timeout_ms": 1000}
connection._OPTIONS[:] = [(name, sooner.get(name, value)) for name, value in connection._OPTIONS]
fleet = kiln.Fleet("kiln.test:7411", open(credentials + "/token").read().strip(), credentials + "/cert.pem", "kiln")
x, done, failed = np.arange(4, dtype="float32"), [0] * 8, []

def call(number):
    A = te.placeholder((4,), name="A")
    f = fleet.build([A, te.compute((4,), lambda i: A[i] + float(number), name="B")], name=f"add_{number}")
    while True:
        try:
            assert np.array_equal(f(x), x + number)
            done[number] += 1
        except Exception as error:
            failed.append(f"{type(error).__name__}: {error}")

for number in range(8):
    threading.Thread(target=call, args=(number,), daemon=True).start()
for line in sys.stdin:
    print(json.dumps({"done": done, "failed": failed, "up": fleet.servers}), flush=True)
"""


@pytest.fixture
def network():
    """The names of the hosts' namespaces and that of the client's, where kiln.test is all of them."""
    if shutil.which("ip") is None:
        pytest.skip("there is no ip (iproute2)")
    hosts = [f"kiln{os.getpid() % 10000}h{number}" for number in range(HOSTS)]
    client = f"kiln{os.getpid() % 10000}c"
    names = pathlib.Path("/etc/netns") / client
    made = []
    try:
        for name in (client, *hosts):
            permitted("ip", "netns", "add", name)
            made.append(name)
        names.mkdir(parents=True)
        (names / "hosts").write_text("".join(f"10.118.0.{number + 1} kiln.test\n" for number in range(HOSTS)))
        here = ["ip", "-n", client]
        permitted(*here, "link", "add", "bridge", "type", "bridge")
        permitted(*here, "addr", "add", "10.118.0.100/24", "dev", "bridge")
        for number, name in enumerate(hosts):
            permitted(*here, "link", "add", f"h{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            permitted(*here, "link", "set", f"h{number}", "master", "bridge", "up")
            permitted("ip", "-n", name, "addr", "add", f"10.118.0.{number + 1}/24", "dev", "eth0")
            permitted("ip", "-n", name, "link", "set", "eth0", "up")
        permitted(*here, "link", "set", "bridge", "up")
        yield hosts, client
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name])
        shutil.rmtree(names, ignore_errors=True)


def inside(name, *command, **options):
    return subprocess.Popen(["ip", "netns", "exec", name, *map(str, command)], text=True, **options)


class Client:
    def __init__(self, name, credentials):
        self._process = inside(name, sys.executable, "-c", CLIENT, credentials, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def state(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def up(self):
        return [up for _, up in sorted(self.state()["up"].items())]

    def go_on(self):
        """Waits until each thread has had some more calls, all of them well."""
        before = self.state()["done"]
        wait_until(lambda: self.state()["failed"] or all(
            now > then + 5 for now, then in zip(self.state()["done"], before)))
        assert self.state()["failed"] == []

    def end(self):
        self._process.kill()
        self._process.communicate()


def test_calls_go_on_when_a_host_is_cut_off_and_when_one_drains(programs, short_folder, network):
    hosts, here = network
    servers = []
    for name in hosts:  # the first makes the token and the certificate
        server = inside(name, programs / "bin" / "kilnd", "--listen", "0.0.0.0:7411", "--threads", "1", "--credentials",
                        short_folder / "credentials", "--cache-dir", short_folder / name, "--log-level", "error",
                        stdout=subprocess.PIPE)
        servers.append(server)
        assert server.stdout.readline().startswith("listening on ")
    client = Client(here, short_folder / "credentials")
    try:
        client.go_on()
        assert client.up() == [True, True, True]
        subprocess.run(["ip", "-n", here, "link", "set", "h0", "down"], check=True)
        wait_until(lambda: client.up() == [False, True, True])
        client.go_on()
        subprocess.run(["ip", "-n", here, "link", "set", "h0", "up"], check=True)
        wait_until(lambda: client.up() == [True, True, True])
        servers[1].send_signal(signal.SIGTERM)
        assert servers[1].wait(timeout=60) == 0
        client.go_on()
        assert client.up() == [True, False, True]
    finally:
        client.end()
        for server in servers:
            if server.poll() is None:
                server.terminate()
                server.wait()
            server.stdout.close()
