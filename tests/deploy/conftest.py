"""What the tests of packages, images and first use share: the programs, and the environment of somebody without them."""

import os
import pathlib

import pytest


@pytest.fixture(scope="session")
def programs():
    """The folder with bin and libexec of what was built."""
    daemon = os.environ.get("KILN_DAEMON")
    if not daemon:
        pytest.skip("KILN_DAEMON names no kilnd")
    return pathlib.Path(daemon).resolve().parent.parent


@pytest.fixture(scope="session")
def program(programs):
    """The daemon among them, for the fixture `start`."""
    return programs / "bin" / "kilnd"


@pytest.fixture(scope="session")
def clean_environment():
    """The environment of somebody who has nothing of Kiln: without its variables, and without this tree on PATH."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("KILN_") and name not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")}
    return {**kept, "PATH": "/usr/local/bin:/usr/bin:/bin"}
