"""What is deployed is checked by the tools of its kind: hadolint, shellcheck, systemd."""

import pathlib
import shutil
import subprocess
import sys

import pytest
from deployed import ROOT

DEPLOY = ROOT / "deploy"
TOOLS = pathlib.Path(sys.executable).parent


def passes(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def needs(tool):
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}")
    return tool


def test_hadolint():
    for name in sorted(DEPLOY.glob("Dockerfile*")):
        passes(TOOLS / "hadolint", name)


def test_shellcheck():
    passes(needs("shellcheck"), *sorted(DEPLOY.glob("*.sh")), *sorted((DEPLOY / "debian").glob("p*")))


def test_the_unit_of_systemd(tmp_path):
    needs("systemd-analyze")
    text = (DEPLOY / "systemd" / "kilnd.service").read_text()
    unit = tmp_path / "kilnd.service"
    unit.write_text(text.replace("/usr/bin/kilnd", "/bin/true"))  # which must exist
    passes("systemd-analyze", "verify", "--man=no", unit)
