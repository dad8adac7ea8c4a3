"""Daemons and a Redis that are a fleet, for its tests: started, ended, killed, and called without a pause."""

import collections
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request

import grpc
import numpy as np
from deployed import needs

from kiln import te


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def wait_until(condition, seconds=60):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.02)


class Server:
    """`ready` is the address of its probe, where gRPC asks for a token."""

    def __init__(self, program, folder, *flags, ready=None):
        folder.mkdir()
        self._ready = ready
        self.log = folder / "log"
        self.address = f"127.0.0.1:{free_port()}"
        self.command = [program, "--listen", self.address, "--cache-dir", folder / "cache", "--threads", "1", *flags]
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout.readline() == f"listening on {self.address}\n", self.log.read_text()
        wait_until(self._serves)

    def _serves(self):
        """Whether its canary kernel has run."""
        if self._ready:
            try:
                return urllib.request.urlopen(self._ready).status == 200
            except OSError:  # a 503 is one, too
                return False
        with grpc.insecure_channel(self.address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            try:
                return channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=10) == b"\x08\x01"
            except grpc.RpcError:
                return False

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        return code

    def is_running(self):
        return self.process.poll() is None


def end_all(servers):
    running = [server for server in servers if server.is_running()]
    for server in running:
        server.process.terminate()
    for server in running:
        server.end()


class Redis:
    def __init__(self):
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        command = [shutil.which(needs("redis-server")), "--port", str(self.port), "--save", "", "--bind", "127.0.0.1"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_until(lambda: self._answers())

    def _answers(self):
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0

    def end(self):
        self.process.kill()
        self.process.wait()


def kernel(fleet, number=1):
    """A + number, of four elements."""
    A = te.placeholder((4,), name="A")
    return fleet.build([A, te.compute((4,), lambda i: A[i] + float(number), name="B")], name=f"add_{number}")


def right(function, number=1):
    return np.array_equal(function(np.arange(4, dtype="float32")), np.arange(4) + np.float32(number))


def counted(fleet, counter):
    """A counter of each server that answers, by address."""
    return {address: described[counter] for address, described in fleet.describe().items()}


def total(fleet, counter):
    return sum(counted(fleet, counter).values())


class Callers:
    """Calls without end, a thread a kernel, and what failed of them."""

    def __init__(self, fleet, kernels=8):
        self.done, self.failed = collections.Counter(), []
        self._over = threading.Event()
        functions = [(number, kernel(fleet, number)) for number in range(kernels)]
        self._threads = [threading.Thread(target=self._call, args=each) for each in functions]

    def _call(self, number, function):
        while not self._over.is_set():
            try:
                assert right(function, number)
                self.done[number] += 1
            except Exception as error:
                self.failed.append(error)
                return

    def go_on(self, calls=5):
        """Waits until each has had so many more."""
        wanted = {number: self.done[number] + calls for number in range(len(self._threads))}
        wait_until(lambda: self.failed or all(self.done[number] >= count for number, count in wanted.items()))
        assert self.failed == []

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.go_on()
        return self

    def __exit__(self, *exception):
        self._over.set()
        for thread in self._threads:
            thread.join()
