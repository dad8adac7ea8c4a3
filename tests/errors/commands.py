"""Runs the commands of the catalogue."""

import json
import os
import pathlib
import shlex
import shutil
import subprocess

import numpy as np


def find_kiln():
    """The command line program beside the daemon, or on PATH."""
    daemon = os.environ.get("KILN_DAEMON") or shutil.which("kilnd") or ""
    beside = pathlib.Path(daemon).with_name("kiln")
    return str(beside) if beside.exists() else shutil.which("kiln")


def write_files(files, folder):
    """The files of an entry: arrays are written as the expression in their text makes them."""
    for name, text in files.items():
        if name.endswith(".npy"):
            np.save(folder / name, eval(text, {"np": np}))
        else:
            (folder / name).write_text(text)


def run_command(entry, folder, address, *flags):
    """The command, run in `folder` with a service at `address`."""
    write_files(entry.files, folder)
    command = [find_kiln(), *shlex.split(entry.program)[1:], *flags]
    environment = {**os.environ, "KILN_ADDRESS": address, "NO_COLOR": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


def error_of(entry, folder, address):
    """(exit code, what --json prints of the error)."""
    done = run_command(entry, folder, address, "--json")
    assert done.stderr == "", done.stderr
    return done.returncode, json.loads(done.stdout)["error"]
