"""A real daemon for each test that asks for one; found by KILN_DAEMON, as clients find it."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import kiln


def find_daemon():
    found = os.environ.get("KILN_DAEMON") or shutil.which("kilnd")
    if not found:
        pytest.fail("KILN_DAEMON does not name a kilnd, and none is on PATH")
    return found


class Daemon:
    """kilnd on a socket of its own, its log in a file, and a connection to it."""

    def __init__(self, folder, threads=None, cache=None, limits=None, flags=(), environment=None):
        self.folder = pathlib.Path(folder)
        self.cache = pathlib.Path(cache) if cache else self.folder / "cache"
        self.log = self.folder / f"kilnd-{time.monotonic_ns()}.log"
        command = [find_daemon(), "--listen", f"unix:{self.folder}/kilnd.sock",
                   "--cache-dir", str(self.cache)]
        if threads:
            command += ["--threads", str(threads)]
        if limits:
            config = self.folder / "kilnd.toml"
            config.write_text("[limits]\n" + "".join(f"{name} = {value}\n" for name, value in limits.items()))
            command += ["--config", str(config)]
        command += flags
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open(self.log, "wb"), text=True,
                                        env={**os.environ, **(environment or {})})
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), line + self.log.read_text()
        self.address = line.removeprefix("listening on ").strip()
        self.connection = kiln.connect(self.address)

    def children(self, role):
        """Process ids of the daemon's workers ("kiln-worker") or compilers ("kiln-compiler")."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                command = (entry / "cmdline").read_bytes().split(b"\0")[0].decode()
            except (OSError, IndexError):
                continue
            if parent == self.process.pid and os.path.basename(command) == role:
                found.append(int(entry.name))
        return found

    def stop(self):
        """Ends it as an operator would, and returns its exit code."""
        self.connection.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=20)
        self.process.stdout.close()
        return code


@pytest.fixture
def folder():
    # A socket's path must be short, which pytest's own folders are not.
    path = tempfile.mkdtemp(prefix="kiln-e2e-")
    yield pathlib.Path(path)
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def start(folder):
    """start(threads=, cache=, limits=, flags=, environment=) gives a Daemon; all that run are stopped at the end."""
    running = []

    def make(**options):
        daemon = Daemon(folder, **options)
        running.append(daemon)
        return daemon

    yield make
    for daemon in running:
        if daemon.process.poll() is None:
            daemon.stop()


@pytest.fixture
def daemon(start):
    return start()


@pytest.fixture(scope="session")
def shared_daemon():
    """The connection to one daemon, for all tests that only ask it for kernels."""
    path = tempfile.mkdtemp(prefix="kiln-e2e-")
    daemon = Daemon(path)
    yield daemon.connection
    assert daemon.stop() == 0
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def service(shared_daemon):
    """The default connection, to the shared daemon."""
    with kiln.connect(shared_daemon.address) as connection:
        yield connection
