"""The client where there is no Linux and no local daemon: it is imported and works with a service elsewhere.

Windows and macOS are played: what they lack is hidden before the package is imported.
"""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAKES = ROOT / "tests" / "client" / "python"

# The libraries it builds on are imported first: they have files of their own for each system.
PLAYED = """
import sys
import grpc, grpc.experimental, ml_dtypes, numpy as np
from google.rpc import error_details_pb2, status_pb2
import os, socket, subprocess, tempfile, uuid, asyncio, multiprocessing, ctypes, urllib.request

HIDDEN = {hidden!r}
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name in HIDDEN:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Hide())
for name in HIDDEN:
    sys.modules.pop(name, None)
for module, names in ((os, {lacking!r}), (socket, {sockets!r})):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
sys.platform = {platform!r}

import kiln
from kiln import te
"""
WINDOWS = {
    "platform": "win32",
    "hidden": ["fcntl", "pwd", "grp", "resource", "termios", "tty", "posix", "syslog"],
    "lacking": ["register_at_fork", "geteuid", "getuid", "fork", "sched_getaffinity", "O_CLOEXEC", "chown"],
    "sockets": ["AF_UNIX"],
}
MACOS = {
    "platform": "darwin",
    "hidden": [],
    "lacking": ["sched_getaffinity", "memfd_create", "pidfd_open"],
    "sockets": ["SO_PEERCRED"],
}
SYSTEMS = pytest.mark.parametrize("system", [WINDOWS, MACOS], ids=["windows", "macos"])


def run_on(system, text, **environment):
    # subprocess is loaded already: it does not look at sys.platform again.
    program = PLAYED.format(**system) + text
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                          env={"PATH": "/usr/bin:/bin", **environment})


@pytest.fixture
def address():
    """A fake daemon on a port of this machine."""
    sys.path.insert(0, str(FAKES))
    try:
        from fake_daemon import FakeDaemon
    finally:
        sys.path.remove(str(FAKES))
    daemon = FakeDaemon("127.0.0.1:0")
    yield daemon.address
    daemon.stop()


@SYSTEMS
def test_a_service_elsewhere_serves_it(system, address):
    done = run_on(system, "print(kiln.nd.array([1.0, 2.0]).numpy().tolist())", KILN_ADDRESS=address)
    assert (done.stdout, done.stderr) == ("[1.0, 2.0]\n", "")


@SYSTEMS
def test_without_an_address_it_says_what_to_do(system):
    done = run_on(system, """
try:
    kiln.describe()
except kiln.Unavailable as error:
    print(error.reason, error.message)
""")
    assert (done.stdout, done.stderr) == (
        "NO_DAEMON kilnd runs on Linux alone, so there is no private daemon here: name a running service in "
        'KILN_ADDRESS, or with kiln.connect("HOST:PORT")\n', "")


def test_every_module_is_python_3_9():
    """By what the language and its library had then; the dependencies have minimal versions of their own."""
    done = subprocess.run(
        [pathlib.Path(sys.executable).parent / "vermin", "--target=3.9-", "--no-tips", "--violations", "--eval-annotations",
         str(ROOT / "client" / "python" / "kiln"), str(ROOT / "deploy" / "daemon_wheel")],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
