"""Fixtures of the client's tests: a fake daemon for what is the client's own, kilnd for the rest."""

import pathlib
import shutil
import subprocess
import tempfile

import pytest
from fake_daemon import FakeDaemon
from tree import find_program

import kiln


@pytest.fixture
def fake(short_folder):
    """A fake daemon, and the default connection to it."""
    daemon = FakeDaemon(f"unix:{short_folder}/fake.sock")
    daemon.connection = kiln.connect(daemon.address)
    yield daemon
    daemon.connection.close()
    daemon.stop()


def found_program():
    found = find_program("kilnd")
    if found is None:
        pytest.skip("no kilnd was found: build it, or set KILN_DAEMON")
    return str(found)


@pytest.fixture
def program():
    """The path of the daemon's program, for tests that start one in a way of their own."""
    return found_program()


@pytest.fixture(scope="session")
def kilnd():
    """A real daemon for all tests that only call it."""
    program = found_program()
    folder = tempfile.mkdtemp(prefix="kiln-py-")
    with open(f"{folder}/kilnd.log", "wb") as log:
        process = subprocess.Popen(
            [program, "--listen", f"unix:{folder}/kilnd.sock", "--cache-dir", f"{folder}/cache"],
            stdout=subprocess.PIPE, stderr=log, text=True)
    line = process.stdout.readline()
    assert line.startswith("listening on "), line + pathlib.Path(folder, "kilnd.log").read_text()
    yield line.removeprefix("listening on ").strip()
    process.terminate()
    assert process.wait(timeout=20) == 0
    process.stdout.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def daemon(kilnd):
    """The default connection, to a real daemon."""
    with kiln.connect(kilnd) as connection:
        yield connection
