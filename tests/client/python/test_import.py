"""Importing the package where something of its surroundings is missing."""

import subprocess
import sys

WITHOUT_METADATA = """
import importlib.metadata

def version(name):
    raise importlib.metadata.PackageNotFoundError(name)

importlib.metadata.version = version
import kiln
import os
print(os.environ.get("GRPC_EXPERIMENTS"), kiln.te.var("n"))
"""


def test_a_packed_program_has_no_metadata_of_its_packages(monkeypatch):
    monkeypatch.delenv("GRPC_EXPERIMENTS", raising=False)
    done = subprocess.run([sys.executable, "-c", WITHOUT_METADATA], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "None n\n", "")
