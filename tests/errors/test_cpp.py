"""Every wrong program in C++ gets its sentence at its line, and does no harm."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest
from catalogue import cpp_programs

ENTRIES = cpp_programs.wrong.entries


@pytest.fixture(scope="module")
def said(service):
    """What the client says of each program, by name."""
    beside = pathlib.Path(os.environ.get("KILN_DAEMON") or shutil.which("kilnd")).with_name("kiln_wrong_programs")
    environment = {**os.environ, "KILN_ADDRESS": service.address}
    done = subprocess.run([beside], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    lines = map(json.loads, done.stdout.splitlines())
    return {line["name"]: line for line in lines}


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.name for entry in ENTRIES])
def test_a_wrong_program_gets_its_sentence(said, service, unharmed, entry):
    error = said[entry.name]
    assert entry.is_said(error["message"], arch=service.describe()["devices"][0]["arch"]), error["message"]
    assert (error["kind"], error["reason"]) == (entry.kind, entry.reason)
    assert tuple(error["notes"][: len(entry.notes)]) == entry.notes
    unharmed()


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.name for entry in ENTRIES])
def test_an_error_names_the_line_of_the_program(said, entry):
    error = said[entry.name]
    if entry.line is None:
        assert not error["file"].endswith("_client.cc") and "client/cpp" not in error["file"]
        return
    assert (pathlib.Path(error["file"]).name, error["line"]) == (pathlib.Path(entry.file).name, entry.line)
    assert error["what"].endswith(f"\n  at {error['file']}:{entry.line}")


def test_every_program_has_a_row(said):
    assert list(said) and set(said) == {entry.name for entry in ENTRIES}
