"""Where the tree is, and how its tests of packages run commands."""

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
TOOLS = pathlib.Path(sys.executable).parent


def version():
    return (ROOT / "VERSION").read_text().strip()


def run(*command, **options):
    """A command that must succeed; its output."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def new_venv(folder):
    """A virtual environment with nothing in it; its python."""
    run(sys.executable, "-m", "venv", folder)
    return folder / "bin" / "python"


def needs(tool):
    """The tool, if this machine has it."""
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}")
    return tool


def permitted(*command):
    """Runs what makes a network; where that is not allowed, as in many containers, the test is skipped."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"networks are not made here: {' '.join(command)}: {done.stderr.strip()}")
