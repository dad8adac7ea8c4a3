"""Fixtures of the client's tests: a fake daemon for what is the client's own, kilnd for the rest."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from fake_daemon import FakeDaemon

import kiln

ROOT = pathlib.Path(__file__).resolve().parents[3]


def find_program(name):
    """A program of this tree: where the test command says, on PATH, or in a build folder."""
    named = os.environ.get("KILN_DAEMON")
    candidates = [pathlib.Path(named).parent / name] if named else []
    on_path = shutil.which(name)
    if on_path:
        candidates.append(pathlib.Path(on_path))
    candidates += sorted(ROOT.glob(f"build/*/bin/{name}"))
    return next((path for path in candidates if path.exists()), None)


@pytest.fixture
def short_folder():
    """A folder whose path is short enough for a socket."""
    path = tempfile.mkdtemp(prefix="kiln-py-")
    yield pathlib.Path(path)
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def fake(short_folder):
    """A fake daemon, and the default connection to it."""
    daemon = FakeDaemon(f"unix:{short_folder}/fake.sock")
    daemon.connection = kiln.connect(daemon.address)
    yield daemon
    daemon.connection.close()
    daemon.stop()


@pytest.fixture(scope="session")
def kilnd():
    """A real daemon for all tests that only call it."""
    program = find_program("kilnd")
    if program is None:
        pytest.skip("no kilnd was found: build it, or set KILN_DAEMON")
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
