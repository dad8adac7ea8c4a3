"""The committed tables are those of the language."""

import importlib.util
import json
import subprocess

import pytest
from tree import ROOT, find_program

import kiln
from kiln import _tables, te


def generator(path="client/python/generate_tables.py"):
    specification = importlib.util.spec_from_file_location("generator", ROOT / path)
    generate = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(generate)
    return generate


def printed(*files):
    program = find_program("kiln-tables")
    if program is None:
        pytest.skip("no kiln-tables was found: build it, or set KILN_DAEMON to a program beside it")
    run = subprocess.run([program, *files], check=True, capture_output=True, timeout=20)
    return json.loads(run.stdout)


def test_a_kernel_file_that_is_not_there_is_named():
    with pytest.raises(subprocess.CalledProcessError) as caught:
        printed("nosuch.kiln")
    assert caught.value.stderr == b"error: nosuch.kiln cannot be read\n"


def test_the_tables_are_those_that_kiln_tables_prints():
    committed = (ROOT / "client/python/kiln/_tables.py").read_text()
    assert generator().module_text(printed()) == committed


def test_the_operator_definitions_are_those_of_the_kernel_files():
    files = sorted((ROOT / "compiler/operators").glob("*.kiln"))
    assert len(files) >= 8
    committed = (ROOT / "client/python/kiln/_operator_tables.py").read_text()
    assert generator().definitions_text(printed(*files)) == committed


def test_the_page_of_operators_is_what_the_package_says():
    assert generator("docs/generate_operators.py").page() == (ROOT / "docs/operators.md").read_text()


def test_every_operator_and_reducer_of_the_tables_is_in_te_and_at_the_root():
    for name in [row[0] for row in _tables.OPERATORS] + [row[0] for row in _tables.COMBINERS]:
        assert callable(getattr(te, name))
        assert getattr(kiln, name) is getattr(te, name)


def test_every_step_of_the_table_is_a_method_with_a_docstring():
    for name, *_, stage, _, _ in _tables.STEPS:
        assert getattr(te.Schedule if stage else te.Stage, name).__doc__.endswith("."), name


def test_a_step_made_of_its_row_takes_operands_by_position_and_by_name():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j], name="B")
    s = te.create_schedule(B.op)
    s[B].software_pipeline(B.op.axis[0], stages=2)
    s[B].software_pipeline(var=B.op.axis[1], stages=3)
    assert s.text() == "schedule cpu {\n  software_pipeline(B.i, stages=2)\n  software_pipeline(B.j, stages=3)\n}\n"
    with pytest.raises(TypeError, match="missing a required argument: 'stages'"):
        s[B].software_pipeline(B.op.axis[0])
