"""The whole models of examples/models, small, each against its reference in numpy."""

import os
import pathlib
import subprocess
import sys

import pytest

MODELS = pathlib.Path(__file__).parents[2] / "examples/models"


@pytest.mark.parametrize("command", [
    "lstm.py --steps 5 --batch 2 --hidden 24", "gpt2.py --tokens 20 --layers 2 --width 128 --words 100",
    "resnet.py --batch 2 --size 40",
], ids=lambda command: command.split(".")[0])  # fmt: skip
def test_it_is_what_numpy_says(shared_daemon, command):
    name, *flags = command.split()
    done = subprocess.run(
        [sys.executable, MODELS / name, *flags, "--runs", "2"], capture_output=True, text=True, timeout=300,
        env={**os.environ, "KILN_ADDRESS": shared_daemon.address},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "as the reference" in done.stdout and "kernels" in done.stdout
