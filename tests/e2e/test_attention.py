"""Attention whose scores are never stored: one kernel, whose bytes are its arguments, against numpy and torch."""

import kiln
import ml_dtypes
import numpy as np
import pytest
from kiln import topi

HEADS, PLACES, WIDTH = 8, 256, 32


def drawn(*shapes):
    random = np.random.RandomState(4)
    return [random.normal(size=shape).astype("float32") for shape in shapes]


def scores_of(q, k, causal):
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    if causal:
        seen = np.tril(np.ones(scores.shape[1:], bool), scores.shape[2] - scores.shape[1])
        scores = np.where(seen, scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def attention(q, k, v, causal=False):
    q, k, v = (each.astype("float64") for each in (q, k, v))
    return scores_of(q, k, causal) @ v


def attending(shapes, causal, name="attention"):
    program = kiln.Program(name)
    q, k, v = (program.input(shape, name=letter) for shape, letter in zip(shapes, "qkv"))
    program.output(o=topi.nn.attention(q, k, v, causal=causal))
    return program


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "queries, keys, width, deep",
    # Also rows that are no whole blocks, tiles that are no whole vectors, and other values than keys.
    [(256, 256, 32, 32), (256, 300, 32, 32), (203, 301, 24, 40), (1024, 1024, 64, 64)],
)
def test_scores_are_in_no_memory(service, queries, keys, width, deep, causal):
    shapes = (HEADS, queries, width), (HEADS, keys, width), (HEADS, keys, deep)
    given = drawn(*shapes)
    program = attending(shapes, causal)
    plan = program.plan()
    assert len(plan.kernels) == 1
    result = HEADS * queries * deep * 4
    assert plan.moved == sum(each.nbytes for each in given) + result
    assert plan.live == result  # what a step needs beside what is given
    np.testing.assert_allclose(program.run(dict(zip("qkv", given))).o, attention(*given, causal), atol=2e-6)


def test_one_call_computes_the_same(service):
    given = drawn(*[(HEADS, PLACES, WIDTH)] * 3)
    found = kiln.function(lambda q, k, v: topi.nn.attention(q, k, v, causal=True))(*given)
    np.testing.assert_allclose(found, attention(*given, causal=True), atol=2e-6)


def test_the_gradient_of_fused_attention(service):
    q, k, v, head = drawn(*[(HEADS, PLACES, WIDTH)] * 4)
    program = kiln.Program("slopes")
    tensors = [program.parameter(each, name) for each, name in zip((q, k, v), "qkv")]
    weights = program.input(head.shape, name="head")
    loss = topi.sum(topi.nn.attention(*tensors, causal=True) * weights)
    program.report(loss=loss)
    program.output(**{f"d{name}": slope for name, slope in zip("qkv", program.gradients(loss, tensors))})
    found = program.run({"head": head})
    q, k, v, head = (each.astype("float64") for each in (q, k, v, head))
    p = scores_of(q, k, True)
    dp = head @ v.transpose(0, 2, 1)
    ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True)) / np.sqrt(WIDTH)
    np.testing.assert_allclose(found.reports["loss"], [(p @ v * head).sum()], rtol=1e-5)
    np.testing.assert_allclose(found.dv, p.transpose(0, 2, 1) @ head, atol=1e-5)
    np.testing.assert_allclose(found.dq, ds @ k, atol=1e-5)
    np.testing.assert_allclose(found.dk, ds.transpose(0, 2, 1) @ q, atol=1e-5)


def test_attention_is_that_of_torch(service):
    torch = pytest.importorskip("torch")
    shapes = [(HEADS, PLACES, WIDTH)] * 3
    given = drawn(*shapes)
    wanted = torch.nn.functional.scaled_dot_product_attention(*map(torch.from_numpy, given), is_causal=True)
    found = attending(shapes, True).run(dict(zip("qkv", given))).o
    np.testing.assert_allclose(found, wanted.numpy(), atol=2e-6)


# Sums and softmax are float32; weights and the result are rounded once each.
@pytest.mark.parametrize(("dtype", "unit"), [("float16", 2**-11), ("bfloat16", 2**-8)])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_short_floats_adds_up_in_float32(service, dtype, unit, causal):
    short = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    q, k, v = (each.astype(short) for each in drawn((HEADS, 200, 64), (HEADS, 300, 64), (HEADS, 300, 40)))
    found = kiln.function(lambda q, k, v: topi.nn.attention(q, k, v, causal=causal))(q, k, v)
    assert found.dtype == short
    largest = np.abs(v.astype("float64")).max()
    np.testing.assert_allclose(found.astype("float64"), attention(q, k, v, causal), atol=2 * unit * largest)
