"""The table of habits: each line of code does what the table says, and docs/habits.md is that table."""

import ast
import asyncio
import copy
import importlib.util
import inspect
import math
import pathlib
import pickle

import habits
import numpy as np
import pytest

import kiln
from kiln import te, tir, topi

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = [(title, code, result) for title, rows in habits.GROUPS for code, result in rows]


@pytest.fixture
def names(shared_daemon):
    """What a line of the table finds: arrays, tensors, a function, modules."""
    values = habits.VALUES.copy()
    A = te.placeholder((2, 2), name="A")
    B = te.compute((2, 2), lambda i, j: A[i, j] * 2, name="B")
    f = shared_daemon.build([A, B], name="double")
    x, y = shared_daemon.array(values), shared_daemon.array(values.T)
    modules = {module.__name__: module for module in (asyncio, copy, inspect, math, pickle)}
    own = {"np": np, "kiln": kiln, "tvm": kiln, "te": te, "tir": tir, "topi": topi, "awaited": habits.awaited}
    return {**modules, **own, "v": values, "x": x, "y": y, "A": A, "B": B, "f": f}


def result_of(code, names):
    """The value of the last expression."""
    *before, last = ast.parse(code).body
    if not isinstance(last, ast.Expr):
        exec(code, names)
        return None
    exec(compile(ast.Module(before, []), "habit", "exec"), names)
    return eval(compile(ast.Expression(last.value), "habit", "eval"), names)


def same(found, expected):
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for each in zip(found, expected):
            same(*each)
    elif isinstance(expected, (str, list, kiln.Device)):
        assert found == expected
    else:
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("title, code, result", ROWS, ids=[f"{title}: {code}" for title, code, _ in ROWS])
def test_a_habit(names, title, code, result):
    if isinstance(result, habits.Says):
        with pytest.raises(Exception) as caught:
            result_of(code, names)
        assert getattr(caught.value, "message", str(caught.value)) == result
    else:
        expected = eval(result, {**names, "v": habits.VALUES.copy()})
        same(result_of(code, names), expected)


def test_arrays_of_jax(names):
    jax = pytest.importorskip("jax")
    jnp, x, v, f = jax.numpy, names["x"], names["v"], names["f"]
    same(jnp.dot(jnp.asarray(x), jnp.asarray(x)), v @ v)
    same(jnp.ones((2, 2)) + x, v + 1)
    same(jax.dlpack.from_dlpack(x), v)
    same(jnp.zeros(2, x.dtype), np.zeros(2, "float32"))
    same(f(jnp.asarray(v)), v * 2)
    same(kiln.nd.from_dlpack(jnp.asarray(v)), v)


def test_tensors_of_torch(names):
    torch = pytest.importorskip("torch")
    x, v, f = names["x"], names["v"], names["f"]
    same(torch.from_dlpack(x), v)
    same(torch.asarray(x.numpy()) + 1, v + 1)
    same(f(torch.from_numpy(v)), v * 2)
    same(kiln.nd.from_dlpack(torch.from_numpy(v)), v)


def test_the_page_is_the_table():
    spec = importlib.util.spec_from_file_location("generate_habits", ROOT / "docs/generate_habits.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs/habits.md").read_text() == module.page()
    assert len(ROWS) >= 60
