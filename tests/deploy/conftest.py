"""What the tests of packages, images and fleets share: the tree, its programs, environments of their own."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def version():
    return (ROOT / "VERSION").read_text().strip()


@pytest.fixture(scope="session")
def programs():
    """The folder with bin and libexec of what was built."""
    daemon = os.environ.get("KILN_DAEMON")
    if not daemon:
        pytest.skip("KILN_DAEMON names no kilnd")
    return pathlib.Path(daemon).resolve().parent.parent


@pytest.fixture(scope="session")
def clean_environment():
    """The environment of somebody who has nothing of Kiln: without its variables, and without this tree on PATH."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("KILN_") and name not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")}
    return {**kept, "PATH": "/usr/local/bin:/usr/bin:/bin"}


def run(*command, **options):
    """A command that must succeed; its output."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def new_venv(folder):
    """A virtual environment with nothing in it; its python."""
    run(sys.executable, "-m", "venv", folder)
    return folder / "bin" / "python"
