"""Every wrong program of the catalogue gets its sentence at its line, and does no harm."""

import re

import numpy as np
import pytest
from catalogue import SECTIONS

from commands import error_of, run_command

import kiln
from kiln._base import source

ENTRIES = [(section.key, entry) for section in SECTIONS for entry in section.entries]


def entries(*keys, but=()):
    """Parametrizes by the entries of these sections, or of all `but` some."""
    chosen = [(key, e) for key, e in ENTRIES if key not in but and (not keys or key in keys)]
    return pytest.mark.parametrize(
        "entry", [entry for _, entry in chosen], ids=[f"{key}/{entry.name}" for key, entry in chosen]
    )


def expect_sentence(entry):
    """Runs the wrong program, once; returns the error, which says what the catalogue does."""
    with pytest.raises(kiln.Error) as caught:
        run(entry)
    error = caught.value
    assert entry.is_said(error.message, arch=daemon_arch()), error.message
    assert (error.kind, error.reason) == (entry.kind, entry.reason)
    assert isinstance(error, getattr(kiln, entry.kind))
    assert tuple(error.notes[: len(entry.notes)]) == entry.notes
    if entry.line is not None:
        assert place_of(error, entry.file) == (entry.file, entry.line)
    return error


def daemon_arch():
    return kiln.describe()["devices"][0]["arch"]


def run(entry):
    """Runs the wrong program."""
    if callable(entry.program):
        return entry.program()
    for kernel in kiln.parse_kernels(entry.program, entry.file).values():
        f = kiln.build(kernel, target=entry.target)
        if entry.call:
            f(*(eval(each, {"np": np}) for each in entry.call))


def frames_of(error):
    """(file, line) of each frame of the traceback, the user's call first."""
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return frames


def place_of(error, file):
    """The line an error names: its own, else that of the user's call."""
    if error.line:
        return error.file, error.line
    return [frame for frame in frames_of(error) if frame[0] == file][-1]


@entries(but=["command_line", "cpp_programs", "service", "streams"])
def test_a_wrong_program_gets_its_sentence_and_the_users_traceback(daemon, unharmed, entry):
    error = expect_sentence(entry)
    assert sum(source.is_ours(file) for file, _ in frames_of(error)) <= 2
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    unharmed()


@entries("service", "streams")
def test_a_wrong_request_gets_its_sentence(daemon, unharmed, entry):
    expect_sentence(entry)
    unharmed()


@entries("command_line")
def test_a_wrong_command_gets_its_sentence(daemon, unharmed, entry, tmp_path):
    code, error = error_of(entry, tmp_path, daemon.address)
    assert entry.is_said(error["message"]), error["message"]
    assert (error["kind"], error["reason"], code) == (entry.kind, entry.reason, entry.exit_code)
    printed = run_command(entry, tmp_path, daemon.address)
    assert (printed.stdout, printed.returncode) == ("", entry.exit_code)
    assert printed.stderr.splitlines()[0] == "error: " + error["message"]
    if error["line"]:
        line = (tmp_path / error["file"]).read_text().splitlines()[error["line"] - 1]
        assert f"  at {error['file']}:{error['line']}\n" in printed.stderr
        assert line.strip() in printed.stderr and "^" in printed.stderr
    unharmed()


def test_the_catalogue_is_a_table():
    assert len(ENTRIES) >= 250
    names = [(key, entry.name) for key, entry in ENTRIES]
    assert len(set(names)) == len(names)
    for _, entry in ENTRIES:
        assert re.fullmatch("[A-Z][A-Z0-9_]+", entry.reason), entry.name
        assert entry.fix and entry.says, entry.name
        assert entry.says.endswith("...") or not entry.says.endswith("."), entry.name
        assert "internal" not in entry.says and entry.kind != "Internal", entry.name
