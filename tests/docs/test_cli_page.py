"""The page of the command line has every command and every flag of it."""

import os
import pathlib
import re
import subprocess

import pytest

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs/cli.md").read_text()


@pytest.fixture(scope="module")
def completion():
    """What the program itself completes: a line for each command and flag."""
    program = pathlib.Path(os.environ.get("KILN_DAEMON", "/nowhere")).parent / "kiln"
    if not program.exists():
        pytest.skip("KILN_DAEMON names no kilnd with a kiln beside it")
    return subprocess.run([program, "completion", "fish"], check=True, capture_output=True, text=True).stdout


def test_every_command_has_a_row(completion):
    commands = set(re.findall(r"__fish_use_subcommand -a ([\w-]+)", completion))
    rows = set(re.findall(r"`([\w-]+)", "".join(line for line in PAGE.splitlines() if line.startswith("| `"))))
    assert {"run", "explain", "doctor"} <= commands
    assert commands - rows - {"completion"} == set()
    assert "kiln completion bash" in PAGE


def test_every_flag_is_named(completion):
    flags = set(re.findall(r"-l ([\w-]+)", completion)) - {"help"}
    assert len(flags) > 20
    assert {flag for flag in flags if f"`--{flag}" not in PAGE and f"--{flag} " not in PAGE and f"--{flag}`" not in PAGE} == set()
