"""What type checkers and editors see of the package: stubs that are the modules' own, and that mypy and pyright agree with."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import kiln

ROOT = pathlib.Path(__file__).resolve().parents[3]
TYPED = pathlib.Path(__file__).parent / "typed"


def mypy(folder, file, *flags):
    # What mypy knows of numpy and the library stays from test to test and from run to run, apart for each process of pytest.
    cache = ROOT / "build" / "mypy" / "-".join([os.environ.get("PYTEST_XDIST_WORKER", "one"), *flags])
    command = [sys.executable, "-m", "mypy", "--cache-dir", cache, *flags, file]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    return {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}, done.stdout + done.stderr


def pyright(folder, file):
    config = {"include": [str(file)], "typeCheckingMode": "standard"}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "basedpyright", "-p", folder, "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {row["range"]["start"]["line"] + 1 for row in found if row["severity"] == "error"}, done.stdout + done.stderr


def checked(folder, file):
    """The lines that each checker finds something wrong with, and what it said."""
    pytest.importorskip("mypy")
    pytest.importorskip("basedpyright")
    return mypy(folder, file), pyright(folder, file)


def test_the_stubs_are_those_of_the_modules():
    script = ROOT / "client/python/generate_stubs.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_package_says_that_it_has_types():
    package = pathlib.Path(kiln.__file__).parent
    assert (package / "py.typed").exists() and (package / "_stubs.pyi").exists()


def test_a_program_without_mistakes_has_none_for_checkers(tmp_path):
    for lines, said in checked(tmp_path, TYPED / "right.py"):
        assert lines == set(), said


def test_strict_checkers_take_the_stubs_themselves(tmp_path):
    pytest.importorskip("mypy")
    lines, said = mypy(tmp_path, TYPED / "right.py", "--strict")
    assert lines == set(), said


def test_checkers_find_every_mistake(tmp_path):
    file = TYPED / "wrong.py"
    wrong = {number for number, line in enumerate(file.read_text().splitlines(), 1) if "# <-" in line}
    assert len(wrong) == 10
    for lines, said in checked(tmp_path, file):
        assert lines == wrong, said


@pytest.mark.parametrize("example", sorted((ROOT / "examples/python").glob("*.py")), ids=lambda path: path.stem)
def test_examples_have_no_mistakes_for_mypy(tmp_path, example):
    pytest.importorskip("mypy")
    lines, said = mypy(tmp_path, example)
    assert lines == set(), said
