"""One version: the file VERSION says it, and programs and packages repeat it."""

import json
import re

from deployed import ROOT, run, version

import kiln


def test_programs_and_package_have_the_trees_version(programs):
    assert kiln.__version__ == version()
    assert run(programs / "bin" / "kilnd", "--version") == f"kilnd {version()}\n"
    shown = json.loads(run(programs / "bin" / "kiln", "version", "--json", env={"XDG_RUNTIME_DIR": "/nowhere"}))
    assert shown["client"] == version()


def test_no_other_file_of_the_build_says_it():
    for name in ("CMakeLists.txt", "client/python/pyproject.toml", "client/python/setup.py", "deploy/Dockerfile",
                 "deploy/daemon_wheel/pyproject.toml", "client/python/kiln/__init__.py"):
        assert not re.search(re.escape(version()), (ROOT / name).read_text()), name
