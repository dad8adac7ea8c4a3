"""How the Python tests are divided among the processes of pytest-xdist (`pytest -n auto`), and what tests of several folders
share: a folder for sockets, and daemons over TCP."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

# A daemon that ends says goodbye to the connections of its tests, which gRPC would write behind pytest's last line.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

# Tests that use what an earlier one has compiled, by their names: they stay in one process, which has daemons of
# its own. Any other test runs wherever there is time. (Marks of xdist_group would say it at the tests, but have no
# effect with pytest 9.2 and pytest-xdist 3.8.)
KEPT_TOGETHER = [
    (re.compile(r"test_numpy\.py::test_operator\[.*-(\w+)\]$"), "the kernel of all operators of {}"),
    (re.compile(r"(?:test_topi\.py::test_it|test_kernel_text\.py::test_kernels_of_topi)\w+\[(.*)\]$"), "topi {}"),
    (re.compile(r"(test_cpp\.py)::"), "the run of the wrong programs of {}"),
    (re.compile(r"(test_wheels\.py)::"), "the wheels of {}"),
    (re.compile(r"gpu/(test_\w+\.py)::"), "the daemon of {}"),
]


def kept_with(nodeid):
    """What the tests have in common that stay with this one; a test for itself has its own name."""
    for pattern, group in KEPT_TOGETHER:
        found = pattern.search(nodeid)
        if found:
            return group.format(*found.groups())
    return nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class KeepingTogether(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return kept_with(nodeid)

    return KeepingTogether(config, log)


@pytest.fixture
def short_folder():
    """A folder whose path is short enough for a socket."""
    path = tempfile.mkdtemp(prefix="kiln-py-")
    yield pathlib.Path(path)
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def start(program, short_folder):
    """start(*flags) runs kilnd, the `program` of the folder's tests, on a free port and gives its address."""
    running = []

    def run(*flags):
        log = open(short_folder / "log", "wb")
        running.append(subprocess.Popen(
            [program, "--listen", "127.0.0.1:0", "--cache-dir", short_folder / "cache", *flags],
            stdout=subprocess.PIPE, stderr=log, text=True))
        line = running[-1].stdout.readline()
        assert line.startswith("listening on "), (short_folder / "log").read_text()
        return line.split()[-1]

    yield run
    for process in running:
        process.terminate()
        process.wait(timeout=20)
        process.stdout.close()
