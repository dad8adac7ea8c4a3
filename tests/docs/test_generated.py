"""Pages made from other files are what these give, and the notebook runs from top to bottom."""

import ast
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from kiln import topi

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("script, page", [("generate_wire.py", "wire.md"), ("generate_topi.py", "topi.md"), ("generate_api.py", "api.md"),
                                          ("generate_notebook.py", "first_steps.ipynb")])
def test_a_page_is_what_its_script_writes(script, page):
    made = subprocess.run([sys.executable, ROOT / "docs" / script], check=True, capture_output=True, text=True).stdout
    assert (ROOT / "docs" / page).read_text() == made, f"python3 docs/{script} > docs/{page}"


def test_pictures_are_what_their_script_draws():
    if "KILN_DAEMON" not in os.environ:
        pytest.skip("KILN_DAEMON names no kilnd with a kiln beside it")
    subprocess.run([sys.executable, ROOT / "docs/generate_pictures.py", "--check"], check=True)


def test_every_operator_of_topi_is_beside_numpy():
    page = (ROOT / "docs/topi_speed.md").read_text()
    rows = {name.split()[0] for name in re.findall(r"^\| `([^`]+)` \|", page, re.M)}
    for module, prefix, others in ((topi, "", {"cuda", "generic", "nn", "random", "tag", "util", "utils", "x86"}),
                                   (topi.nn, "nn.", set()), (topi.random, "random.", {"threefry_test_wrapping"})):
        names = {}  # of each function, since some have several
        for name in set(module.__all__) - others:
            names.setdefault(getattr(module, name), []).append(prefix + name)
        assert [each for each in names.values() if not rows & set(each)] == []
    assert " nan " not in page


def test_every_field_of_the_wire_has_a_row():
    page = (ROOT / "docs/wire.md").read_text()
    numbered = 0
    for path in (ROOT / "proto/kiln/v1").glob("*.proto"):
        for line in path.read_text().splitlines():
            name, equals, rest = line.split("//")[0].strip().rpartition(" = ")
            if equals and rest.split(";")[0].split(" [")[0].isdigit() and not name.startswith(("option", "reserved")):
                numbered += 1
                assert f"`{name.split()[-1]}`" in page, f"{path.name}: {line.strip()}"
    assert numbered > 300


def test_tests_that_pages_name_are_there():
    defined = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for page in (ROOT / "docs").rglob("*.md"):
        if page.name == "te_tests.md":  # which names TVM's
            continue
        for name in re.findall(r"`(test_\w+)`", page.read_text()):
            assert f"def {name}(" in defined, f"{page.name} names {name}"


def test_the_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = json.loads((ROOT / "docs/first_steps.ipynb").read_text())["cells"]
    names, shown = {}, []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        *before, last = ast.parse("".join(cell["source"])).body
        if isinstance(last, ast.Expr) and not isinstance(last.value, ast.Call | ast.Constant):
            exec(compile(ast.Module(before, []), "notebook", "exec"), names)
            shown.append(eval(compile(ast.Expression(last.value), "notebook", "eval"), names))
        else:
            exec(compile(ast.Module([*before, last], []), "notebook", "exec"), names)
    first, value = shown[-1]
    assert value < first
