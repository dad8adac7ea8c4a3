"""One daemon for the whole catalogue: it has to outlive every wrong program."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
import pytest

import kiln
from kiln import te


@pytest.fixture(scope="session")
def service():
    """A connection to a daemon of the catalogue's own."""
    program = os.environ.get("KILN_DAEMON") or shutil.which("kilnd")
    if not program:
        pytest.fail("KILN_DAEMON does not name a kilnd, and none is on PATH")
    folder = tempfile.mkdtemp(prefix="kiln-errors-")  # a socket's path must be short
    with open(f"{folder}/kilnd.log", "wb") as log:
        process = subprocess.Popen(
            [program, "--listen", f"unix:{folder}/kilnd.sock", "--cache-dir", f"{folder}/cache"],
            stdout=subprocess.PIPE, stderr=log, text=True)
    line = process.stdout.readline()
    assert line.startswith("listening on "), line + pathlib.Path(folder, "kilnd.log").read_text()
    with kiln.connect(line.removeprefix("listening on ").strip(), default=False) as connection:
        yield connection
    process.terminate()
    assert process.wait(timeout=20) == 0
    process.stdout.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def daemon(service):
    """The default connection, to the daemon of the catalogue: tests of other folders may have run since the last."""
    with kiln.connect(service.address) as connection:
        yield connection


@pytest.fixture(scope="session")
def unharmed(service):
    """A function that fails when the daemon or one of its processes was harmed since the beginning."""
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    f = service.build([A, te.compute((n,), lambda i: A[i] * 2, name="B")], name="twice")
    before = service.describe()

    def check():
        now = service.describe()
        assert now["pid"] == before["pid"] and now["boot_id"] == before["boot_id"]
        assert [d["state"] for d in now["devices"]] == [d["state"] for d in before["devices"]]
        np.testing.assert_array_equal(f(np.float32([1, 2])).numpy(), [2, 4])

    return check
