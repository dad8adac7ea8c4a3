"""NOTICE names every package whose archives are linked into the programs."""

import re
import subprocess

import pytest
from deployed import ROOT, run


def named():
    return set(re.findall(r"^  ([a-z][a-z0-9+-]+-dev) ", (ROOT / "NOTICE").read_text(), re.M))


def archives(build):
    """The system's archives that the three programs are linked with, by the build's own commands."""
    text = run("ninja", "-C", build, "-t", "commands", "bin/kilnd", "bin/kiln", "libexec/kiln-worker")
    return sorted(set(re.findall(r"(?<=\s)/usr/lib/\S+\.a(?=\s)", text)))


def test_notice_names_what_is_linked(programs):
    if not (programs / "build.ninja").exists():
        pytest.skip(f"{programs} is no build folder")
    linked = archives(programs)
    assert linked, "LLVM at least"
    owners = subprocess.run(["dpkg", "-S", *linked], capture_output=True, text=True).stdout
    packages = set(re.findall(r"^([a-z0-9+-]+)(?::amd64)?: ", owners, re.M))
    assert packages and packages <= named(), f"NOTICE lacks {packages - named()}"
