"""Definitions composed from definitions: a kernel called on tensors."""

import numpy as np
import pytest
from expect import expect

import kiln
from kiln import te
from kiln._definitions.built_in import operator


def random(*shape, dtype="float32"):
    return np.random.RandomState(7).uniform(-9, 9, shape).astype(dtype)


def tensors(*shapes, dtype="float32"):
    return [te.placeholder(shape, dtype, name) for name, shape in zip("ABCD", shapes)]


def call(arguments, *inputs):
    return kiln.build(list(arguments))(*inputs).numpy()


def wire(*arguments):
    return kiln.kernel(list(arguments)).definition


def test_a_kernel_of_te_tensors_is_called_on_others(daemon):
    n = te.var("n")
    X = te.placeholder((n,), name="X")
    twice = kiln.kernel([X, te.compute((n,), lambda i: X[i] * 2, name="Y")], name="twice")
    (A,) = tensors((8,))
    B = twice(twice(A))
    C = te.compute(B.shape, lambda i: B[i] + A[i], name="C")
    a = random(8)
    np.testing.assert_allclose(call([A, C], a), a * 5, rtol=1e-6)


def test_it_is_the_definition_that_te_would_have_written():
    A, B = tensors((4, 5), (5, 6))
    k = te.reduce_axis((0, 5), name="k")
    written = te.compute((4, 6), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    assert wire(A, B, operator("matmul")(A, B)) == wire(A, B, written)


def test_a_kernel_of_several_outputs_gives_a_tuple(daemon):
    (X,) = tensors((5,))
    both = kiln.kernel([X, *te.compute((5,), lambda i: (X[i] + 1, X[i] * 3), name="P")])
    (A,) = tensors((2, 5))
    more, thrice = both(A)
    a = random(2, 5)
    np.testing.assert_allclose(call([A, more], a), a + 1)
    np.testing.assert_allclose(call([A, thrice], a), a * 3)


def test_names_are_kept_and_numbered_when_repeated():
    A, B, C = tensors((4, 4), (4, 4), (4, 4))
    matmul = operator("matmul")
    kernel = kiln.kernel([A, B, C, matmul(matmul(A, B), C)])
    assert sorted(kernel.source_map.stages) == ["A", "B", "C", "C_1", "C_2"]
    assert matmul(A, B, name="P").name == "P"


def test_the_line_is_that_of_the_call():
    A, B = tensors((4, 4), (4, 4))
    assert operator("matmul")(A, B).op.file == __file__


def test_sizes_are_bound_from_shapes_or_by_name_and_folded():
    X, F = tensors((2, 3, 9, 9), (4, 3, 3, 3))
    Y = operator("conv2d")(X, F, stride_h=2, stride_w=1, dilation_h=1, dilation_w=2)
    assert Y.shape == (2, 4, 4, 5)
    assert str(Y.op.body[0].source[0].operands[0]) == "A[i0, rc, i * 2 + rr, j + rs * 2]"


def test_a_size_may_stay_one_of_the_call(daemon):
    n, s = te.var("n"), te.var("s")
    (X,) = tensors((n,))
    Y = operator("max_pool1d")(X, s=s, stride=1, dilation=1)
    W = te.placeholder((s,), name="W")
    Z = te.compute(Y.shape, lambda i: Y[i] + W[0] * 0, name="Z")
    x = random(9)
    expected = np.lib.stride_tricks.sliding_window_view(x, 3).max(-1)
    np.testing.assert_array_equal(call([X, W, Z], x, np.ones(3, "float32")), expected)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "uint8", "int64"])
def test_a_type_of_an_input_stands_for_that_of_the_tensor_given(daemon, dtype):
    A, B = tensors((3, 4), (4, 2), dtype=dtype)
    C = operator("matmul")(A, B)
    assert C.dtype == dtype
    a, b = (np.arange(size).reshape(shape).astype(dtype) for size, shape in ((12, (3, 4)), (8, (4, 2))))
    np.testing.assert_array_equal(call([A, B, C], a, b), a @ b)


def test_a_number_stands_for_a_tensor_without_dimensions(daemon):
    (X,) = tensors((3, 4))
    x = random(3, 4)
    result = call([X, operator("leaky_relu")(X, 0.25)], x)
    np.testing.assert_allclose(result, np.where(x > 0, x, x * np.float32(0.25)))


def test_dimensions_in_front_are_mapped_over_and_stretch(daemon):
    A, B = tensors((5, 1, 3, 4), (2, 4, 6))
    C = operator("matmul")(A, B)
    assert C.shape == (5, 2, 3, 6)
    a, b = random(5, 1, 3, 4), random(2, 4, 6)
    np.testing.assert_allclose(call([A, B, C], a, b), a @ b, rtol=1e-4, atol=1e-4)


def test_a_stage_has_only_the_dimensions_in_front_that_it_depends_on():
    X, gamma = tensors((5, 8), (8,))
    Y = operator("layer_norm")(X, gamma, gamma, 1e-5)
    shapes = {t.name: t.shape for t in Y.op.input_tensors}
    assert shapes == {"A": (5, 8), "mean": (5,), "variance": (5,), "B": (8,)}


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_axis_says_where_the_one_dimension_stands(daemon, axis):
    (X,) = tensors((3, 4, 5))
    x = random(3, 4, 5)
    e = np.exp(x - x.max(axis, keepdims=True))
    Y = operator("softmax")(X, axis=axis)
    assert Y.shape == X.shape
    np.testing.assert_allclose(call([X, Y], x), e / e.sum(axis, keepdims=True), rtol=1e-5)


def test_kernels_of_scans_are_composed(daemon):
    n = te.var("n")
    (X,) = tensors((n,))
    Y = operator("cumsum")(operator("cumsum")(X))
    x = np.arange(6, dtype="float32")
    np.testing.assert_array_equal(call([X, Y], x), x.cumsum().cumsum())


def test_scatters_are_mapped_over_dimensions_in_front():
    rows, base = te.placeholder((6,), "int32", name="rows"), te.placeholder((4, 3), name="base")
    X = te.placeholder((6, 3), name="X")
    Y = te.scatter_add(base, (6, 3), lambda r, c: ((rows[r], c), X[r, c]), name="Y")
    adds = kiln.kernel([base, rows, X, Y])
    assert wire(*adds.tensors()) == adds.definition
    A, B = tensors((2, 6, 3), (2, 4, 3))
    Z = adds(B, rows, A)
    assert (Z.shape, Z.op.base) == ((2, 4, 3), B)
    copied = adds(base, rows, A)
    assert (copied.shape, copied.op.base.name) == ((2, 4, 3), "base_copy")


def test_scans_are_mapped_over_dimensions_in_front(daemon):
    n, m = te.var("n"), te.var("m")
    X, state = te.placeholder((n, m), name="X"), te.placeholder((n, m))
    init = te.compute((n, 1), lambda i, _: X[i, m - 1])
    update = te.compute((n, m), lambda i, t: state[i, t + 1] + X[i, t])
    backwards = kiln.kernel([X, te.scan(init, update, state, axis=1, reverse=True)])
    (A,) = tensors((2, 3, 4))
    a = random(2, 3, 4)
    expected = a[..., ::-1].cumsum(-1)[..., ::-1]
    np.testing.assert_allclose(call([A, backwards(A)], a), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "message, action",
    [
        (
            "argument B of matmul: dimension 0 is 3, but must be 5 (l, from dimension 1 of A)",
            lambda: operator("matmul")(*tensors((4, 5), (3, 6))),
        ),
        (
            "argument B of matmul: dimension 0 is m, which is not known to be n (l, from dimension 1 "
            "of A)",
            lambda: operator("matmul")(*tensors((4, te.var("n")), (te.var("m"), 6))),
        ),
        (
            "argument F of conv2d: dimension 1 is 2, but must be 3 (c, from dimension 0 of X)",
            lambda: operator("conv2d")(
                *tensors((3, 9, 9), (4, 2, 3, 3)), stride_h=1, stride_w=1, dilation_h=1, dilation_w=1
            ),
        ),
        (
            "argument X of softmax: dimension 0 is 4, but must be 5 (n, as given)",
            lambda: operator("softmax")(*tensors((4,)), n=5),
        ),
        (
            "matmul takes 2 tensors (A, B), but got 1",
            lambda: operator("matmul")(*tensors((4, 5))),
        ),
        (
            "argument A of matmul has 1 dimension, but must have 2 or more",
            lambda: operator("matmul")(*tensors((4,), (4, 5))),
        ),
        (
            "matmul: the leading dimensions of A are (2,) and those of B (3,), which do not stretch "
            "to one shape",
            lambda: operator("matmul")(*tensors((2, 4, 4), (3, 4, 4))),
        ),
        (
            "argument B of matmul is float64, but A is float32; cast one of them",
            lambda: operator("matmul")(*tensors((4, 4)), te.placeholder((4, 4), "float64")),
        ),
        (
            "max_pool1d needs the size dilation, which no shape gives: call it with dilation=...",
            lambda: operator("max_pool1d")(*tensors((4,)), s=3, stride=1),
        ),
        (
            "matmul has no size stride; its sizes are n, l, m",
            lambda: operator("matmul")(*tensors((4, 4), (4, 4)), stride=2),
        ),
        (
            "softmax: axis 2 is out of range; the tensors have 2 dimensions",
            lambda: operator("softmax")(*tensors((4, 4)), axis=2),
        ),
        (
            "matmul takes no axis=, since it is not over one dimension",
            lambda: operator("matmul")(*tensors((4, 4), (4, 4)), axis=0),
        ),
    ],
)
def test_a_call_that_does_not_fit_names_both_sides(message, action):
    error = expect(kiln.InvalidArgument, message, action)
    assert error.file == __file__


def test_a_type_that_the_definition_cannot_have_is_said_with_the_call():
    M, X = te.placeholder((4,), "bool", "M"), te.placeholder((4,), name="X")
    chosen = kiln.kernel([M, X, te.compute((4,), lambda i: te.select(M[i], X[i], 0), name="Y")], "chosen")
    N = te.placeholder((4,), "int32", "N")
    error = expect(
        kiln.InvalidArgument,
        "select takes conditions, but got int32: N[i]; write a comparison such as N[i] != 0",
        lambda: chosen(N, X),
    )
    assert error.notes == ["in kernel chosen, called on N: int32, X: float32"]
