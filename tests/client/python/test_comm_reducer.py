"""Reducers of a program's own: what they become."""

from kiln import te
from kiln._base import dtypes
from kiln._encoding.encode import encode

A = te.placeholder((4, 6), name="A")
I = te.placeholder((4, 6), "int32", name="I")
K = te.reduce_axis((0, 6), name="k")


def argmax(**names):
    def better(x, y):
        return te.select(x[1] >= y[1], x[0], y[0]), te.select(x[1] >= y[1], x[1], y[1])

    return te.comm_reducer(better, lambda *t: (te.const(-1, t[0]), te.min_value(t[1])), **names)


def product(combine=lambda a, b: a * b, identity=lambda t: te.const(1, t)):
    return te.comm_reducer(combine, identity, name="product")


def test_a_tuple_makes_as_many_tensors():
    T = te.compute((4,), lambda i: argmax(name="argmax")((I[i, K], A[i, K]), axis=K), name="T")
    assert [t.dtype for t in T] == ["int32", "float32"] and [x.name for x in T[0].op.reduce_axis] == ["k"]
    assert str(T[0].op.body[0]) == "argmax.v0[k](I[i, k], A[i, k])"
    kernel = encode([I, A, *T], None, "f")
    (reducer,) = kernel.definition.reducers
    assert list(reducer.types) == [dtypes.NUMBER["int32"], dtypes.NUMBER["float32"]]
    assert kernel.source_map.reducers[0].name == "argmax"
    assert list(kernel.source_map.reducers[0].parameters) == ["x0", "x1", "y0", "y1"]
    bodies = [kernel.definition.expressions[b].reduction for b in kernel.definition.stages[2].compute.bodies]
    assert [b.output for b in bodies] == [0, 1] and bodies[0].sources == bodies[1].sources


def test_a_reducer_stands_once_in_a_kernel():
    mul = product()
    B = te.compute((4,), lambda i: mul(A[i, K], axis=K) + mul(A[i, K] + 1, axis=K), name="B")
    assert len(encode([A, B], None, "f").definition.reducers) == 1


def test_two_values_are_combined_at_once():
    assert str(product()(A[0, 0], 2)) == "A[0, 0] * 2.0"
    assert str(product()(A[0, 0], A[0, 1], A[0, 2])) == "A[0, 0] * A[0, 1] * A[0, 2]"
    first, second = argmax()((I[0, 0], A[0, 0]), (I[0, 1], A[0, 1]))
    assert str(first) == "select(A[0, 0] >= A[0, 1], I[0, 0], I[0, 1])" and second.dtype == "float32"


def test_no_axis_leaves_the_value():
    assert str(product()(A[0, 0], axis=[])) == "A[0, 0]"
